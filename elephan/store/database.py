"""Records in a database. Each run is one transaction, committed after its series are on the disk.

So a crash, a full disk or a kill leaves every earlier run, and at worst a series file without a row, which the next
run of the same point replaces.
"""

from __future__ import annotations

import builtins
import hashlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephan.errors import InputError, StoreError
from elephan.record import Record, canonical_json
from elephan.store.files import KINDS, paths_of, stem_of
from elephan.store.place import Place, default_location, is_conflict, named, reason_of
from elephan.store.revision import HEAD
from elephan.store.sql import Database, Engine, Execute, Fault, File

if TYPE_CHECKING:
    from elephan.store.series import Series

LEAST_PREFIX = 4
"""Hex digits of an id that a person must give at least."""

ATTEMPTS = 8
"""Attempts at a transaction that the database takes back in favour of another one."""

AT_ONCE = 500
"""Ids in one statement: SQLite takes 999 values, the other databases more."""


@dataclass(frozen=True)
class Filter:
    """Selection of runs to list; None does not restrict."""

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
        """Format it on one line."""
        return f"run {self.id}: {self.reason}"


@dataclass(frozen=True)
class Summary:
    """A run by the columns of its row, so that a damaged record is no hindrance."""

    id: str
    created: str
    scenario: str
    backend: str
    version: str
    seed: str
    series: tuple[str, ...]
    """Names of its series files."""


def _summary(run_id: str, created: str, scenario: str, backend: str, version: str, seed: str, *series: str) -> Summary:
    return Summary(run_id, created, scenario, backend, version, seed, tuple(name for name in series if name))


COLUMNS = ("format", "created", "scenario", "backend", "version", "build", "seed")
"""Columns of a run that repeat values of its record."""


def columns_of(record: Record) -> dict[str, object]:
    """Return the columns of a record's row."""
    return {
        "format": record.format,
        "created": record.created,
        "scenario": record.scenario.name[:255],
        "backend": record.backend,
        "version": record.version,
        "build": str(record.host.get("build", "")),
        "seed": str(record.seed),
    }


@dataclass(frozen=True)
class Stored:
    """A row as it is: the record's text, its digest and its columns."""

    id: str
    record: str
    sha256: str | None
    series: dict[str, str | None]
    columns: dict[str, object]
    """Columns beside the record, to choose runs by."""


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
        try:
            self._database: Database = Engine(self.place) if self.place.by_url else File(Path(str(self.place.file)))
        except Fault as fault:
            raise self.place.failed(fault) from fault
        try:
            if not self._is_at_head():
                self._bring_up_to_date()
        except BaseException as error:
            self.close()
            if isinstance(error, Fault):
                raise self.place.failed(error) from error
            raise

    def _is_at_head(self) -> bool:
        # Without SQLAlchemy: it is so nearly always.
        with suppress(Fault), self._database.transaction() as execute:
            return execute("select version_num from alembic_version", {}) == [(HEAD,)]
        return False

    def _bring_up_to_date(self) -> None:
        from elephan.store.migrate import bring_up_to_date

        try:
            bring_up_to_date(self.place)
        except StoreError as error:
            raise StoreError(f"{named(self.place.given)}: {error}") from error

    def must_take(self) -> None:
        """Raise `StoreError` when no run can be stored: asked before runs that take hours."""
        try:
            with suppress(_TakenBack), self._database.transaction(writing=True) as execute:
                execute("update alembic_version set version_num = version_num", {})
                raise _TakenBack
        except Fault as fault:
            raise self.place.failed(fault) from fault
        self.place.must_take_series()

    @contextmanager
    def _reading(self) -> Iterator[Execute]:
        try:
            with self._database.transaction() as execute:
                yield execute
        except Fault as fault:
            raise StoreError(f"cannot read the store {self.location}: {reason_of(fault)}") from fault

    def _write(self, work: Callable[[Execute], None]) -> None:
        """Do `work` in a transaction; repeat it when it is rolled back for another one. Raises `StoreError`."""
        for attempt in range(ATTEMPTS):
            try:
                with self._database.transaction(writing=True) as execute:
                    return work(execute)
            except Fault as fault:
                if attempt + 1 == ATTEMPTS or not is_conflict(fault):
                    raise StoreError(f"cannot write to the store {self.location}: {reason_of(fault)}") from fault
            time.sleep(random.uniform(0, 0.05 * 2**attempt))

    def close(self) -> None:
        """Close the database."""
        self._database.close()

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
                    # The removal may fail for the same reason as the writing.
                    with suppress(OSError):
                        path.unlink(missing_ok=True)
            raise

    def _save(self, record: Record, names: dict[str, str]) -> None:
        text = record.to_json()
        row = {
            "id": record.id,
            **columns_of(record),
            "record": text,
            "flow_series": names.get("flow"),
            "link_series": names.get("link"),
            "sha256": digest_of(text),
        }
        metrics = [{"run_id": record.id, "name": name, "value": value} for name, value in record.metrics.items()]
        parameters = [
            {"run_id": record.id, "name": name, "value": as_text(value)} for name, value in record.parameters.items()
        ]

        def store(execute: Execute) -> None:
            # Rows that are not there are not deleted: MariaDB would lock the gap where others insert theirs.
            if execute("select id from run where id = :id", {"id": record.id}):
                _delete(execute, [record.id])
            execute(_insert("run", row), row)
            for table, rows in (("metric", metrics), ("parameter", parameters)):
                if rows:
                    execute(_insert(table, rows[0]), rows)

        self._write(store)

    def find(self, run_id: str, build: str | None = None) -> Record | None:
        """Return the run with exactly this id (and, when given, made by this build of the core), else None.

        A run whose record is damaged is not there: to run it again stores it again.
        """
        query = "select record, sha256 from run where id = :id" + ("" if build is None else " and build = :build")
        with self._reading() as execute:
            rows = execute(query, {"id": run_id} | ({} if build is None else {"build": build}))
        found = _read(run_id, *rows[0]) if rows else None
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
        with self._reading() as execute:
            return _read(run_id, *execute("select record, sha256 from run where id = :id", {"id": run_id})[0])

    def id_of(self, prefix: str) -> str:
        """Return the id that begins with `prefix`. Raises `InputError` when none or several do."""
        if len(prefix) < LEAST_PREFIX:
            raise InputError(f"id {prefix!r}: give at least its first {LEAST_PREFIX} characters")
        pattern = "".join(f"!{sign}" if sign in "!%_" else sign for sign in prefix) + "%"
        with self._reading() as execute:
            found = execute("select id from run where id like :pattern escape '!' limit 2", {"pattern": pattern})
        if not found:
            raise InputError(f"no run {prefix} in {self.location}; `elephan results list` shows those there are")
        if len(found) > 1:
            raise InputError(f"several runs begin with {prefix}; give more characters of the id")
        return str(found[0][0])

    def list(self, which: Filter | None = None) -> list[Record]:
        """Return runs, newest first. Raises `StoreError`, also when a record is damaged."""
        found = self.read(which)
        for one in found:
            if isinstance(one, Damaged):
                raise StoreError(str(one))
        return [one for one in found if isinstance(one, Record)]

    def read(self, which: Filter | None = None) -> builtins.list[Record | Damaged]:
        """Return runs, newest first, those that cannot be read among them. Raises `StoreError`."""
        query, values = _fitting("id, record, sha256", which or Filter())
        with self._reading() as execute:
            return [_read(*row) for row in execute(query, values)]

    def summaries(self, which: Filter | None = None) -> builtins.list[Summary]:
        """Return runs by their columns, newest first. Raises `StoreError`."""
        columns = "id, created, scenario, backend, version, seed, flow_series, link_series"
        query, values = _fitting(columns, which or Filter())
        with self._reading() as execute:
            return [_summary(*row) for row in execute(query, values)]

    def parameters(self) -> dict[str, dict[str, str]]:
        """Return the parameters of every run by its id, values as text. Raises `StoreError`."""
        found: dict[str, dict[str, str]] = {}
        with self._reading() as execute:
            for run_id, name, value in execute("select run_id, name, value from parameter", {}):
                found.setdefault(run_id, {})[name] = value
        return found

    def stored(self, run_id: str) -> Stored | None:
        """Return the row with this id as it is, None when there is none. Raises `StoreError`."""
        query = f"select record, sha256, flow_series, link_series, {', '.join(COLUMNS)} from run where id = :id"
        with self._reading() as execute:
            rows = execute(query, {"id": run_id})
        if not rows:
            return None
        text, sha256, flow, link, *columns = rows[0]
        return Stored(run_id, text, sha256, {"flow": flow, "link": link}, dict(zip(COLUMNS, columns, strict=True)))

    def delete(self, ids: Sequence[str]) -> None:
        """Remove runs by their ids, and then their series. Raises `StoreError`.

        An interruption leaves series without a run, which `results prune --files` removes.
        """
        self._write(lambda execute: _delete(execute, ids))
        for run_id in ids:
            for path in paths_of(self.series_folder, stem_of(run_id)):
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    raise StoreError(f"cannot remove {path}: {error.strerror}") from error

    def count(self) -> int:
        """Return how many runs there are."""
        with self._reading() as execute:
            return int(execute("select count(*) from run", {})[0][0])

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


class _TakenBack(Exception):
    """Ends a transaction that was only to show that it is possible."""


def _fitting(columns: str, which: Filter) -> tuple[str, dict[str, Any]]:
    """Return the query for runs that a filter passes, newest first, and its values."""
    conditions, values = [], {}
    if which.scenario is not None:
        conditions.append("scenario = :scenario")
        values["scenario"] = which.scenario
    for number, (name, value) in enumerate(which.parameters.items()):
        conditions.append(f"id in (select run_id from parameter where name = :name{number} and value = :value{number})")
        values |= {f"name{number}": name, f"value{number}": value}
    query = f"select {columns} from run"
    if conditions:
        query += f" where {' and '.join(conditions)}"
    query += " order by created desc, id"
    return query + ("" if which.newest is None else f" limit {int(which.newest)}"), values


def _insert(table: str, row: Mapping[str, Any]) -> str:
    return f"insert into {table} ({', '.join(row)}) values ({', '.join(f':{name}' for name in row)})"


def _delete(execute: Execute, ids: Sequence[str]) -> None:
    """Delete the rows of runs, those first that point to others."""
    for first in range(0, len(ids), AT_ONCE):
        values = {f"id{number}": run_id for number, run_id in enumerate(ids[first : first + AT_ONCE])}
        names = ", ".join(f":{name}" for name in values)
        for column, table in (("run_id", "metric"), ("run_id", "parameter"), ("id", "run")):
            execute(f"delete from {table} where {column} in ({names})", values)


def digest_of(text: str) -> str:
    """Return the SHA-256 of a record's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _read(run_id: str, text: Any, sha256: str | None) -> Record | Damaged:
    """Return a record, or its damage; 0.1.0 stored no digest."""
    if sha256 is not None and isinstance(text, str) and digest_of(text) != sha256:
        # If it is no record at all, that error says more.
        try:
            Record.from_json(text)
        except StoreError as error:
            return Damaged(run_id, str(error))
        return Damaged(run_id, "its record is damaged: it is not what was stored (SHA-256)")
    try:
        return Record.from_json(text)
    except StoreError as error:
        return Damaged(run_id, str(error))


def as_text(value: Any) -> str:
    """Return a parameter's value as `--where` and the parameter table write it."""
    return value if isinstance(value, str) else canonical_json(value)
