"""A thread inside a network namespace: for what needs a system call there and no program."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

CLONE_NEWNET = 0x40000000
"""Of setns(2): the file must be that of a network namespace."""


def within(file: Path, act: Callable[[], T]) -> T:
    """Return the result of `act` in the namespace whose file is `file`. Raises its exceptions, and
    OSError.

    It runs in a thread of its own that ends with it, so that no other thread ever is anywhere but at home.
    """
    gave: list[T] = []
    failed: list[BaseException] = []

    def there() -> None:
        try:
            _enter(file)
            gave.append(act())
        except BaseException as error:  # handed to the caller's thread, which raises it
            failed.append(error)

    thread = threading.Thread(target=there, name="elephan-namespace")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return gave[0]


def _enter(file: Path) -> None:
    # os.setns is there from Python 3.12 on.
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(handle, CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(file))
    finally:
        os.close(handle)
