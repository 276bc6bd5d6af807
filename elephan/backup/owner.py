"""Identity of the job that makes the versions of a destination: backup, job, and the store and machine that run it.

Two machines, or two stores of one, that are given the same file must not take each other's versions for their own. The
store alone would not tell a cloned machine from its original, the machine alone not two stores of it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from elephan.backup.tables import backup_folder
from elephan.errors import StoreError
from elephan.store.place import Place

FILE = "store-id"
MACHINE_ID = Path("/etc/machine-id")
"""See machine-id(5): it must not be shown to others unchanged, and a clone of the machine has another id."""


@dataclass(frozen=True)
class Owner:
    """Owner of versions."""

    backup: str
    job: str
    store: str
    """16 hex digits: of the store's own id and of the machine's."""
    host: str
    """Name of the machine, for messages."""

    def as_json(self) -> dict[str, str]:
        """Return what the receiving host keeps in a version's marker."""
        return {"backup": self.backup, "job": self.job, "store": self.store, "host": self.host}


def owner_of(place: Place, backup: str, job: str) -> Owner:
    """Return the owner that a job of a store is. Raises `StoreError` where no id can be kept beside the store."""
    machine = ""
    with suppress(OSError):
        machine = MACHINE_ID.read_text(encoding="ascii", errors="replace").strip()
    digest = hashlib.sha256(f"elephan backup\n{_store_id(backup_folder(place))}\n{machine}".encode())
    return Owner(backup, job, digest.hexdigest()[:16], socket.gethostname()[:64])


def _store_id(folder: Path) -> str:
    """Return the id kept in a folder; the first call makes it, durable before it is used."""
    path = folder / FILE
    try:
        found = _read(path)
        if found is None:
            folder.mkdir(parents=True, exist_ok=True)
            new = folder / f"{FILE}.{secrets.token_hex(8)}"
            with new.open("x", encoding="ascii") as file:
                file.write(secrets.token_hex(16) + "\n")
                file.flush()
                os.fsync(file.fileno())
            try:
                # Of two processes at once the first one's stays.
                os.link(new, path)
            except FileExistsError:
                pass
            except OSError:
                # A file system without hard links.
                new.rename(path)
            finally:
                new.unlink(missing_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            found = _read(path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    if not found:
        raise StoreError(f"{path}: it is empty; with the id of the store's backups, from a copy, runs continue")
    return found


def _read(path: Path) -> str | None:
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            return file.read(256).strip()
    except FileNotFoundError:
        return None
