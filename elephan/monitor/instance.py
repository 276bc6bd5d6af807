"""One monitor of a name on this machine: its own files, and the lock that keeps a second one out."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from elephan.errors import InputError, StoreError
from elephan.monitor.tables import monitor_folder
from elephan.store.place import Place


def stem(place: Place, name: str) -> Path:
    """Return what the names of a monitor's own files begin with."""
    return monitor_folder(place) / f"monitor-{name}"


def socket_path(place: Place, name: str) -> Path:
    """Return the socket of a monitor that runs."""
    return stem(place, name).with_suffix(".socket")


@contextmanager
def locked(place: Place, name: str) -> Iterator[None]:
    """Hold the lock of a monitor's name in its store. Raises `InputError` when another process has it."""
    path = stem(place, name).with_suffix(".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
            raise InputError(f'the monitor "{name}" of this store runs already, as process {who}') from None
        with suppress(OSError):
            # On a full disk the lock holds all the same.
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)
