"""SQL to a file of SQLite's, or by SQLAlchemy to any database it knows, in the same words.

A store's statements are few and the same everywhere, and the user's own store is a file. So that is asked through
Python's own driver: SQLAlchemy takes longer to load than many a run takes. It makes and upgrades the tables
(`elephan.store.migrate`), and it is how servers are reached.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from elephan.errors import InputError

if TYPE_CHECKING:
    import sqlalchemy

    from elephan.store.place import Place

BUSY_TIMEOUT_MS = 30_000
"""Time that SQLite waits for another writer, ms: longer than any single store of a run."""

Values = Mapping[str, Any]
Execute = Callable[[str, Values | Sequence[Values]], list[tuple[Any, ...]]]
"""Executes a statement with named values such as :id, for each of a list of them; returns its rows."""


def id_of(*parts: object) -> int:
    """Return the id of a row that is the same wherever it is made: 48 bits of a digest of what the row is of, which
    every database and JavaScript hold exactly.
    """
    text = json.dumps([str(part) for part in parts])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


class Fault(Exception):
    """A database refused or failed; `orig` is the driver's error."""

    def __init__(self, orig: BaseException) -> None:
        super().__init__(str(orig))
        self.orig = orig


class Database(Protocol):
    """A database that executes statements. Every method raises `Fault`."""

    def transaction(self, writing: bool = False) -> AbstractContextManager[Execute]:
        """Give what executes in one transaction, committed at the end, or rolled back by an exception."""

    def close(self) -> None:
        """Close it."""


class File:
    """A file of SQLite's, through Python's own driver."""

    def __init__(self, path: Path, as_it_is: bool = False) -> None:
        """Open it, and make it when there is none, but `as_it_is`."""
        self._path, self._as_it_is = path, as_it_is
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        # At the end of the process too: the last one that closes puts all that was written into the one file.
        weakref.finalize(self, _close_all, self._opened)
        with _faults(sqlite3.Error):
            self._connection()

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection: SQLite's are of one thread each."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            # Closed by whichever thread closes the store.
            if self._as_it_is:
                place = f"file:{quote(str(self._path))}?mode=rw"
                connection = sqlite3.connect(place, uri=True, check_same_thread=False)
            else:
                connection = sqlite3.connect(self._path, check_same_thread=False)
            try:
                prepare_sqlite(connection, self._as_it_is)
            except BaseException:
                connection.close()
                raise
            self._local.connection = connection
            self._opened.append(connection)
        return connection

    @contextmanager
    def transaction(self, writing: bool = False) -> Iterator[Execute]:
        """See `Database`."""
        with _faults(sqlite3.Error):
            connection = self._connection()

            def execute(sql: str, values: Values | Sequence[Values] = ()) -> list[tuple[Any, ...]]:
                if isinstance(values, list):
                    connection.executemany(sql, values)
                    return []
                return connection.execute(sql, values).fetchall()

            # A write that began as a read would fail at once where another one came between.
            connection.execute("begin immediate" if writing else "begin")
            try:
                yield execute
                connection.execute("commit")
            except BaseException:
                # SQLite has rolled back by itself where the disk is full.
                with suppress(sqlite3.Error):
                    connection.execute("rollback")
                raise

    def close(self) -> None:
        """See `Database`."""
        _close_all(self._opened)
        self._local = threading.local()


def _close_all(connections: list[sqlite3.Connection]) -> None:
    while connections:
        connections.pop().close()


class Engine:
    """Any database by its URL, through SQLAlchemy."""

    def __init__(self, place: Place) -> None:
        """Raises `InputError` when there is no driver for it."""
        self.engine = engine_of(place)
        weakref.finalize(self, self.engine.dispose)

    @contextmanager
    def transaction(self, writing: bool = False) -> Iterator[Execute]:
        """See `Database`."""
        from sqlalchemy import text
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with self.engine.execution_options(begin="begin immediate" if writing else "begin").begin() as connection:

                def execute(sql: str, values: Values | Sequence[Values] = ()) -> list[tuple[Any, ...]]:
                    found = connection.execute(text(sql), values or None)
                    return [tuple(row) for row in found] if found.returns_rows else []

                yield execute
        except SQLAlchemyError as error:
            raise Fault(getattr(error, "orig", None) or error) from error

    def close(self) -> None:
        """See `Database`."""
        self.engine.dispose()


def engine_of(place: Place) -> sqlalchemy.Engine:
    """Return SQLAlchemy's engine for a store's place. Raises `InputError` when there is no driver for it."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import SQLAlchemyError

    try:
        engine = create_engine(place.url, connect_args=_patience(place.url))
    except ImportError as error:
        raise InputError(
            f"--store {place.location}: the driver {error.name} is not installed; pip install {error.name}"
        ) from error
    except SQLAlchemyError as error:
        raise InputError(f"--store {place.location}: {str(error).splitlines()[0]}") from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda connection, _: prepare_sqlite(connection))
        event.listen(engine, "begin", _begin_sqlite)
    return engine


CONNECT_S = 10
"""Time for a server to accept a connection, s."""

SILENCE_S = 90
"""Time without a sign of a server, after which it counts as away, s: longer than MariaDB waits for a lock (50 s)."""


def _patience(url: sqlalchemy.URL) -> dict[str, Any]:
    """Return the driver's options by which a server that is cut off is found; those that the URL has come first."""
    options: dict[str, Any] = {}
    if url.drivername == "postgresql+psycopg":
        # libpq's (postgresql.org/docs, Parameter Key Words); the timeout of data is in ms.
        options = {"connect_timeout": CONNECT_S, "tcp_user_timeout": 1000 * SILENCE_S}
        options |= {"keepalives_idle": SILENCE_S // 3, "keepalives_interval": SILENCE_S // 9, "keepalives_count": 6}
    elif url.drivername in ("mysql+pymysql", "mariadb+pymysql"):
        options = {"connect_timeout": CONNECT_S, "read_timeout": SILENCE_S, "write_timeout": SILENCE_S}
    return {name: value for name, value in options.items() if name not in url.query}


def _begin_sqlite(connection: sqlalchemy.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "begin"))


@contextmanager
def _faults(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        raise Fault(error) from error


def prepare_sqlite(connection: sqlite3.Connection, as_it_is: bool = False) -> None:
    """WAL, but `as_it_is`: readers go on while a run is stored. FULL: a commit lasts through a power cut.

    Both: sqlite.org/wal.html.
    """
    # Transactions are begun by hand: the driver would begin none before it makes a table.
    connection.isolation_level = None
    # A damaged record is to be named, and not to end a list.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.execute(f"pragma busy_timeout = {BUSY_TIMEOUT_MS}")
    if not as_it_is:
        _use_wal(connection)
    connection.execute("pragma synchronous = FULL")
    connection.execute("pragma foreign_keys = ON")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Change to WAL, where two commands may do so at once: one is told at once that the database is locked."""
    until_s = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("pragma journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until_s:
                raise
        time.sleep(0.01)
