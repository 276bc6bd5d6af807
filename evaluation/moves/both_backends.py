"""A scenario on both backends: simulated once, and over this machine's TCP until enough runs of each point count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from elephan import backends
from elephan.api import jobs_of, load
from elephan.backends import Job
from elephan.errors import RunError
from elephan.record import Record
from elephan.store import Series
from elephan.units import pluralize
from evaluation.markdown import spread
from evaluation.runner import Runner

WANTED = 2
"""Runs of a point that count."""
TRIES = 6
"""Most runs of a point: a virtual machine is held up by its host in some of them."""
FRESH = timedelta(hours=12)
"""Age up to which a stored run over this machine's TCP counts, so that a program that was stopped goes on."""
FAULTS = ("EMULATOR:", "TRAFFIC:")
"""Beginnings of a record's notes that say that the path was not the scenario's."""


@dataclass(frozen=True)
class Run:
    """A record with its series."""

    record: Record
    series: Series

    @property
    def faults(self) -> list[str]:
        """Notes for which the run does not count."""
        return [note for note in self.record.notes if note.startswith(FAULTS)]


@dataclass
class Point:
    """A point of a scenario."""

    simulated: Run
    kernel: list[Run] = field(default_factory=list)
    """Runs over this machine's TCP that count."""
    faulty: list[Run] = field(default_factory=list)
    """Those that do not."""


def simulated(runner: Runner, jobs: Sequence[Job]) -> list[Run]:
    """Return the runs of jobs, in order, each with its series."""
    results = runner.run(jobs)
    runs = []
    for record in results:
        series = results.series_of(record)
        assert series is not None, "the scenarios ask for series"
        runs.append(Run(record, series))
    return runs


def on_both(runner: Runner, file: Path, wanted: int = WANTED, tries: int = TRIES) -> list[Point]:
    """Return the points of a scenario.

    A run over this machine's TCP that was stored before `FRESH` is made again, since the page has today's date. Raises
    `InputError` where the machine lacks what the kernel backend needs, `RunError` when no run of any point counts.
    """
    backends.require(["kernel"])
    points = [Point(run) for run in simulated(runner, jobs_of(load(file)))]
    for seed in range(1, tries + 1):
        jobs = jobs_of(load(file, seed=seed), backend="kernel")
        wanting = [number for number, point in enumerate(points) if len(point.kernel) < wanted]
        runs = simulated(runner, [_fresh(runner, jobs[number]) for number in wanting])
        for number, run in zip(wanting, runs, strict=True):
            (points[number].faulty if run.faults else points[number].kernel).append(run)
    if not any(point.kernel for point in points):
        raise RunError(
            f"{file.name}: none of {tries} runs of any point counts, such as: {points[0].faulty[0].faults[0]}"
        )
    return points


def _fresh(runner: Runner, job: Job) -> Job:
    """Return the job, which must run unless a fresh run of it is stored."""
    found = runner.stored(job)
    if found is not None and datetime.now(UTC) - datetime.fromisoformat(found[0].created) < FRESH:
        return job
    return replace(job, must_run=True)


def counted(points: Sequence[Point]) -> str:
    """Return how many runs over this machine's TCP count, in a sentence."""
    runs = [len(point.kernel) for point in points]
    faulty = sum(len(point.faulty) for point in points)
    each = f"Linux: {spread(runs, 'd')} run{'' if max(runs) == 1 else 's'}{' of each' if len(points) > 1 else ''}"
    if not faulty:
        return f"{each}; the emulator honoured all."
    text = f"{each} that the emulator honoured; {pluralize(faulty, 'other')} did not count."
    return text if min(runs) else f"{text} In brackets are such others, where no run counts."
