"""One run of a job at once, and one program that runs a backup's jobs, on this machine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from elephan import process_lock
from elephan.backup.tables import backup_folder
from elephan.errors import InputError
from elephan.store.place import Place


class Runs(InputError):
    """Another process has the lock."""


def lock_path(place: Place, backup: str, job: str | None = None) -> Path:
    """Return the file whose lock a job's run holds; without a `job` the program that runs all."""
    return backup_folder(place) / (f"{backup}.lock" if job is None else f"{backup}.{job}.lock")


def locked(place: Place, backup: str, job: str | None = None) -> AbstractContextManager[None]:
    """Hold a lock. Raises `Runs` when another process has it, `StoreError` where there can be none."""
    what = f'the backup "{backup}"' if job is None else f'the job "{job}" of the backup "{backup}"'
    return process_lock.locked(
        lock_path(place, backup, job), lambda who: Runs(f"{what} runs already, as process {who}")
    )


def holder(place: Place, backup: str, job: str | None = None) -> int | None:
    """Return the process that holds a lock; None: nobody."""
    return process_lock.holder(lock_path(place, backup, job))
