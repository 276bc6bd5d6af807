"""Run a scenario under each stack, alone and beside a reno flow on the same route."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan import grounds
from elephan.api import Overrides, Results, as_strings, jobs_of
from elephan.compare.choice import Choice, chosen
from elephan.compare.rank import Measured, Row, default_key, key_of, measured, ranked
from elephan.errors import InputError
from elephan.grounds import Job
from elephan.scenario import Scenario, load
from elephan.scenario.toml import format_value
from elephan.store import Store, store_for
from elephan.sweep.executor import Outcome, execute
from elephan.sweep.progress import NoProgress, Watcher

NEIGHBOUR_STACK = "reno"
"""The yardstick: what every stack is measured by in how it treats others."""

COPIED = ("from", "to", "route", "return_route", "direction", "start")
"""Keys of the first flow that its neighbour has too: where it runs, and when it begins."""


@dataclass(frozen=True)
class Comparison:
    """All that was found out."""

    rows: tuple[Row, ...]
    """By rank."""
    by: str
    """Key of `rank.KEYS` that the rank is by."""
    alone: Results
    """Runs under each stack alone, in the order of the rows, repetitions of each together."""
    beside: Results
    """The same beside the neighbour."""
    title: str
    neighbour: str
    """Name of the neighbour in those runs."""
    ground: str = "sim"
    """Where all of them ran."""


def compare(
    file: str | Path,
    stacks: str = "all",
    set: Overrides | None = None,
    *,
    on: str = "sim",
    by: str | None = None,
    seed: int | None = None,
    workers: int | None = None,
    store: str | Store | None = None,
    again: bool = False,
    watcher: Watcher | None = None,
) -> Comparison:
    """Rank stacks on the path of a scenario.

    Every flow of the scenario runs under each of `stacks` in turn; then again with a neighbour, one reno flow on the
    first flow's route from its start to the end. `on` is one ground; on kernel one run goes at a time, unless
    `workers` says otherwise. `by` is a key of `rank.KEYS`, by default what the workload is about. Raises what
    `elephan.run` does.
    """
    planned = _Planned(Path(file), stacks, set, seed, on)
    if by is not None:
        key_of(by)
    keep = store_for(store)
    at_once = 1 if workers is None and on == "kernel" else workers
    jobs = planned.jobs
    outcomes = execute(jobs, store=keep, workers=at_once, again=again, watcher=watcher or NoProgress())
    return _judged(planned, outcomes, by, keep)


def check(
    file: str | Path, stacks: str = "all", set: Overrides | None = None, *, on: str = "sim", seed: int | None = None
) -> None:
    """Say whether a comparison could be run on each ground of `on`, without running it. Raises `InputError`."""
    for ground in grounds.named(on):
        _Planned(Path(file), stacks, set, seed, ground)


class _Planned:
    """The runs of a comparison on one ground, which can do them."""

    def __init__(self, file: Path, stacks: str, set: Overrides | None, seed: int | None, on: str) -> None:
        """Plan them. Raises `InputError`."""
        names = grounds.named(on)
        if len(names) != 1:
            raise InputError(f"--on {on}: a rank is of one ground")
        self.ground = names[0]
        changes = as_strings(set) + ([] if seed is None else [f"run.seed={seed}"])
        self.base = base = load(file, changes)
        choices = chosen(stacks, base.base)
        self.flows = len(base.points()[0].document.flow)
        self.neighbour, text = neighbour(base)
        self.runs: list[tuple[Choice | None, str, list[Job]]] = []

        def beside(choice: Choice | None, own: list[str]) -> None:
            jobs = _beside(base, text, self.neighbour, [*changes, *own], self.ground)
            self.runs.append((choice, "beside", jobs))

        for choice in choices:
            own = [f"flow.{index}.stack={choice.value}" for index in range(self.flows)]
            self.runs.append((choice, "alone", _jobs(base, base.text, [*changes, *own], self.ground)))
            beside(choice, own)
        if all(choice.value != format_value(NEIGHBOUR_STACK) for choice in choices):
            beside(None, [f'flow.{index}.stack="{NEIGHBOUR_STACK}"' for index in range(self.flows)])
        self.jobs = [job for _, _, part in self.runs for job in part]
        for index, job in enumerate(self.jobs):
            job.index = index
        grounds.check(self.jobs)
        grounds.require(names)


def neighbour(base: Scenario) -> tuple[str, str]:
    """Return the neighbour's name, and the scenario's text with it as a further flow. Raises `InputError`."""
    raw = tomllib.loads(base.text)
    entries = raw.get("flow", [])
    names = {str(entry.get("name")) for entry in entries}
    name = next(name for name in ("neighbour", *(f"neighbour{n}" for n in range(2, 1000))) if name not in names)
    values: dict[str, Any] = {"name": name, "stack": NEIGHBOUR_STACK, "workload": "bulk", "connections": 1}
    values |= {key: entries[0][key] for key in COPIED if key in entries[0]}
    lines = "".join(f"{key} = {format_value(value)}\n" for key, value in values.items())
    text = f"{base.text.rstrip()}\n\n# One flow more, beside which the others are compared.\n[[flow]]\n{lines}"
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{base.file}: a neighbour cannot be added ({error}); write flows as [[flow]]") from None
    return name, text


def _beside(base: Scenario, text: str, name: str, changes: Sequence[str], ground: str) -> list[Job]:
    own = [f'flow.{name}.stack="{NEIGHBOUR_STACK}"', f"name={base.name}-beside-{NEIGHBOUR_STACK}"]
    return _jobs(base, text, [*changes, *own], ground)


def _jobs(base: Scenario, text: str, changes: Sequence[str], ground: str) -> list[Job]:
    scenario = Scenario(base.file, text, changes)
    if scenario.axes:
        swept = ", ".join(axis.key for axis in scenario.axes)
        raise InputError(f"{base.file} sweeps {swept}: a rank is of one path; choose a value with --set KEY=VALUE")
    return jobs_of(scenario, ground=ground)


def _judged(planned: _Planned, outcomes: Sequence[Outcome], by: str | None, keep: Store | None) -> Comparison:
    parts: dict[tuple[str, str], list[Outcome]] = {}
    at = 0
    for choice, kind, jobs in planned.runs:
        parts[choice.label if choice else NEIGHBOUR_STACK, kind] = list(outcomes[at : at + len(jobs)])
        at += len(jobs)
    yardstick = [item.record for item in parts[NEIGHBOUR_STACK, "beside"]]
    found: dict[str, Measured] = {}
    for choice, kind, _ in planned.runs:
        if choice is not None and kind == "alone":
            alone = [item.record for item in parts[choice.label, "alone"]]
            beside = [item.record for item in parts[choice.label, "beside"]]
            found[choice.label] = measured(choice.label, alone, beside, yardstick, planned.flows)
    key = by or default_key(list(found.values()))
    rows = ranked(list(found.values()), key)
    order = [row.stack for row in rows]
    return Comparison(
        rows=tuple(rows),
        by=key,
        alone=Results([item for label in order for item in parts[label, "alone"]], keep),
        beside=Results([item for label in order for item in parts[label, "beside"]], keep),
        title=planned.base.title,
        neighbour=planned.neighbour,
        ground=planned.ground,
    )
