"""One monitor of a name on this machine: its own files, and the lock that keeps a second one out."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from elephan import process_lock
from elephan.errors import InputError
from elephan.monitor.tables import monitor_folder
from elephan.store.place import Place


def stem(place: Place, name: str) -> Path:
    """Return what the names of a monitor's own files begin with."""
    return monitor_folder(place) / f"monitor-{name}"


def socket_path(place: Place, name: str) -> Path:
    """Return the socket of a monitor that runs."""
    return stem(place, name).with_suffix(".socket")


def locked(place: Place, name: str) -> AbstractContextManager[None]:
    """Hold the lock of a monitor's name in its store. Raises `InputError` when another process has it."""
    return process_lock.locked(
        stem(place, name).with_suffix(".lock"),
        lambda who: InputError(f'the monitor "{name}" of this store runs already, as process {who}'),
    )
