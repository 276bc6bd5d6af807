"""The interface for notebooks and scripts: the same as the command, with objects instead of text."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from elephan import backends
from elephan.backends import Job
from elephan.errors import InputError
from elephan.printable import printable
from elephan.record import Record, ScenarioInfo
from elephan.run_spec.types import RunSpec

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from elephan.backends.hosts import HostBackend, HostOptions
    from elephan.report.html import OnProgress, Written
    from elephan.report.table import Table
    from elephan.scenario import Scenario
    from elephan.scenario.load import Point
    from elephan.store import Damaged, Series, Store
    from elephan.sweep.cluster import Cluster
    from elephan.sweep.dry_run import Plan
    from elephan.sweep.executor import Outcome
    from elephan.sweep.progress import Watcher
    from elephan.sweep.sampling import Looking

Overrides = Mapping[str, Any] | Sequence[str]
"""Changes of a scenario: {"path.loss": 1e-3}, or ["path.loss=1e-3"] as on the command line."""


class Results(Sequence[Record]):
    """Records of runs in order, with their time series."""

    def __init__(self, outcomes: Sequence[Outcome], store: Store | None) -> None:
        """Take over what `execute` gave."""
        self.outcomes = list(outcomes)
        self._series = {item.record.id: item for item in outcomes if item.held is not None}
        self._records = [item.record for item in outcomes]
        self._store = store
        self.damaged: tuple[Damaged, ...] = ()
        """Stored runs that were asked for and cannot be read."""

    @classmethod
    def of_records(cls, records: Sequence[Record | Damaged], store: Store | None) -> Results:
        """Make results of stored records; their series are read when asked for."""
        results = cls([], store)
        results._records = [one for one in records if isinstance(one, Record)]
        results.damaged = tuple(one for one in records if not isinstance(one, Record))
        return results

    @property
    def records(self) -> list[Record]:
        """The records in order."""
        return list(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: Any) -> Any:
        return self._records[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def series_of(self, record: Record) -> Series | None:
        """Return both series of a record; None when none were taken or they were not stored."""
        held = self._series.get(record.id)
        if held is not None:
            return held.series
        return None if self._store is None else self._store.series(record.id)

    def series(self, index: int = 0, kind: str = "flow") -> pyarrow.Table:
        """Return the time series of run `index` as an Arrow table: kind "flow" or "link".

        Straight after a run its columns are the core's own memory, without a copy; `elephan.store.series` says which
        columns there are. Raises `InputError` when the run has no series.
        """
        if kind not in ("flow", "link"):
            raise InputError(f'kind {kind!r}: "flow" or "link"')
        series = self.series_of(self._records[index])
        if series is None:
            raise InputError(f"run {index} has no series: the scenario says measure.series = false")
        return getattr(series, kind)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a frame with a row per run: id, scenario, seed, parameters, then metrics."""
        import pandas

        return pandas.DataFrame(flat_rows(self._records))

    def to_arrow(self) -> pyarrow.Table:
        """Return the same as an Arrow table."""
        import pyarrow

        return pyarrow.Table.from_pylist(uniform(flat_rows(self._records)))

    def table(self) -> Table:
        """Return the table of the report, aggregated over repetitions."""
        from elephan.report.point_table import table_of

        return table_of(self._records)

    def other_traffic(self) -> Table | None:
        """Return the table of background traffic, aggregated over repetitions; None without any."""
        from elephan.report.other_traffic import other_traffic_of

        return other_traffic_of(self._records)

    def report(self, folder: str | Path, on_progress: OnProgress | None = None) -> Written:
        """Write report.html and its PNGs into `folder`; `on_progress` gets the numbers. Raises `StoreError`."""
        from elephan.report.html import write_report

        if not self._records:
            raise InputError("there is no run to report")
        return write_report(self._records, self.series_of, Path(folder), on_progress)

    def _repr_html_(self) -> str:
        from elephan.report.notebook import as_html

        return as_html(self.table())

    def __repr__(self) -> str:
        from elephan.report.notebook import as_text

        return as_text(self.table()) if self._records else "no runs"


def flat_rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return a flat row per record: `id`, `scenario`, `backend`, `version`, `seed`, parameters, metrics.

    A parameter that has a metric's name is not overwritten: dotted parameters and metrics never meet.
    """
    rows = []
    for record in records:
        head = {
            "id": record.id,
            "scenario": record.scenario.name,
            "backend": record.backend,
            "version": record.version,
            "seed": record.seed,
        }
        rows.append(head | record.parameters | record.metrics)
    return rows


def uniform(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows that all have all columns, and one type in each: text where values are of several."""
    columns = dict.fromkeys(name for row in rows for name in row)
    mixed = {name for name in columns if len({_kind(row.get(name)) for row in rows} - {None}) > 1}
    mixed |= {name for name in columns if any(isinstance(row.get(name), (list, dict)) for row in rows)}
    result = []
    for row in rows:
        result.append({name: _text(row.get(name)) if name in mixed else _number(row.get(name)) for name in columns})
    return result


def _kind(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def _number(value: Any) -> Any:
    """Arrow has no integers beyond 64 bits with a sign; a seed may be larger."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63 else value


def _text(value: Any) -> str | None:
    from elephan.store.rows import as_text

    return None if value is None else as_text(value)


def load(
    file: str | Path, set: Overrides | None = None, seed: int | None = None, looking: Looking | None = None
) -> Scenario:
    """Read and validate a scenario with changes; `looking` shows how many of its points are looked at.

    Raises `elephan.scenario.ScenarioError`, an `InputError`.
    """
    from elephan import scenario

    changes = as_strings(set)
    if seed is not None:
        changes.append(f"run.seed={seed}")
    if looking is None:
        return scenario.load(Path(file), changes)
    try:
        return scenario.load(Path(file), changes, looking.looking)
    finally:
        looking.finish()


def as_strings(changes: Overrides | None) -> list[str]:
    """Return changes as the command line writes them."""
    if changes is None:
        return []
    if isinstance(changes, str):
        raise InputError(f'set = {changes!r}: a list such as ["path.loss=1e-3"], or a table')
    if isinstance(changes, Mapping):
        from elephan.scenario.toml import format_value

        return [f"{key}={value if isinstance(value, str) else format_value(value)}" for key, value in changes.items()]
    return list(changes)


class Jobs(Sequence[Job]):
    """A job per point of a scenario; each is made when it is asked for, and none is kept."""

    def __init__(self, scenario: Scenario, pcap: Path | None, backend: str, options: HostOptions | None = None) -> None:
        """Make none yet. `options` are those of the backend hosts."""
        self._scenario, self._points = scenario, scenario.points()
        self._pcap, self.backend, self._options = pcap, backend, options
        self._info = ScenarioInfo(
            name=scenario.name,
            title=scenario.title,
            description=scenario.description.strip(),
            # A name that is no UTF-8 has no place in JSON.
            file=printable(str(scenario.file)),
            text=scenario.text,
            overrides=list(scenario.overrides),
        )

    def __len__(self) -> int:
        return len(self._points)

    @overload
    def __getitem__(self, index: int) -> Job: ...

    @overload
    def __getitem__(self, index: slice) -> list[Job]: ...

    def __getitem__(self, index: int | slice) -> Job | list[Job]:
        """Raises `ScenarioError` for a point that cannot run."""
        if isinstance(index, slice):
            return [self._job(point) for point in self._points[index]]
        return self._job(self._points[index])

    def looked_at(self) -> Iterator[Job]:
        """The jobs of the points that were validated when the scenario was read, without their repetitions."""
        return map(self._job, self._scenario.points_looked_at())

    def _job(self, point: Point) -> Job:
        capture = None
        if self._pcap is not None:
            numbered = self._pcap.with_name(f"{self._pcap.stem}-{point.index + 1}{self._pcap.suffix}")
            capture = (self._pcap if len(self) == 1 else numbered).absolute()
        spec = point.to_spec(capture, runs_programs=self.backend != "sim")
        hosts = None
        if self.backend == "hosts":
            from elephan.backends.hosts.pairs import bounded, pair_of

            spec, hosts = bounded(spec, self._options), pair_of(point.document, self._options)
        return Job(
            index=point.index,
            spec=spec,
            parameters=point.parameters,
            seed=point.seed,
            scenario=self._info,
            backend=self.backend,
            must_run=capture is not None,
            hosts=hosts,
        )


def jobs_of(
    scenario: Scenario, pcap: Path | None = None, backend: str = "sim", options: HostOptions | None = None
) -> Jobs:
    """Return a job per point. `pcap` is numbered when there are several; `options` are those of the backend hosts."""
    return Jobs(scenario, pcap, backend, options)


def job_of(spec: dict[str, Any], name: str, backend: str = "sim") -> Job:
    """Return the job of a specification that was made without a scenario file; records call its scenario `name`."""
    made = cast(RunSpec, spec)
    return Job(index=0, spec=made, parameters={}, seed=made["seed"], scenario=ScenarioInfo(name=name), backend=backend)


def run_jobs(
    groups: Sequence[Sequence[Job]],
    *,
    store: str | Store | None = None,
    workers: int | None = None,
    again: bool = False,
    watcher: Watcher | None = None,
) -> list[Results]:
    """Run the jobs of several scenarios in one pool, so that a short scenario leaves no core idle.

    Returns the results of each group, in order. `store`, `workers` and `again` are those of `run`; with a job of the
    backend kernel in it there is one worker unless `workers` says more. Raises what `run` raises.
    """
    from elephan.store import store_for
    from elephan.sweep.executor import execute
    from elephan.sweep.progress import NoProgress

    keep = store_for(store)
    jobs = [job for group in groups for job in group]
    on_kernel = [job for job in jobs if job.backend == "kernel"]
    if on_kernel:
        backends.check(on_kernel)
        backends.require(["kernel"])
        workers = workers or 1
    outcomes = execute(jobs, store=keep, workers=workers, again=again, watcher=watcher or NoProgress()) if jobs else []
    ends = accumulate(len(group) for group in groups)
    return [Results(outcomes[end - len(group) : end], keep) for group, end in zip(groups, ends, strict=True)]


def run(
    file: str | Path,
    set: Overrides | None = None,
    *,
    on: str = "sim",
    seed: int | None = None,
    workers: int | None = None,
    store: str | Store | None = None,
    again: bool = False,
    pcap: str | Path | None = None,
    watcher: Watcher | None = None,
    looking: Looking | None = None,
    cluster: str | None = None,
    hosts: HostOptions | None = None,
    say: Callable[[str], None] | None = None,
) -> Results:
    """Run a scenario: every point of its sweep, every repetition.

    `on` says on which backends: "sim", "kernel", "hosts", or several as "sim,kernel", and the results are then those of
    the first and after them those of the second. `set` changes keys ({"path.loss": 1e-3}); `seed` the first seed;
    `workers` how many runs go at once (all cores; on the backend kernel, where runs take each other's processor time,
    one; on hosts always one);
    `store` where results are kept (a database URL or file, "none" for nowhere; default $ELEPHAN_STORE or the user's
    own); `again` runs what is stored already; `pcap` writes a capture; `cluster` is the address of a scheduler of
    dask.distributed, whose workers simulate the points; `hosts` says between which hosts, and how a production path is
    spared; `say` receives what these hosts do otherwise than the scenario says, before a run begins. Raises
    `InputError`, `StoreError`, `elephan.sweep.executor.Interrupted`; what had ended is stored in any case.
    """
    from elephan.store import store_for
    from elephan.sweep.costs import Costs
    from elephan.sweep.executor import execute
    from elephan.sweep.progress import NoProgress

    names = backends.named(on)
    if cluster is not None:
        must_fit_cluster(cluster, names, workers, pcap)
    scenario = load(file, set, seed, looking)
    jobs = {name: jobs_of(scenario, None if pcap is None else Path(pcap), name, hosts) for name in names}
    if "kernel" in names:
        backends.check(jobs["kernel"].looked_at())
    backends.require(names)
    outcomes: list[Outcome] = []
    with connected(cluster) as there, _hosts(jobs.get("hosts"), hosts, say) as on_hosts:
        if on_hosts is not None:
            on_hosts.require_agreement(len(jobs["hosts"]))
        keep = store_for(store)
        for name in names:
            # Two runs between hosts take each other's path.
            at_once = 1 if name == "hosts" or (workers is None and name == "kernel") else workers
            outcomes += execute(
                jobs[name],
                store=keep,
                workers=at_once,
                again=again,
                watcher=watcher or NoProgress(),
                backend=on_hosts.run if on_hosts is not None and name == "hosts" else backends.run,
                engine=None if there is None else there.workers,
                costs=Costs(scenario),
            )
    return Results(outcomes, keep)


def must_fit_cluster(cluster: str, names: Sequence[str], workers: int | None, pcap: str | Path | None) -> None:
    """Raise `InputError` when a cluster cannot do what is asked for."""
    for name in names:
        if name != "sim":
            raise InputError(f"--cluster {cluster}: its workers simulate; --on {name} runs on this machine alone")
    if workers is not None:
        raise InputError(f"--workers {workers}: the cluster {cluster} has workers of its own; leave one of both out")
    if pcap is not None:
        raise InputError(f"--pcap {pcap}: a capture is written by this machine; leave --cluster out")


@contextmanager
def connected(cluster: str | None) -> Iterator[Cluster | None]:
    """Give a connection to a cluster, None where none is named. Raises `InputError`."""
    if cluster is None:
        yield None
        return
    from elephan.sweep.cluster import Cluster

    there = Cluster(cluster)
    try:
        print(printable(str(there)), file=sys.stderr, flush=True)
        yield there
    finally:
        there.close()


def dry_run(
    file: str | Path,
    set: Overrides | None = None,
    *,
    on: str = "sim",
    seed: int | None = None,
    workers: int | None = None,
    store: str | None = None,
    again: bool = False,
    looking: Looking | None = None,
    cluster: str | None = None,
    hosts: HostOptions | None = None,
) -> Plan:
    """Return what `run` with these arguments would do, and how long it would take. Makes and stores nothing.

    Where the store has too few runs of this kind, some points are tried for some seconds. Raises `InputError`,
    `StoreError`.
    """
    from elephan.sweep.dry_run import plan

    names = backends.named(on)
    if cluster is not None:
        must_fit_cluster(cluster, names, workers, None)
    scenario = load(file, set, seed, looking)
    jobs = {name: jobs_of(scenario, None, name, hosts) for name in names}
    if "kernel" in names:
        backends.check(jobs["kernel"].looked_at())
    with connected(cluster) as there:
        threads = None if there is None else there.threads()
    return plan(scenario, jobs, store=store, workers=workers, again=again, threads=threads)


@contextmanager
def _hosts(
    jobs: Jobs | None, options: HostOptions | None, say: Callable[[str], None] | None
) -> Iterator[HostBackend | None]:
    """Give the backend hosts with its hosts connected and checked; None when it is not asked for."""
    if jobs is None:
        yield None
        return
    from elephan.backends.hosts import HostOptions, opened

    with opened(options or HostOptions()) as backend:
        for note in backend.check(jobs.looked_at()):
            if say is not None:
                say(note)
        yield backend


def check(
    file: str | Path,
    set: Overrides | None = None,
    *,
    on: str = "sim",
    looking: Looking | None = None,
    hosts: HostOptions | None = None,
    say: Callable[[str], None] | None = None,
) -> Scenario:
    """Validate a scenario and its points without running it; return it. Raises `InputError`.

    Of a sweep of more than `elephan.scenario.combinations.LOOKED_AT_MAX` combinations a part is looked at; `looked_at`
    of the scenario says which. With the backend kernel in `on`, also whether this machine's kernel can do what its
    flows ask; with hosts, whether the two hosts can, which are asked; `say` receives the differences.
    """
    names = backends.named(on)
    scenario = load(file, set, looking=looking)
    for name in names:
        jobs = jobs_of(scenario, backend=name, options=hosts)
        for job in jobs.looked_at():
            _ = job.inputs
        if name == "kernel":
            backends.check(jobs.looked_at())
        with _hosts(jobs if name == "hosts" else None, hosts, say):
            pass
    return scenario


def open_results(
    store: str | None = None, *, scenario: str | None = None, parameters: dict[str, str] | None = None
) -> Results:
    """Return stored runs, newest first. Raises `StoreError`.

    Runs whose record is damaged are not among them; a warning names them, and `damaged` of the results has them.
    """
    from elephan.store import Filter, open_store

    opened = open_store(store)
    found = Results.of_records(opened.read(Filter(scenario=scenario, parameters=parameters or {})), opened)
    for one in found.damaged:
        warnings.warn(f"{one}; left out", stacklevel=2)
    return found
