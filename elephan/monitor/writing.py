"""Writing of the monitor's rows and samples: a journal for each path, and a database that is a file of this machine.

For a server's store that file is the spool of unsent runs (`elephan.store.spool`), which has the same tables: a child
process sends from it. So the monitor never waits for a server, and a server that is away costs nothing but space.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from elephan.errors import StoreError
from elephan.monitor import journal
from elephan.monitor.journal import Sample
from elephan.monitor.tables import KEYS, monitor_folder, put
from elephan.store.files import write_atomically
from elephan.store.place import Place, is_fault, reason_of
from elephan.store.revision import HEAD
from elephan.store.sql import Fault, File

MOST_PENDING_ROWS = 50_000
"""Rows that wait in memory for space on the disk: some days of ten paths."""
MOST_PENDING_BYTES = 1 << 20
"""Samples of a path that wait for space on the disk."""


class Database:
    """Rows to be written: kept in order until the database has them."""

    def __init__(self, place: Place) -> None:
        """Open it; its tables are this elephan's. Raises `StoreError`."""
        self.path = local_file(place)
        self._pending: list[tuple[str, dict[str, Any]]] = []
        self.fault: str | None = None
        """Reason for which rows wait; None: none does."""
        self.dropped = 0
        """Rows that were lost because too many waited."""
        try:
            self._file = File(self.path)
        except Fault as fault:
            raise place.failed(fault) from fault

    def add(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        """Take rows; `flush` writes them."""
        self._pending += [(table, row) for row in rows]
        if len(self._pending) > MOST_PENDING_ROWS:
            spare = len(self._pending) - MOST_PENDING_ROWS
            self.dropped += spare
            # Summaries of samples that the journal has may go; alerts stay.
            summaries = [one for one in self._pending if one[0] == "monitor_summary"][:spare]
            gone = {id(one) for one in summaries}
            self._pending = [one for one in self._pending if id(one) not in gone]

    def flush(self) -> bool:
        """Write what waits, in one transaction; return True if nothing waits any more. Sets `fault`."""
        if not self._pending:
            self.fault = None
            return True
        try:
            with self._file.transaction(writing=True) as execute:
                for table in KEYS:
                    put(execute, table, _last_of_each(table, [row for name, row in self._pending if name == table]))
        except Fault as fault:
            self.fault = reason_of(fault)
            return False
        self._pending.clear()
        self.fault = None
        return True

    @property
    def is_full(self) -> bool:
        """Return True if the disk has no space."""
        return self.fault is not None and "full" in self.fault

    def rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Read. Raises `StoreError`."""
        try:
            with self._file.transaction() as execute:
                return execute(sql, values)
        except Fault as fault:
            raise StoreError(f"cannot read {self.path}: {reason_of(fault)}") from fault

    def close(self) -> None:
        """Close it."""
        self._file.close()


def _last_of_each(table: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the newest row of each key."""
    _, key = KEYS[table]
    return list({tuple(row[name] for name in key): row for row in rows}.values())


def local_file(place: Place) -> Path:
    """Return the file that the monitor writes to."""
    found = place.spool or place.file
    if found is None:
        raise StoreError(
            f"--store {place.given}: a monitor needs a store that lasts; right are a file or a server's URL"
        )
    return found


def is_ready(place: Place) -> bool:
    """Return True if the local file has this elephan's tables."""
    path = local_file(place)
    if not path.exists():
        return False
    with suppress(Fault):
        file = File(path)
        try:
            with file.transaction() as execute:
                return execute("select version_num from alembic_version", {}) == [(HEAD,)]
        finally:
            file.close()
    return False


class Journal:
    """The samples of a path: appended as they come, on the disk when `sync` returns."""

    def __init__(self, folder: Path) -> None:
        """Make the folder. Raises `StoreError`."""
        self.folder = folder
        self._pending = b""
        self._day: str | None = None
        self._file: int | None = None
        self.fault: OSError | None = None
        self.dropped = 0
        """Samples that were lost because the disk was full."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make {folder}: {error.strerror}") from error

    def append(self, samples: Sequence[Sample]) -> None:
        """Append samples in order, each to its day. A full disk sets `fault`, and they wait."""
        for one in samples:
            day = journal.day_of(one.sent_ns / 1e9)
            if day != self._day:
                self._write()
                self._open(day)
            self._pending += journal.encode([one])
        self._write()

    def _open(self, day: str) -> None:
        self.close()
        self._day = day
        path = journal.journal_path(self.folder, day)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            data = b""
            while part := os.read(self._file, 1 << 20):
                data += part
            whole = journal.whole_bytes(data)
            # A torn end is cut off: records that follow it would be lost with it.
            os.ftruncate(self._file, whole)
            os.lseek(self._file, whole, os.SEEK_SET)
        except OSError as error:
            self._note(error)

    def _write(self) -> None:
        if not self._pending:
            return
        if self._file is None:
            if self._day is not None:
                self._open(self._day)
            if self._file is None:
                return
        try:
            start = os.lseek(self._file, 0, os.SEEK_CUR)
            written = os.write(self._file, self._pending)
            whole = written // journal.RECORD_BYTES * journal.RECORD_BYTES
            if whole < written:
                os.ftruncate(self._file, start + whole)
                os.lseek(self._file, start + whole, os.SEEK_SET)
            self._pending = self._pending[whole:]
            if self._pending:
                self._note(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
            else:
                self.fault = None
        except OSError as error:
            self._note(error)

    def _note(self, error: OSError) -> None:
        self.fault = error
        spare = len(self._pending) - MOST_PENDING_BYTES
        if spare > 0:
            records = -(-spare // journal.RECORD_BYTES)
            self.dropped += records
            self._pending = self._pending[records * journal.RECORD_BYTES :]

    def retry(self) -> None:
        """Write what waits."""
        self._write()

    def sync(self) -> None:
        """Wait until the samples are on the disk."""
        if self._file is not None:
            with suppress(OSError):
                os.fdatasync(self._file)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self.sync()
            os.close(self._file)
            self._file = None


def free_bytes(folder: Path) -> int:
    """Return the space that this user may still write."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def make_space(place: Place, wanted: int) -> list[Path]:
    """Remove the oldest days of raw samples, over all paths, until so much is free; return them. Today's stay."""
    folder = monitor_folder(place)
    today = journal.day_of(time.time())
    days = sorted(
        (path for kind in ("parquet", "journal") for path in folder.glob(f"*/????-??-??.{kind}") if path.stem < today),
        key=lambda path: (path.stem, str(path)),
    )
    gone = []
    for path in days:
        if free_bytes(folder) >= wanted:
            break
        with suppress(OSError):
            path.unlink()
            gone.append(path)
    return gone


def save(path: Path, text: str) -> bool:
    """Write a file of state, whole or not at all; return False where the disk is full."""
    try:
        write_atomically(path, text.encode())
    except StoreError as error:
        if isinstance(error.__cause__, OSError) and is_fault(error.__cause__):
            return False
        raise
    return True
