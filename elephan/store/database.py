"""Records in a database. A transaction holds whole runs, and is committed after their series are on the disk.

So a crash, a full disk or a kill leaves every earlier run, and at worst a series file without a row, which the next
run of the same point replaces. Runs that a server cannot take are kept on this machine until it is back (`spool`).
"""

from __future__ import annotations

import builtins
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephan.errors import InputError, StoreAway, StoreError
from elephan.printable import printable
from elephan.record import Record
from elephan.store.files import KINDS, Syncs, paths_of, stem_of
from elephan.store.place import Place, default_location, is_away, is_conflict, named, reason_of
from elephan.store.revision import HEAD
from elephan.store.rows import COLUMNS, Rows, delete, digest_of, parameters_of, present, put
from elephan.store.spool import Spool
from elephan.store.sql import Database, Engine, Execute, Fault, File
from elephan.units import pluralize

if TYPE_CHECKING:
    from elephan.store.series import Series, SeriesFiles

LEAST_PREFIX = 4
"""Hex digits of an id that a person must give at least."""

ATTEMPTS = 8
"""Attempts at a transaction that the database takes back in favour of another one."""

RETRY_S = 5.0
"""Time between two attempts to reach a server that is away, s."""


@dataclass(frozen=True)
class Filter:
    """Selection of runs to list; None does not restrict."""

    scenario: str | None = None
    """The scenario's name."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Parameters with their value as text."""
    newest: int | None = None
    """At most so many, newest first."""
    metric: str | None = None
    """Runs that have this metric."""


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

    def __init__(
        self,
        location: str,
        series_folder: Path | None = None,
        say: Callable[[str], None] | None = None,
        as_it_is: bool = False,
    ) -> None:
        """Open the store, make or upgrade its tables, send what waits for it; `say` takes lines for the user (stderr).
        With `as_it_is` nothing is made, upgraded or sent.

        Raises `StoreUnusable` when there can be no store at `location`, and makes nothing there then; `StoreError` when
        it cannot be opened; `InputError` for a wrong URL.
        """
        self.place = Place.of(location, series_folder)
        if not as_it_is:
            self.place.prepare()
        self.location = self.place.location
        self.series_folder = self.place.series
        self._say = say or _to_stderr
        self._syncs = Syncs()
        self._spool = None if self.place.spool is None else Spool(self.place.spool)
        self._away_since_s: float | None = None
        """Time of the last attempt at a server that is away, None when it is there."""
        try:
            by_url = self.place.by_url
            self._database: Database = Engine(self.place) if by_url else File(Path(str(self.place.file)), as_it_is)
        except Fault as fault:
            raise self.place.failed(fault) from fault
        if as_it_is:
            return
        try:
            if not self.is_up_to_date():
                self._bring_up_to_date()
            self.send_unsent()
        except BaseException as error:
            self.close()
            if isinstance(error, Fault):
                raise self.place.failed(error) from error
            raise

    def is_up_to_date(self) -> bool:
        """Return True if its tables are this elephan's."""
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
            kind = StoreAway if is_away(fault) else StoreError
            raise kind(f"cannot read the store {self.location}: {reason_of(fault)}") from fault

    def _read_again(self, work: Callable[[Execute], builtins.list[tuple[Any, ...]]]) -> builtins.list[tuple[Any, ...]]:
        """Do `work`, twice if need be: the first failure may be that of a connection from before a server's restart."""
        try:
            with self._reading() as execute:
                return work(execute)
        except StoreAway:
            with self._reading() as execute:
                return work(execute)

    def _note_away(self, error: StoreAway) -> None:
        """Take the server for away from now on; say so once."""
        assert self._spool is not None
        if self._away_since_s is None:
            self._say(f"{error}; runs are kept in {self._spool.path} until it is back")
        self._away_since_s = time.monotonic()

    def _write(self, work: Callable[[Execute], None]) -> None:
        """Do `work` in a transaction; repeat it when it is rolled back for another one. Raises `StoreError`."""
        for attempt in range(ATTEMPTS):
            try:
                with self._database.transaction(writing=True) as execute:
                    return work(execute)
            except Fault as fault:
                away = is_away(fault)
                # The first failure may be that of a connection from before a restart of the server.
                if attempt + 1 == ATTEMPTS or not (is_conflict(fault) or away and attempt == 0):
                    kind = StoreAway if away else StoreError
                    raise kind(f"cannot write to the store {self.location}: {reason_of(fault)}") from fault
            time.sleep(random.uniform(0, 0.05 * 2**attempt))

    def close(self) -> None:
        """Close the database."""
        self._syncs.close()
        if self._spool is not None:
            self._spool.close()
        if hasattr(self, "_database"):
            self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def save(self, record: Record, series: Series | None) -> None:
        """Store one run in one transaction, in place of an earlier one with its id. Raises `StoreError`.

        When it fails, what was there before is there still, and no file of this run is left behind. A run that a server
        cannot take, because it is away, is kept on this machine; the user is told in a line.
        """
        self.save_all([(record, series)])

    def save_all(self, several: Sequence[tuple[Record, Series | SeriesFiles | None]]) -> None:
        """Store several runs in one transaction, all or none; else as `save`. Raises `StoreError`."""
        folder = self.series_folder
        # Two points of a sweep may be one run.
        runs = list({record.id: (record, series) for record, series in several}.values())
        # Series of an earlier run with this id have its row to belong to, and stay.
        made = [
            path
            for record, series in runs
            if series
            for path in paths_of(folder, stem_of(record.id))
            if not path.exists()
        ]
        try:
            self._put([Rows.of(record, names) for (record, _), names in zip(runs, self._series(runs), strict=True)])
        except BaseException:
            for path in made:
                # The removal may fail for the same reason as the writing.
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            raise

    def _series(self, runs: Sequence[tuple[Record, Series | SeriesFiles | None]]) -> builtins.list[dict[str, str]]:
        """Write the series of runs; return the names of each run's files by kind."""
        written = [(series, stem_of(record.id)) for record, series in runs if series]
        if not written:
            return [{} for _ in runs]
        from elephan.store.series import write_series

        names = iter(write_series(written, self.series_folder, self._syncs))
        return [next(names) if series else {} for _, series in runs]

    def _put(self, rows: Sequence[Rows]) -> None:
        """Write rows, to the spool where the server is away."""
        if self._is_resting():
            return self._keep(rows)
        try:
            if self._away_since_s is not None:
                # First, so that later runs take the places of earlier ones.
                self._send()
            self._write(lambda execute: put(execute, rows))
        except StoreAway as error:
            self._keep(rows, error)
        else:
            self._away_since_s = None

    def _is_resting(self) -> bool:
        """Return True if the server was away a moment ago: an attempt may take seconds."""
        return self._away_since_s is not None and time.monotonic() - self._away_since_s < RETRY_S

    def _keep(self, rows: Sequence[Rows], error: StoreAway | None = None) -> None:
        """Keep rows on this machine; `error` says that the server has just been found away."""
        assert self._spool is not None
        try:
            self._spool.keep(rows)
        except (StoreError, Fault) as fault:
            raise StoreError(f"{error or f'the store {self.location} is away'}; {fault}") from fault
        if error is not None:
            self._note_away(error)

    def send_unsent(self) -> int:
        """Send runs that were kept while the server was away, and say so; return how many. Raises `StoreError`."""
        sent = self._send()
        self._away_since_s = None
        return sent

    def _send(self) -> int:
        sent = 0
        while self._spool is not None and (rows := self._spool.first()):
            self._write(lambda execute, rows=rows: _put_older(execute, rows))  # type: ignore[misc]
            self._spool.drop(rows)
            sent += len(rows)
        if sent:
            have = "has" if sent == 1 else "have"
            self._say(f"{pluralize(sent, 'run')} that {have} waited for the store {self.location} {have} been sent")
        return sent

    def unsent(self) -> int:
        """Return how many runs wait for the server. Raises `StoreError`."""
        return 0 if self._spool is None else self._spool.count()

    def settle(self, attempt: bool = True) -> None:
        """End a sweep: send what was kept for a server that was away, or say where it waits. Raises `StoreError`."""
        self._syncs.close()
        if self._away_since_s is None:
            return
        assert self._spool is not None
        if attempt:
            with suppress(StoreAway):
                self.send_unsent()
                return
        waiting = self._spool.count()
        self._say(
            f"{pluralize(waiting, 'run')} {'waits' if waiting == 1 else 'wait'} in {self._spool.path}: the next "
            f"command with this store sends {'it' if waiting == 1 else 'them'}, as does: elephan results send"
        )

    def find(self, run_id: str, build: str | None = None) -> Record | None:
        """Return the run with exactly this id (and, when given, made by this build of the core), else None.

        A run whose record is damaged is not there: to run it again stores it again.
        """
        return self.find_all([run_id], build).get(run_id)

    def find_all(self, ids: Sequence[str], build: str | None = None) -> dict[str, Record]:
        """Return the runs with these ids, as `find` does for one. While a server is away, those that are kept here."""
        suffix = "" if build is None else " and build = :build"
        values = {} if build is None else {"build": build}
        try:
            if self._is_resting():
                raise StoreAway
            rows = self._read_again(lambda execute: present(execute, ids, "id, record, sha256", suffix, values))
        except StoreAway as error:
            if not self._is_resting():
                self._note_away(error)
            kept = [one.run for one in self._kept(ids)]
            rows = [(one["id"], one["record"], one["sha256"]) for one in kept if build in (None, one["build"])]
        found = {run_id: _read(run_id, text, sha256) for run_id, text, sha256 in rows}
        return {run_id: one for run_id, one in found.items() if isinstance(one, Record)}

    def ids_of(self, ids: Sequence[str], build: str) -> set[str]:
        """Return those of these ids whose runs were made by a build of the core. Raises `StoreError`."""
        with self._reading() as execute:
            return {row[0] for row in present(execute, ids, "id", " and build = :build", {"build": build})}

    def times(self, scenario: str, backend: str, most: int) -> builtins.list[tuple[dict[str, str], float]]:
        """Return parameters (values as text) and CPU time, s, of the newest runs of a scenario. Raises `StoreError`."""
        query = (
            "select r.id, m.value from run r join metric m on m.run_id = r.id and m.name = 'cpu_s' "
            "where r.scenario = :scenario and r.backend = :backend and m.value is not null "
            f"order by r.created desc, r.id limit {int(most)}"
        )
        with self._reading() as execute:
            found = {row[0]: row[1] for row in execute(query, {"scenario": scenario[:255], "backend": backend})}
            parameters: dict[str, dict[str, str]] = {run_id: {} for run_id in found}
            for run_id, name, value in parameters_of(execute, list(found)):
                parameters[run_id][name] = value
        return [(parameters[run_id], float(seconds)) for run_id, seconds in found.items()]

    def _kept(self, ids: Sequence[str]) -> builtins.list[Rows]:
        return [] if self._spool is None else self._spool.rows_of(ids)

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
        try:
            rows = self._read_again(lambda execute: execute(query, {"id": run_id}))
        except StoreAway:
            names = ("record", "sha256", "flow_series", "link_series", *COLUMNS)
            rows = [tuple(one.run[name] for name in names) for one in self._kept([run_id])]
            if not rows:
                raise
        if not rows:
            return None
        text, sha256, flow, link, *columns = rows[0]
        return Stored(run_id, text, sha256, {"flow": flow, "link": link}, dict(zip(COLUMNS, columns, strict=True)))

    def delete(self, ids: Sequence[str]) -> None:
        """Remove runs by their ids, and then their series. Raises `StoreError`.

        An interruption leaves series without a run, which `results prune --files` removes.
        """
        self._write(lambda execute: delete(execute, ids))
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
        """Return the time series of a run, None when it has none. Raises `StoreError` when its files are missing."""
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


def to_look_at(location: str | None) -> Store | None:
    """Open a store without making, upgrading or sending anything; None where that cannot be. Raises `InputError`."""
    place = Place.of(location or default_location())
    if not place.exists:
        return None
    try:
        found = Store(location or default_location(), as_it_is=True)
    except StoreError:
        return None
    if found.is_up_to_date():
        return found
    found.close()
    return None


def store_for(store: str | Store | None) -> Store | None:
    """Return where runs are to be kept, None for "none". Raises `StoreError` when nothing can be kept there."""
    if store == "none":
        return None
    keep = store if isinstance(store, Store) else open_store(store)
    keep.must_take()
    return keep


def _put_older(execute: Execute, rows: Sequence[Rows]) -> None:
    """Write rows that have waited, but for runs that the server has got a later record of meanwhile."""
    there = dict(present(execute, [one.id for one in rows], "id, created"))
    put(execute, [one for one in rows if there.get(one.id, "") <= one.run["created"]])


def _to_stderr(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)


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
    if which.metric is not None:
        conditions.append("id in (select run_id from metric where name = :metric)")
        values["metric"] = which.metric
    query = f"select {columns} from run"
    if conditions:
        query += f" where {' and '.join(conditions)}"
    query += " order by created desc, id"
    return query + ("" if which.newest is None else f" limit {int(which.newest)}"), values


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
