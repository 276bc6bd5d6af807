"""One run of a job at once, and one program that runs a backup's jobs, on this machine."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from elephan.backup.tables import backup_folder
from elephan.errors import InputError, StoreError
from elephan.store.place import Place


class Runs(InputError):
    """Another process has the lock."""


def lock_path(place: Place, backup: str, job: str | None = None) -> Path:
    """Return the file whose lock a job's run holds; without a `job` the program that runs all."""
    return backup_folder(place) / (f"{backup}.lock" if job is None else f"{backup}.{job}.lock")


@contextmanager
def locked(place: Place, backup: str, job: str | None = None) -> Iterator[None]:
    """Hold a lock. Raises `Runs` when another process has it, `StoreError` where there can be none."""
    path = lock_path(place, backup, job)
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
            what = f'the backup "{backup}"' if job is None else f'the job "{job}" of the backup "{backup}"'
            raise Runs(f"{what} runs already, as process {who}") from None
        with suppress(OSError):
            # On a full disk the lock holds all the same.
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)


def holder(place: Place, backup: str, job: str | None = None) -> int | None:
    """Return the process that holds a lock; None: nobody."""
    try:
        lock = os.open(lock_path(place, backup, job), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Shared: two that ask at once must not take each other for the holder.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        return int(text) if text.isdecimal() else 0
    finally:
        os.close(lock)
    return None
