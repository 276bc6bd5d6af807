"""Records in a database. Each run is one transaction, committed after its series are on the disk.

So a crash, a full disk or a kill leaves every earlier run, and at worst a series file without a row, which the next
run of the same point replaces.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, delete, event, func, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.orm import Session

from elephan import places
from elephan.errors import InputError, StoreError, StoreUnusable
from elephan.record import Record, canonical_json
from elephan.store.migrate import migrate
from elephan.store.schema import MetricRow, ParameterRow, RunRow
from elephan.store.series import Series, paths_of

BUSY_TIMEOUT_MS = 30_000
"""How long SQLite waits for another writer, ms: longer than any single store of a run."""

DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
"""Driver of a URL that names none: those that the package's extras `postgresql` and `mariadb` install."""

LEAST_PREFIX = 4
"""Hex digits of an id that a person must give at least."""


def data_folder() -> Path:
    """Return where elephan keeps what it stores (XDG Base Directory Specification: XDG_DATA_HOME)."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "elephan"


def default_location() -> str:
    """Return $ELEPHAN_STORE, else the file `results.sqlite` in the user's data folder."""
    return os.environ.get("ELEPHAN_STORE") or str(data_folder() / "results.sqlite")


def as_url(location: str) -> URL:
    """Return the database URL of a URL or of a path to an SQLite file. Raises `InputError`."""
    if "://" not in location:
        return URL.create("sqlite", database=str(Path(location).expanduser().absolute()))
    try:
        url = make_url(location)
        return url.set(drivername=DRIVERS.get(url.drivername, url.drivername))
    except ArgumentError as error:
        raise InputError(
            f"--store {location}: not a database URL; right are a file name, sqlite:///FILE, postgresql://USER@HOST/NAME"
        ) from error


@dataclass(frozen=True)
class Filter:
    """Which runs to list; what is None does not restrict."""

    scenario: str | None = None
    """The scenario's name."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Parameters with their value as text."""
    newest: int | None = None
    """At most so many, newest first."""


class Store:
    """A database and the folder of its series."""

    def __init__(self, location: str, series_folder: Path | None = None) -> None:
        """Open the store, make or upgrade its tables.

        Raises `StoreUnusable` when there can be no store at `location`, and leaves nothing there then; `StoreError`,
        `InputError` for a wrong URL.
        """
        self.url = as_url(location)
        self.location = self.url.render_as_string(hide_password=True)
        self.given = location if "://" not in location else self.location
        self.series_folder = series_folder or self._series_folder()
        self._made = self._missing()
        try:
            self._engine = self._open()
            with self._guard("open"), self._engine.begin() as connection:
                migrate(connection)
        except BaseException:
            self._leave_nothing()
            raise

    def _missing(self) -> list[Path]:
        """Return what opening would make: the database's file and the folders above it."""
        if not self._is_file():
            return []
        file = Path(str(self.url.database))
        if os.path.isdir(file):
            raise self._unusable("it is a folder")
        return [part for part in (file, *file.parents) if not os.path.exists(part)]

    def _leave_nothing(self) -> None:
        """Remove what opening made."""
        if hasattr(self, "_engine"):
            self._engine.dispose()
        for part in self._made:
            with suppress(OSError):
                part.rmdir() if part.is_dir() else part.unlink(missing_ok=True)
            if part == self._made[0]:
                for ending in ("-wal", "-shm", "-journal"):
                    with suppress(OSError):
                        part.with_name(part.name + ending).unlink(missing_ok=True)

    def _is_file(self) -> bool:
        return self.url.get_backend_name() == "sqlite" and self.url.database not in (None, "", ":memory:")

    def _unusable(self, reason: str) -> StoreUnusable:
        return StoreUnusable(f"{named(self.given)}: cannot keep results there: {reason}")

    def must_take(self) -> None:
        """Raise `StoreUnusable` when no run can be stored, and leave nothing new: asked before runs that take hours."""
        try:
            self._must_take()
        except StoreUnusable:
            self._leave_nothing()
            raise

    def _must_take(self) -> None:
        try:
            with self._engine.connect() as connection:
                # Needs what a write needs, and is taken back.
                connection.execute(text("update alembic_version set version_num = version_num"))
                connection.rollback()
        except SQLAlchemyError as error:
            raise self._unusable(reason_of(error)) from error
        reason = places.why_not_writable(self.series_folder)
        if reason is not None:
            raise self._unusable(f"{self.series_folder}, for time series: {reason}")

    def _series_folder(self) -> Path:
        if self.url.get_backend_name() == "sqlite" and self.url.database:
            file = Path(self.url.database)
            return file.with_name(f"{file.stem}.series")
        return data_folder() / "series"

    def _open(self) -> Engine:
        sqlite = self.url.get_backend_name() == "sqlite"
        if self._is_file():
            try:
                Path(str(self.url.database)).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise self._unusable(places.reason_of(error)) from error
        try:
            engine = create_engine(self.url)
        except ImportError as error:
            raise InputError(
                f"--store {self.location}: the driver {error.name} is not installed; pip install {error.name}"
            ) from error
        except SQLAlchemyError as error:
            raise InputError(f"--store {self.location}: {reason_of(error)}") from error
        if sqlite:
            event.listen(engine, "connect", _prepare_sqlite)
        return engine

    @contextmanager
    def _guard(self, act: str) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            if act == "open":
                raise self._unusable(reason_of(error)) from error
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
        stem = f"{record.id[:2]}/{record.id}"
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
        row = RunRow(
            id=record.id,
            format=record.format,
            created=record.created,
            scenario=record.scenario.name[:255],
            ground=record.ground,
            version=record.version,
            build=str(record.host.get("build", "")),
            seed=str(record.seed),
            record=record.to_json(),
            flow_series=names.get("flow"),
            link_series=names.get("link"),
        )
        with self._guard("write to"), Session(self._engine) as session, session.begin():
            for table in (MetricRow, ParameterRow):
                session.execute(delete(table).where(table.run_id == record.id))
            session.execute(delete(RunRow).where(RunRow.id == record.id))
            session.add(row)
            session.flush()
            session.add_all(
                MetricRow(run_id=record.id, name=name, value=value) for name, value in record.metrics.items()
            )
            session.add_all(
                ParameterRow(run_id=record.id, name=name, value=as_text(value))
                for name, value in record.parameters.items()
            )

    def find(self, run_id: str, build: str | None = None) -> Record | None:
        """Return the run with exactly this id (and, when given, made by this build of the core), else None."""
        query = select(RunRow.record).where(RunRow.id == run_id)
        if build is not None:
            query = query.where(RunRow.build == build)
        with self._guard("read"), Session(self._engine) as session:
            text = session.scalar(query)
        return None if text is None else Record.from_json(text)

    def get(self, prefix: str) -> Record:
        """Return the run whose id begins with `prefix`. Raises `InputError` when none or several do."""
        if len(prefix) < LEAST_PREFIX:
            raise InputError(f"id {prefix!r}: give at least its first {LEAST_PREFIX} characters")
        query = select(RunRow.record).where(RunRow.id.startswith(prefix, autoescape=True)).limit(2)
        with self._guard("read"), Session(self._engine) as session:
            found = session.scalars(query).all()
        if not found:
            raise InputError(f"no run {prefix} in {self.location}; `elephan results list` shows those there are")
        if len(found) > 1:
            raise InputError(f"several runs begin with {prefix}; give more characters of the id")
        return Record.from_json(found[0])

    def list(self, which: Filter | None = None) -> list[Record]:
        """Return runs, newest first. Raises `StoreError`."""
        which = which or Filter()
        query = select(RunRow.record).order_by(RunRow.created.desc(), RunRow.id)
        if which.scenario is not None:
            query = query.where(RunRow.scenario == which.scenario)
        for name, value in which.parameters.items():
            query = query.where(
                RunRow.id.in_(select(ParameterRow.run_id).where(ParameterRow.name == name, ParameterRow.value == value))
            )
        if which.newest is not None:
            query = query.limit(which.newest)
        with self._guard("read"), Session(self._engine) as session:
            return [Record.from_json(text) for text in session.scalars(query)]

    def count(self) -> int:
        """Return how many runs there are."""
        with self._guard("read"), Session(self._engine) as session:
            return session.scalar(select(func.count()).select_from(RunRow)) or 0

    def series(self, run_id: str) -> Series | None:
        """Return the time series of a run, None when it has none. Raises `StoreError` when its files are gone."""
        with self._guard("read"), Session(self._engine) as session:
            row = session.get(RunRow, run_id)
            names = {} if row is None else {"flow": row.flow_series, "link": row.link_series}
        present = {kind: name for kind, name in names.items() if name}
        return Series.read(self.series_folder, present) if len(present) == 2 else None


def open_store(location: str | None = None, series_folder: Path | None = None) -> Store:
    """Open the store at `location`, by default the user's own. Raises `StoreError`, `InputError`."""
    return Store(location or default_location(), series_folder)


def store_for(store: str | Store | None) -> Store | None:
    """Return where runs are to be kept, None for "none". Raises `StoreUnusable` when nothing can be kept there."""
    if store == "none":
        return None
    keep = store if isinstance(store, Store) else open_store(store)
    keep.must_take()
    return keep


def named(location: str) -> str:
    """Return how the user named a place for results: the option, the variable, or not at all."""
    if location == default_location():
        return f"$ELEPHAN_STORE {location}" if os.environ.get("ELEPHAN_STORE") else f"the store {location}"
    return f"--store {location}"


def as_text(value: Any) -> str:
    """Return a parameter's value as `--where` and the parameter table write it."""
    return value if isinstance(value, str) else canonical_json(value)


def reason_of(error: BaseException) -> str:
    """Return the database's own words, one line, without SQL and without links."""
    origin = getattr(error, "orig", None) or error
    return str(origin).strip().splitlines()[0]


def _prepare_sqlite(connection: Any, _: object) -> None:
    """WAL: readers go on while a run is stored. FULL: a commit lasts through a power cut (sqlite.org/wal.html)."""
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
    ):
        cursor.execute(f"pragma {pragma}")
    cursor.close()
