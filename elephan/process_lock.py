"""A file that one process holds locked, with its number in it.

The lock tells a living process from one that was killed: the kernel lets go of it with the process.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from elephan.errors import ElephanError, StoreError


@contextmanager
def locked(path: Path, taken: Callable[[str], ElephanError]) -> Iterator[None]:
    """Hold the lock of a file, which is made. Raises `taken` of the number of another process that has it, and
    `StoreError` where there can be none.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise taken(_process_in(lock)) from None
        with suppress(OSError):
            # On a full disk the lock holds all the same.
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)


def holder(path: Path) -> int | None:
    """Return the process that holds the lock of a file; None: nobody; 0: one that has not said its number yet."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Shared: two that ask at once must not take each other for the holder.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = _process_in(lock)
        return int(text) if text.isdecimal() else 0
    finally:
        os.close(lock)
    return None


def _process_in(lock: int) -> str:
    return os.pread(lock, 32, 0).decode("ascii", "replace").strip()
