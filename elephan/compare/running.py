"""Run a scenario under each stack, alone and beside a reno flow on the same route."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def compare(
    file: str | Path,
    stacks: str = "all",
    set: Overrides | None = None,
    *,
    by: str | None = None,
    seed: int | None = None,
    workers: int | None = None,
    store: str | Store | None = None,
    again: bool = False,
    watcher: Watcher | None = None,
) -> Comparison:
    """Rank stacks on the path of a scenario.

    Every flow of the scenario runs under each of `stacks` in turn; then again with a neighbour, one reno flow on the
    first flow's route from its start to the end. `by` is a key of `rank.KEYS`, by default what the workload is about.
    Raises what `elephan.run` does.
    """
    if by is not None:
        key_of(by)
    changes = as_strings(set) + ([] if seed is None else [f"run.seed={seed}"])
    base = load(Path(file), changes)
    choices = chosen(stacks, base.base)
    flows = len(base.points()[0].document.flow)
    name, text = neighbour(base)
    runs: list[tuple[Choice | None, str, list[Job]]] = []
    for choice in choices:
        own = [f"flow.{index}.stack={choice.value}" for index in range(flows)]
        runs.append((choice, "alone", _jobs(base, base.text, [*changes, *own])))
        runs.append((choice, "beside", _beside(base, text, name, [*changes, *own])))
    if all(choice.value != format_value(NEIGHBOUR_STACK) for choice in choices):
        own = [f'flow.{index}.stack="{NEIGHBOUR_STACK}"' for index in range(flows)]
        runs.append((None, "beside", _beside(base, text, name, [*changes, *own])))
    keep = store_for(store)
    jobs = [job for _, _, part in runs for job in part]
    for index, job in enumerate(jobs):
        job.index = index
    outcomes = execute(jobs, store=keep, workers=workers, again=again, watcher=watcher or NoProgress())
    return _judged(base, runs, outcomes, flows, name, by, keep)


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


def _beside(base: Scenario, text: str, name: str, changes: Sequence[str]) -> list[Job]:
    return _jobs(
        base, text, [*changes, f'flow.{name}.stack="{NEIGHBOUR_STACK}"', f"name={base.name}-beside-{NEIGHBOUR_STACK}"]
    )


def _jobs(base: Scenario, text: str, changes: Sequence[str]) -> list[Job]:
    scenario = Scenario(base.file, text, changes)
    if scenario.axes:
        swept = ", ".join(axis.key for axis in scenario.axes)
        raise InputError(f"{base.file} sweeps {swept}: a rank is of one path; choose a value with --set KEY=VALUE")
    return jobs_of(scenario)


def _judged(
    base: Scenario,
    runs: Sequence[tuple[Choice | None, str, list[Job]]],
    outcomes: Sequence[Outcome],
    flows: int,
    name: str,
    by: str | None,
    keep: Store | None,
) -> Comparison:
    parts: dict[tuple[str, str], list[Outcome]] = {}
    at = 0
    for choice, kind, jobs in runs:
        parts[choice.label if choice else NEIGHBOUR_STACK, kind] = list(outcomes[at : at + len(jobs)])
        at += len(jobs)
    yardstick = [item.record for item in parts[NEIGHBOUR_STACK, "beside"]]
    found: dict[str, Measured] = {}
    for choice, kind, _ in runs:
        if choice is not None and kind == "alone":
            alone = [item.record for item in parts[choice.label, "alone"]]
            beside = [item.record for item in parts[choice.label, "beside"]]
            found[choice.label] = measured(choice.label, alone, beside, yardstick, flows)
    key = by or default_key(list(found.values()))
    rows = ranked(list(found.values()), key)
    order = [row.stack for row in rows]
    return Comparison(
        rows=tuple(rows),
        by=key,
        alone=Results([item for label in order for item in parts[label, "alone"]], keep),
        beside=Results([item for label in order for item in parts[label, "beside"]], keep),
        title=base.title,
        neighbour=name,
    )
