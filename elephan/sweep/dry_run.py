"""A sweep that is looked at and not run: what is to do, in which order, and how long it takes.

Times of simulated points come from stored runs of their kind: equal scenario, equal values of all keys that are not
swept. Where these are too few, some points are tried for a few seconds; one that takes longer is stopped, and its time
follows from the part that was done. Points on a real network take their own duration. Nothing is stored.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from elephan import backends
from elephan.backends import Job, Stopped
from elephan.core import build_digest
from elephan.signals import Flag
from elephan.store.database import Store, to_look_at
from elephan.store.place import Place, default_location
from elephan.store.rows import as_text
from elephan.sweep.costs import Costs, Estimate
from elephan.sweep.executor import LOOKED_UP_AT_ONCE, default_workers
from elephan.sweep.part_done import cut_off, ends_with_its_copies, part_done
from elephan.units import duration, pluralize

if TYPE_CHECKING:
    from elephan.scenario import Scenario

LOOKED_UP_MAX = 20_000
"""Runs of which each is looked up in the store; of more, so many, evenly spread: 0.7 ms each."""

STORED_ENOUGH = 3
"""Stored runs per value of the axes that say enough without any to try."""

STORED_MOST = 5_000
"""Stored runs that are read, the newest."""

TRIED_MOST = 24
"""Points that are tried."""

TRY_S = 10.0
"""Time for all points that are tried, s."""

OVERHEAD_S = 0.002
"""Time of a simulated run beside its simulation, s (docs/results/sweeps.md)."""

WIDEST = 10.0
"""Most that an upper bound may be as a multiple of its estimate: beyond that, neither tells a reader anything."""

SET_UP_S = (0.7, 1.6, 2.1)
"""Time for namespaces, controls and drain of a run on a real network, s: least, median and most of nine runs on the
kernel backend of a busy machine with 2 cores (2026-11-25)."""


@dataclass(frozen=True)
class Forecast:
    """Work of a backend."""

    backend: str
    runs: int
    stored: int
    to_run: int
    at_once: int
    seconds: float | None
    """Time of what is to run; None where nothing tells it."""
    least_s: float | None
    """Lower bound; alone where the points tried differ by too much for more."""
    most_s: float | None
    basis: str
    """Source of the time."""
    stored_is_counted: bool = True
    """False where the number of stored runs follows from a part of them."""

    def __str__(self) -> str:
        """Format it for people."""
        about = "" if self.stored_is_counted else "about "
        text = f"{self.backend}: {about}{self.stored:,} of {pluralize(self.runs, 'run')} stored, "
        if not self.to_run:
            return f"{text}none to run"
        text += f"{about}{self.to_run:,} to run, {self.at_once} at once"
        if self.least_s is None:
            return f"{text}; {self.basis}"
        if self.seconds is None or self.most_s is None:
            return f"{text}: at least {duration(self.least_s)}, {self.basis}, which differ by too much for more"
        return f"{text}: about {Estimate(self.seconds, self.least_s, self.most_s)}, {self.basis}"


@dataclass(frozen=True)
class Plan:
    """Work of `elephan run`, which it would do."""

    scenario: str
    loops: list[tuple[str, int]]
    """Swept keys and numbers of their values, the outer loop first."""
    zipped: bool
    repetitions: int | None
    """Of each combination, the inmost loop; None where they differ."""
    store: str
    forecasts: list[Forecast]

    def lines(self) -> Iterator[str]:
        """Yield it for people."""
        runs = sum(one.runs for one in self.forecasts)
        loops = (" with " if self.zipped else " > ").join(f"{key} ({count})" for key, count in self.loops)
        each = "" if self.repetitions in (None, 1) else f"; {self.repetitions} repetitions of each point"
        order = "" if not loops else f": {loops}" + ("" if self.zipped or len(self.loops) < 2 else ", outer loop first")
        yield f"{self.scenario}: {pluralize(runs, 'run')}{order}{each}"
        yield f"store: {self.store}"
        yield from map(str, self.forecasts)
        yield "dry run: nothing was stored"

    def as_json(self) -> str:
        """Return it as JSON."""
        loops = [{"key": key, "values": count} for key, count in self.loops]
        return json.dumps(asdict(self) | {"loops": loops}, indent=1)


def plan(
    scenario: Scenario,
    jobs: Mapping[str, Sequence[Job]],
    *,
    store: str | None,
    workers: int | None,
    again: bool,
    threads: int | None,
) -> Plan:
    """Return what a sweep has to do on each backend; `threads` are a cluster's. Raises `InputError`."""
    opened = None if store == "none" else to_look_at(store)
    try:
        forecasts = []
        for name, several in jobs.items():
            at_once = threads or workers or (default_workers() if name == "sim" else 1)
            looked_at = _Looked.at(several, None if again else opened, must_make=name != "sim")
            make = _simulated if name == "sim" else _in_real_time
            forecasts.append(make(name, scenario, several, looked_at, opened, min(at_once, max(1, looked_at.to_run))))
    finally:
        if opened is not None:
            opened.close()
    return Plan(
        scenario=scenario.name,
        loops=[(axis.key, len(axis.values)) for axis in scenario.axes],
        zipped=scenario.mode == "zip",
        repetitions=scenario.runs.each,
        store=_named(store, opened is not None),
        forecasts=forecasts,
    )


def _named(location: str | None, is_open: bool) -> str:
    """Return a store in words: where it is, and whether it tells which runs it has."""
    if location == "none":
        return "none: nothing is stored"
    place = Place.of(location or default_location())
    if is_open:
        return place.location
    # Of a server it is not known whether it is there.
    why = "cannot be read as it is, so that no run counts as stored" if place.exists else "not there yet"
    return f"{place.location}, {why}"


@dataclass
class _Looked:
    """Runs that are stored, and those that are not."""

    runs: int
    numbers: list[int]
    """Runs that were looked up."""
    left: list[int]
    """Those of them that are not stored."""
    seconds: float
    """Their own durations together, s: of those that are left."""

    @property
    def is_whole(self) -> bool:
        return len(self.numbers) == self.runs

    @property
    def to_run(self) -> int:
        """Runs that are not stored, as far as those show that were looked up."""
        return round(self.runs * len(self.left) / len(self.numbers))

    @property
    def factor(self) -> float:
        """All runs for each that was looked up."""
        return self.runs / len(self.numbers)

    @classmethod
    def at(cls, jobs: Sequence[Job], store: Store | None, must_make: bool) -> _Looked:
        """Look runs up, all or an even part; make the jobs in any case where their durations are asked for."""
        count = len(jobs)
        part = min(count, LOOKED_UP_MAX)
        found = cls(count, [index * count // part for index in range(part)], [], 0.0)
        if store is None and not must_make:
            # Nothing can be there: no job need be made.
            found.left = list(found.numbers)
            return found
        for first in range(0, part, LOOKED_UP_AT_ONCE):
            numbers = found.numbers[first : first + LOOKED_UP_AT_ONCE]
            made = {number: jobs[number] for number in numbers}
            ids = [job.id for job in made.values()] if store is not None else []
            stored = set() if store is None else store.ids_of(ids, build_digest())
            for number, job in made.items():
                if store is None or job.id not in stored:
                    found.left.append(number)
                    found.seconds += job.spec["duration_ns"] / 1e9
        return found


def _in_real_time(
    backend: str, scenario: Scenario, jobs: Sequence[Job], looked: _Looked, store: Store | None, at_once: int
) -> Forecast:
    duration_s = looked.seconds * looked.factor
    least, usual, most = ((duration_s + looked.to_run * each_s) / at_once for each_s in SET_UP_S)
    basis = "the duration of each in real time, and what it takes to set up and to drain"
    return _forecast(backend, looked, at_once, Estimate(usual, least, most), basis)


def _simulated(
    backend: str, scenario: Scenario, jobs: Sequence[Job], looked: _Looked, store: Store | None, at_once: int
) -> Forecast:
    if not looked.left:
        return _forecast(backend, looked, at_once, Estimate(0, 0, 0), "")
    costs = Costs(scenario)
    known = 0 if store is None else learn_stored(costs, scenario, jobs, store)
    basis = f"from {pluralize(known, 'stored run')} of this kind"
    if known < min(len(jobs), STORED_ENOUGH * sum(count for _, count in costs.axes) or 1):
        tried = _try(costs, jobs, at_once)
        and_ = f"{basis} and " if known else "from "
        basis = f"{and_}{pluralize(tried, 'point')} tried here"
    total = costs.total(looked.left)
    if total is None:
        return _forecast(backend, looked, at_once, None, "no time is known: no point got anywhere in the time to try")
    # The last run of all goes alone, in the middle of the others' ends.
    alone = total.seconds / len(looked.left) / 2 * (at_once > 1)
    whole = total.scaled(looked.factor / at_once, alone + looked.to_run * OVERHEAD_S)
    return _forecast(backend, looked, at_once, whole, basis)


def _forecast(backend: str, looked: _Looked, at_once: int, time_of: Estimate | None, basis: str) -> Forecast:
    is_vague = time_of is not None and time_of.most > WIDEST * time_of.seconds
    return Forecast(
        backend=backend,
        runs=looked.runs,
        stored=looked.runs - looked.to_run,
        to_run=looked.to_run,
        at_once=at_once,
        seconds=None if time_of is None or is_vague else time_of.seconds,
        least_s=None if time_of is None else time_of.least,
        most_s=None if time_of is None or is_vague else time_of.most,
        basis=basis,
        stored_is_counted=looked.is_whole,
    )


def learn_stored(costs: Costs, scenario: Scenario, jobs: Sequence[Job], store: Store) -> int:
    """Take the times of stored runs of this scenario, whose other keys have the same values; return how many."""
    swept = [key for key, _ in costs.axes]
    free = {*swept, "run.seed", "run.repetitions"}
    own = {name: as_text(value) for name, value in jobs[0].parameters.items() if name not in free}
    places = {
        axis.key: {as_text(_value(axis.key, value)): place for place, value in enumerate(axis.values)}
        for axis in scenario.axes
    }
    each = scenario.runs.each
    if each is None:
        return 0
    learned = 0
    for parameters, seconds in store.times(scenario.name, "sim", STORED_MOST):
        if {name: value for name, value in parameters.items() if name not in free} != own:
            continue
        found = [places[key].get(parameters.get(key, "")) for key in swept]
        if any(place is None for place in found):
            continue
        combination = costs.combination([place for place in found if place is not None])
        # Repetitions are of one combination, which is what counts; each has a number of its own.
        taken = next((n for n in range(combination * each, (combination + 1) * each) if n not in costs.known), None)
        if taken is not None:
            costs.learn(taken, seconds)
            learned += 1
    return learned


def _value(key: str, value: Any) -> Any:
    from elephan.scenario.load import flat

    return flat(key, value)


def _try(costs: Costs, jobs: Sequence[Job], at_once: int) -> int:
    """Run some points for some seconds, and take their times; return how many tell one."""
    numbers = [number for number in costs.sample(TRIED_MOST) if number not in costs.known]
    local = min(at_once, default_workers())
    until_s = time.monotonic() + TRY_S
    lock, stop = threading.Lock(), Flag()
    left = list(numbers)
    tried = 0

    def work(_: int) -> None:
        nonlocal tried
        while True:
            with lock:
                if not left or stop.is_set() or time.monotonic() > until_s:
                    return
                # The points that are left to try share the time that is left.
                limit_s = (until_s - time.monotonic()) * local / max(local, len(left))
                number = left.pop(0)
                job = jobs[number]
            seconds = _time_of(job, limit_s, stop)
            if seconds is not None:
                with lock:
                    costs.learn(number, seconds)
                    tried += 1

    with ThreadPoolExecutor(local, "elephan-try") as pool:
        try:
            for _ in pool.map(work, range(local)):
                pass
        except BaseException:
            # Ctrl-C, or a point that cannot run: the others end now.
            stop.set()
            raise
    return tried


def _time_of(job: Job, limit_s: float, stop: Flag) -> float | None:
    """Return how long a point takes, s; one that takes longer than the limit is stopped. None if nothing tells it."""
    counts_bytes = ends_with_its_copies(job.spec)
    # It runs twice then: the first time tells how far it gets, the second one what it has delivered by then.
    own_s = limit_s / 2 if counts_bytes else limit_s
    began_s = time.monotonic()
    now_ns = 0

    def progress(at_ns: int, total_ns: int) -> None:
        nonlocal now_ns
        now_ns = at_ns
        if stop.is_set() or (time.monotonic() - began_s > own_s and at_ns < total_ns):
            raise Stopped

    def stopped(_: int, __: int) -> None:
        if stop.is_set():
            raise Stopped

    try:
        backends.run(job, progress)
    except Stopped:
        took_s = time.monotonic() - began_s
        if stop.is_set() or now_ns == 0:
            return None
        flows: Sequence[Mapping[str, Any]] = ()
        if counts_bytes:
            try:
                record, _ = backends.run(replace(job, spec=cut_off(job.spec, now_ns)), stopped)
            except Stopped:
                return None
            flows = record.flows
        done = part_done(job.spec, now_ns, flows)
        return None if done is None else took_s / done
    return time.monotonic() - began_s
