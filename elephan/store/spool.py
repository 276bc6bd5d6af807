"""Runs that a server could not take: kept in a file of this machine, sent when the server is back.

The file is a store of SQLite's, beside the user's own, named after the server's URL. A run leaves it only after the
server has committed it. So a kill at any moment loses none; a run that was sent and not yet removed is sent again and
takes its own place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from elephan.errors import StoreError
from elephan.store.place import Place, reason_of
from elephan.store.rows import Rows, delete, present, put, read
from elephan.store.sql import Execute, Fault, File

AT_ONCE = 100
"""Runs that are sent in one transaction."""


class Spool:
    """Unsent runs of one server's database."""

    def __init__(self, path: Path) -> None:
        """Make nothing yet."""
        self.path = path
        self._file: File | None = None

    def keep(self, runs: Sequence[Rows]) -> None:
        """Keep runs; they are on the disk when this returns. Raises `StoreError`."""
        with self._transaction(writing=True, what="write") as execute:
            put(execute, runs)

    def count(self) -> int:
        """Return how many runs wait. Raises `StoreError`."""
        if not self.path.exists():
            return 0
        with self._transaction() as execute:
            return int(execute("select count(*) from run", {})[0][0])

    def first(self) -> list[Rows]:
        """Return some runs that wait, those first that were made first. Raises `StoreError`."""
        if not self.path.exists():
            return []
        with self._transaction() as execute:
            ids = [row[0] for row in execute(f"select id from run order by created, id limit {AT_ONCE}", {})]
            return read(execute, ids)

    def rows_of(self, ids: Sequence[str]) -> list[Rows]:
        """Return those of these runs that wait. Raises `StoreError`."""
        if not self.path.exists():
            return []
        with self._transaction() as execute:
            return read(execute, ids)

    def drop(self, sent: Sequence[Rows]) -> None:
        """Remove runs that the server has, unless another command has kept them anew. Raises `StoreError`."""
        digests = {one.id: one.run["sha256"] for one in sent}
        with self._transaction(writing=True, what="write") as execute:
            same = [row[0] for row in present(execute, list(digests), "id, sha256") if digests[row[0]] == row[1]]
            delete(execute, same)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @contextmanager
    def _transaction(self, writing: bool = False, what: str = "read") -> Iterator[Execute]:
        try:
            with self._opened().transaction(writing) as execute:
                yield execute
        except Fault as fault:
            raise StoreError(f"cannot {what} {self.path}, for runs to be sent: {reason_of(fault)}") from fault

    def _opened(self) -> File:
        if self._file is None:
            from elephan.store.migrate import bring_up_to_date

            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                reason = error.strerror or error
                raise StoreError(f"cannot make {self.path.parent}, for runs to be sent: {reason}") from error
            bring_up_to_date(Place.of(str(self.path)))
            self._file = File(self.path)
        return self._file
