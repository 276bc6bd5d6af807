"""Records in a database. Each run is one transaction, committed after its series are on the disk.

So a crash, a full disk or a kill leaves every earlier run, and at worst a series file without a row, which the next
run of the same point replaces.
"""

from __future__ import annotations

import hashlib
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, Select, create_engine, delete, event, func, insert, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from elephan.errors import InputError, StoreError
from elephan.record import Record, canonical_json
from elephan.store.files import KINDS, paths_of, stem_of
from elephan.store.migrate import bring_up_to_date
from elephan.store.place import Place, default_location, is_conflict, named, reason_of
from elephan.store.schema import MetricRow, ParameterRow, RunRow

if TYPE_CHECKING:
    from elephan.store.series import Series

BUSY_TIMEOUT_MS = 30_000
"""How long SQLite waits for another writer, ms: longer than any single store of a run."""

LEAST_PREFIX = 4
"""Hex digits of an id that a person must give at least."""

ATTEMPTS = 8
"""How often a transaction is tried that the database takes back in favour of another one."""

AT_ONCE = 500
"""Ids in one statement: SQLite takes 999 values, the other databases more."""


@dataclass(frozen=True)
class Filter:
    """Which runs to list; what is None does not restrict."""

    scenario: str | None = None
    """The scenario's name."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Parameters with their value as text."""
    newest: int | None = None
    """At most so many, newest first."""


@dataclass(frozen=True)
class Damaged:
    """A run whose record cannot be read."""

    id: str
    reason: str

    def __str__(self) -> str:
        """Say it on one line."""
        return f"run {self.id}: {self.reason}"


@dataclass(frozen=True)
class Summary:
    """A run as far as the columns of its row say, so that a damaged record is no hindrance."""

    id: str
    created: str
    scenario: str
    ground: str
    version: str
    seed: str
    series: tuple[str, ...]
    """Names of its series files."""


@dataclass(frozen=True)
class Stored:
    """A row as it is: the record's text, and what it is to be compared with."""

    id: str
    record: str
    sha256: str | None
    series: dict[str, str | None]


class Store:
    """A database and the folder of its series."""

    def __init__(self, location: str, series_folder: Path | None = None) -> None:
        """Open the store, make or upgrade its tables.

        Raises `StoreUnusable` when there can be no store at `location`, and makes nothing there then; `StoreError` when
        it cannot be opened; `InputError` for a wrong URL.
        """
        self.place = Place.of(location, series_folder)
        self.place.prepare()
        self.location = self.place.location
        self.series_folder = self.place.series
        self._engine = self._open()
        self._writing = self._engine.execution_options(begin="BEGIN IMMEDIATE")
        try:
            bring_up_to_date(self._engine)
        except StoreError as error:
            self._engine.dispose()
            raise StoreError(f"{named(self.place.given)}: {error}") from error
        except SQLAlchemyError as error:
            self._engine.dispose()
            raise self.place.failed(error) from error

    def must_take(self) -> None:
        """Raise `StoreError` when no run can be stored: asked before runs that take hours."""
        try:
            with self._writing.connect() as connection:
                # Needs what a write needs, and is taken back.
                connection.execute(text("update alembic_version set version_num = version_num"))
                connection.rollback()
        except SQLAlchemyError as error:
            raise self.place.failed(error) from error
        self.place.must_take_series()

    def _open(self) -> Engine:
        try:
            engine = create_engine(self.place.url)
        except ImportError as error:
            raise InputError(
                f"--store {self.location}: the driver {error.name} is not installed; pip install {error.name}"
            ) from error
        except SQLAlchemyError as error:
            raise InputError(f"--store {self.location}: {reason_of(error)}") from error
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
        return engine

    @contextmanager
    def _guard(self, act: str) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise StoreError(f"cannot {act} the store {self.location}: {reason_of(error)}") from error

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def save(self, record: Record, series: Series | None) -> None:
        """Store one run in one transaction, in place of an earlier one with its id. Raises `StoreError`.

        When it fails, what was there before is there still, and no file of this run is left behind.
        """
        stem = stem_of(record.id)
        # Series of an earlier run with this id have its row to belong to, and stay.
        new = not any(path.exists() for path in paths_of(self.series_folder, stem))
        try:
            self._save(record, series.write(self.series_folder, stem) if series else {})
        except BaseException:
            if new:
                for path in paths_of(self.series_folder, stem):
                    # What keeps it from being removed has kept it from being written.
                    with suppress(OSError):
                        path.unlink(missing_ok=True)
            raise

    def _save(self, record: Record, names: dict[str, str]) -> None:
        text = record.to_json()
        row = {
            "id": record.id,
            "format": record.format,
            "created": record.created,
            "scenario": record.scenario.name[:255],
            "ground": record.ground,
            "version": record.version,
            "build": str(record.host.get("build", "")),
            "seed": str(record.seed),
            "record": text,
            "flow_series": names.get("flow"),
            "link_series": names.get("link"),
            "sha256": digest_of(text),
        }
        values = {
            MetricRow: [(name, value) for name, value in record.metrics.items()],
            ParameterRow: [(name, as_text(value)) for name, value in record.parameters.items()],
        }

        def store(session: Session) -> None:
            # Rows that are not there are not deleted: MariaDB would lock the gap where others insert theirs.
            if session.scalar(select(RunRow.id).where(RunRow.id == record.id)):
                _delete(session, [record.id])
            session.execute(insert(RunRow), row)
            for table, pairs in values.items():
                if pairs:
                    session.execute(
                        insert(table), [{"run_id": record.id, "name": name, "value": value} for name, value in pairs]
                    )

        self._write(store)

    def _write(self, work: Callable[[Session], None]) -> None:
        """Do `work` in a transaction; repeat it when it is rolled back for another one. Raises `StoreError`."""
        for attempt in range(ATTEMPTS):
            try:
                with self._guard("write to"), Session(self._writing) as session, session.begin():
                    return work(session)
            except StoreError as error:
                if attempt + 1 == ATTEMPTS or not is_conflict(error.__cause__):
                    raise
            time.sleep(random.uniform(0, 0.05 * 2**attempt))

    def find(self, run_id: str, build: str | None = None) -> Record | None:
        """Return the run with exactly this id (and, when given, made by this build of the core), else None.

        A run whose record is damaged is not there: to run it again stores it again.
        """
        query = select(RunRow.record).where(RunRow.id == run_id)
        if build is not None:
            query = query.where(RunRow.build == build)
        with self._guard("read"), Session(self._engine) as session:
            text = session.scalar(query)
        found = None if text is None else _read(run_id, text)
        return found if isinstance(found, Record) else None

    def get(self, prefix: str) -> Record:
        """Return the run whose id begins with `prefix`.

        Raises `InputError` when none or several do, `StoreError` when its record is damaged.
        """
        found = self.look(prefix)
        if isinstance(found, Damaged):
            raise StoreError(str(found))
        return found

    def look(self, prefix: str) -> Record | Damaged:
        """Return the run whose id begins with `prefix`. Raises `InputError` when none or several do."""
        run_id = self.id_of(prefix)
        with self._guard("read"), Session(self._engine) as session:
            return _read(run_id, session.scalar(select(RunRow.record).where(RunRow.id == run_id)))

    def id_of(self, prefix: str) -> str:
        """Return the id that begins with `prefix`. Raises `InputError` when none or several do."""
        if len(prefix) < LEAST_PREFIX:
            raise InputError(f"id {prefix!r}: give at least its first {LEAST_PREFIX} characters")
        query = select(RunRow.id).where(RunRow.id.startswith(prefix, autoescape=True)).limit(2)
        with self._guard("read"), Session(self._engine) as session:
            found = session.scalars(query).all()
        if not found:
            raise InputError(f"no run {prefix} in {self.location}; `elephan results list` shows those there are")
        if len(found) > 1:
            raise InputError(f"several runs begin with {prefix}; give more characters of the id")
        return found[0]

    def list(self, which: Filter | None = None) -> list[Record]:
        """Return runs, newest first. Raises `StoreError`, also when a record is damaged."""
        found = self.read(which)
        for one in found:
            if isinstance(one, Damaged):
                raise StoreError(str(one))
        return [one for one in found if isinstance(one, Record)]

    def read(self, which: Filter | None = None) -> list[Record | Damaged]:
        """Return runs, newest first, those that cannot be read among them. Raises `StoreError`."""
        query = _fitting(select(RunRow.id, RunRow.record), which or Filter())
        with self._guard("read"), Session(self._engine) as session:
            return [_read(run_id, text) for run_id, text in session.execute(query)]

    def summaries(self, which: Filter | None = None) -> list[Summary]:
        """Return runs by their columns, newest first. Raises `StoreError`."""
        columns = (RunRow.id, RunRow.created, RunRow.scenario, RunRow.ground, RunRow.version, RunRow.seed)
        query = _fitting(select(*columns, RunRow.flow_series, RunRow.link_series), which or Filter())
        with self._guard("read"), Session(self._engine) as session:
            return [
                Summary(*row[: len(columns)], tuple(name for name in row[len(columns) :] if name))
                for row in session.execute(query)
            ]

    def parameters(self) -> dict[str, dict[str, str]]:
        """Return the parameters of every run by its id, values as text. Raises `StoreError`."""
        found: dict[str, dict[str, str]] = {}
        query = select(ParameterRow.run_id, ParameterRow.name, ParameterRow.value)
        with self._guard("read"), Session(self._engine) as session:
            for run_id, name, value in session.execute(query):
                found.setdefault(run_id, {})[name] = value
        return found

    def stored(self, run_id: str) -> Stored | None:
        """Return the row with this id as it is, None when there is none. Raises `StoreError`."""
        with self._guard("read"), Session(self._engine) as session:
            row = session.get(RunRow, run_id)
            if row is None:
                return None
            return Stored(row.id, row.record, row.sha256, {"flow": row.flow_series, "link": row.link_series})

    def delete(self, ids: Sequence[str]) -> None:
        """Remove runs by their ids, and then their series. Raises `StoreError`.

        What ends it in between leaves series without a run, which `results prune --files` removes.
        """
        self._write(lambda session: _delete(session, ids))
        for run_id in ids:
            for path in paths_of(self.series_folder, stem_of(run_id)):
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    raise StoreError(f"cannot remove {path}: {error.strerror}") from error

    def count(self) -> int:
        """Return how many runs there are."""
        with self._guard("read"), Session(self._engine) as session:
            return session.scalar(select(func.count()).select_from(RunRow)) or 0

    def series(self, run_id: str) -> Series | None:
        """Return the time series of a run, None when it has none. Raises `StoreError` when its files are gone."""
        row = self.stored(run_id)
        return None if row is None else self.series_named(row.series)

    def series_named(self, names: Mapping[str, str | None]) -> Series | None:
        """Return the time series with these file names by kind, None when not all have one. Raises `StoreError`."""
        present = {kind: name for kind, name in names.items() if name}
        if len(present) < len(KINDS):
            return None
        from elephan.store.series import Series

        former = self.place.former_series
        if former is not None and not (self.series_folder / present[KINDS[0]]).exists():
            return Series.read(former, present)
        return Series.read(self.series_folder, present)


def open_store(location: str | None = None, series_folder: Path | None = None) -> Store:
    """Open the store at `location`, by default the user's own. Raises `StoreError`, `InputError`."""
    return Store(location or default_location(), series_folder)


def store_for(store: str | Store | None) -> Store | None:
    """Return where runs are to be kept, None for "none". Raises `StoreError` when nothing can be kept there."""
    if store == "none":
        return None
    keep = store if isinstance(store, Store) else open_store(store)
    keep.must_take()
    return keep


def _fitting(query: Select[Any], which: Filter) -> Select[Any]:
    """Return a query over `RunRow` for what a filter passes, newest first."""
    query = query.order_by(RunRow.created.desc(), RunRow.id)
    if which.scenario is not None:
        query = query.where(RunRow.scenario == which.scenario)
    for name, value in which.parameters.items():
        query = query.where(
            RunRow.id.in_(select(ParameterRow.run_id).where(ParameterRow.name == name, ParameterRow.value == value))
        )
    return query if which.newest is None else query.limit(which.newest)


def _delete(session: Session, ids: Sequence[str]) -> None:
    """Delete the rows of runs, those first that point to others."""
    for first in range(0, len(ids), AT_ONCE):
        some = ids[first : first + AT_ONCE]
        for table in (MetricRow, ParameterRow):
            session.execute(delete(table).where(table.run_id.in_(some)))
        session.execute(delete(RunRow).where(RunRow.id.in_(some)))


def digest_of(text: str) -> str:
    """Return the SHA-256 of a record's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _read(run_id: str, text: Any) -> Record | Damaged:
    try:
        return Record.from_json(text)
    except StoreError as error:
        return Damaged(run_id, str(error))


def as_text(value: Any) -> str:
    """Return a parameter's value as `--where` and the parameter table write it."""
    return value if isinstance(value, str) else canonical_json(value)


def _prepare_sqlite(connection: Any, _: object) -> None:
    """WAL: readers go on while a run is stored. FULL: a commit lasts through a power cut (sqlite.org/wal.html)."""
    # Transactions are begun by hand: the driver would begin none before it makes a table.
    connection.isolation_level = None
    # A damaged record is to be named, and not to end a list.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    cursor = connection.cursor()
    cursor.execute(f"pragma busy_timeout = {BUSY_TIMEOUT_MS}")
    _use_wal(cursor)
    cursor.execute("pragma synchronous = FULL")
    cursor.execute("pragma foreign_keys = ON")
    cursor.close()


def _use_wal(cursor: Any) -> None:
    """Change to WAL, where two commands may do so at once: one is told at once that the database is locked."""
    until_s = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            cursor.execute("pragma journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until_s:
                raise
        time.sleep(0.01)


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))
