"""Run a scenario under each congestion control, alone and beside a reno flow on the same route."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from elephan import backends
from elephan.api import Overrides, Results, as_strings, jobs_of
from elephan.backends import Job
from elephan.compare.backlog import growing
from elephan.compare.other_traffic import HarmLimit, above, harm_limit, require_source
from elephan.compare.pacing import paced
from elephan.compare.rank import Row, default_key, key_of, ranked
from elephan.compare.repetitions import MOST, Plan, announcement, budget_of, chance_in, plan_of, repeated
from elephan.compare.run_metrics import Measured, measure
from elephan.compare.selection import Choice, chosen
from elephan.compare.streams import STREAMS_CC, gain, streamed
from elephan.errors import InputError
from elephan.record import Record
from elephan.scenario import Scenario, load
from elephan.scenario.quantity import U64_MAX
from elephan.scenario.toml import format_value
from elephan.store import Store, store_for
from elephan.sweep.executor import Outcome, execute
from elephan.sweep.progress import NoProgress, Watcher

NEIGHBOUR_CC = "reno"
"""The yardstick: what every congestion control is measured by in how it treats others."""

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
    """Runs under each congestion control alone, in the order of the rows, repetitions of each together."""
    beside: Results
    """The same beside the neighbour."""
    title: str
    neighbour: str
    """Name of the neighbour in those runs."""
    backend: str = "sim"
    """Backend of all runs."""
    plan: Plan = field(default_factory=lambda: Plan(1))
    """Number of repetitions, and its reason."""
    harm: HarmLimit | None = None
    """Most that a source of background traffic may lose: those under which it loses more rank behind the others."""

    def records_of(self, row: Row) -> list[Record]:
        """Return the records of a row's runs alone, by repetition."""
        first = self.rows.index(row) * self.plan.repetitions
        return self.alone.records[first : first + self.plan.repetitions]


def compare(
    file: str | Path,
    congestion_controls: str = "all",
    set: Overrides | None = None,
    *,
    on: str = "sim",
    by: str | None = None,
    seed: int | None = None,
    workers: int | None = None,
    store: str | Store | None = None,
    again: bool = False,
    watcher: Watcher | None = None,
    budget: str | None = None,
    harm: str | None = None,
    say: Callable[[str], None] | None = None,
) -> Comparison:
    """Rank congestion controls on the path of a scenario.

    Every flow of the scenario runs under each of `congestion_controls` in turn; then again with a neighbour, one reno
    flow on the first flow's route from its start to the end. All of it is repeated with other seeds where something is
    drawn by
    chance: as the scenario's `run.repetitions` says, else as often as the losses need, within `budget`, a time such as
    "10min". `say` receives what is planned. `on` is one backend; on kernel one run goes at a time, unless `workers`
    says otherwise. `by` is a key of `rank.KEYS`, by default what the workload is about. `harm` is NAME=SHARE: controls
    under which the `[[background]]` NAME loses more of its packets rank behind the others. Raises what `elephan.run`
    does.
    """
    planned = _Planned(Path(file), congestion_controls, set, seed, on)
    limit = None if harm is None else harm_limit(harm)
    if limit is not None:
        require_source(limit, [source["name"] for source in planned.runs[0][2].spec["background"]], file)
    if by is not None:
        key_of(by)
        planned.require(by)
    budget_s = budget_of(budget, planned.backend)
    keep = store_for(store)
    at_once = 1 if workers is None and on == "kernel" else workers

    def executed(first: int, end: int) -> list[list[Outcome]]:
        jobs = [job for number in range(first, end) for job in planned.repetition(number)]
        for index, job in enumerate(jobs):
            job.index = index
        done = execute(jobs, store=keep, workers=at_once, again=again, watcher=watcher or NoProgress())
        return [done[at : at + len(planned.runs)] for at in range(0, len(done), len(planned.runs))]

    if planned.exact or planned.asked is not None:
        plan = Plan(planned.asked or 1, exact=planned.exact)
        return _judged(planned, executed(0, plan.repetitions), plan, by, keep, limit)
    if say is not None:
        say(announcement(planned.count, planned.variants, len(planned.runs), planned.backend, budget_s))
    outcomes = executed(0, 1)
    plan = plan_of(
        [item.record for item in planned.part(outcomes[0], "alone")],
        [item.record for item in outcomes[0]],
        budget_s,
        min(MOST, U64_MAX - planned.seed + 1),
    )
    if say is not None:
        say(plan.text)
    if plan.repetitions > 1:
        outcomes += executed(1, plan.repetitions)
    return _judged(planned, outcomes, plan, by, keep, limit)


def check(
    file: str | Path,
    congestion_controls: str = "all",
    set: Overrides | None = None,
    *,
    on: str = "sim",
    seed: int | None = None,
) -> None:
    """Check that a comparison can be run on each backend of `on`, without running it. Raises `InputError`."""
    for backend in backends.named(on):
        _Planned(Path(file), congestion_controls, set, seed, backend)


class _Planned:
    """The runs of a comparison on one backend, which can do them."""

    def __init__(self, file: Path, congestion_controls: str, set: Overrides | None, seed: int | None, on: str) -> None:
        """Plan them. Raises `InputError`."""
        names = backends.named(on)
        if len(names) != 1:
            raise InputError(f"--on {on}: a rank is of one backend")
        if names == ["hosts"]:
            raise InputError(
                "--on hosts: elephan compare ranks on sim and kernel; between hosts, sweep flow.congestion_control by "
                "elephan run"
            )
        self.backend = names[0]
        changes = as_strings(set) + ([] if seed is None else [f"run.seed={seed}"])
        self.base = base = load(file, changes)
        choices = chosen(congestion_controls, base.base)
        first = base.points()[0]
        if not first.document.flow:
            raise InputError(f"{base.file}: congestion controls are those of flows, and there is none: add [[flow]]")
        self.flows = len(first.document.flow)
        self.seed = first.seed
        self.asked = first.document.run.repetitions if "run.repetitions" in first.parameters else None
        """Repetitions that the scenario asks for."""
        self.neighbour, text = neighbour(base)
        named, spec = list(choices), first.to_spec()
        is_count_set = any(key.endswith(".connections") for key in first.parameters)
        choices += paced(named, spec)
        choices += streamed(named, spec, is_count_set=is_count_set)
        self.count, self.variants = len(named), len(choices) - len(named)
        self.runs: list[tuple[Choice | None, str, Job]] = []
        """The runs of the first repetition: under what, "alone" or "beside" the neighbour."""

        def add_variant(choice: Choice | None, own: list[str]) -> None:
            job = _variant(base, text, self.neighbour, [*changes, *own], self.backend)
            self.runs.append((choice, "beside", job))

        for choice in choices:
            own = choice.changes(self.flows)
            try:
                job = _job(base, base.text, [*changes, *own], self.backend)
            except InputError as error:
                # The scenario by itself is right: the fault is the comparison's.
                place, _, problem = str(error).partition(": ")
                if place != "--set":
                    raise
                raise InputError(f"--cc {choice.label}: {problem}") from None
            self.runs.append((choice, "alone", job))
            add_variant(choice, own)
        if all(choice.value != format_value(NEIGHBOUR_CC) for choice in choices):
            add_variant(None, [f'flow.{index}.congestion_control="{NEIGHBOUR_CC}"' for index in range(self.flows)])
        jobs = self.repetition(0)
        # On another backend than the simulator no two runs are alike.
        self.exact = self.backend == "sim" and not any(chance_in(job.spec) for job in jobs)
        backends.check(jobs)
        backends.require(names)

    def require(self, by: str) -> None:
        """Raise `InputError` if no flow of the scenario has the key of the rank."""
        wanted = {"lag": ("replicate",), "latency": ("constant_rate", "fc")}.get(by)
        kinds = {flow["workload"]["kind"] for flow in self.runs[0][2].spec["flows"]}
        if wanted is not None and kinds.isdisjoint(wanted):
            named = " or ".join(f'"{kind}"' for kind in wanted)
            raise InputError(f"--by {by}: no flow of {self.base.file} has a workload of kind {named}")

    def repetition(self, number: int) -> list[Job]:
        """Return the jobs of a repetition, in the order of `runs`."""
        return [repeated(job, number) for _, _, job in self.runs]

    def part(self, outcomes: Sequence[Outcome], kind: str, choice: Choice | None = None) -> list[Outcome]:
        """Return those outcomes of a repetition that are of a kind: under `choice`, or under all that are compared."""
        return [
            outcome
            for (under, other, _), outcome in zip(self.runs, outcomes, strict=True)
            if other == kind and under is not None and choice in (None, under)
        ]

    def yardstick(self, outcomes: Sequence[Outcome]) -> Outcome:
        """Return the outcome of reno beside the neighbour in a repetition."""
        return next(
            outcome
            for (under, kind, _), outcome in zip(self.runs, outcomes, strict=True)
            if kind == "beside" and (under is None or under.label == NEIGHBOUR_CC)
        )


def neighbour(base: Scenario) -> tuple[str, str]:
    """Return the neighbour's name, and the scenario's text with it as a further flow. Raises `InputError`."""
    raw = tomllib.loads(base.text)
    entries = raw.get("flow", [])
    names = {str(entry.get("name")) for entry in entries}
    name = next(name for name in ("neighbour", *(f"neighbour{n}" for n in range(2, 1000))) if name not in names)
    values: dict[str, Any] = {"name": name, "congestion_control": NEIGHBOUR_CC, "workload": "bulk", "connections": 1}
    values |= {key: entries[0][key] for key in COPIED if key in entries[0]}
    lines = "".join(f"{key} = {format_value(value)}\n" for key, value in values.items())
    text = f"{base.text.rstrip()}\n\n# One flow more, beside which the others are compared.\n[[flow]]\n{lines}"
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{base.file}: a neighbour cannot be added ({error}); write flows as [[flow]]") from None
    return name, text


def _variant(base: Scenario, text: str, name: str, changes: Sequence[str], backend: str) -> Job:
    own = [f'flow.{name}.congestion_control="{NEIGHBOUR_CC}"', f"name={base.name}-beside-{NEIGHBOUR_CC}"]
    return _job(base, text, [*changes, *own], backend)


def _job(base: Scenario, text: str, changes: Sequence[str], backend: str) -> Job:
    """Return the first repetition's job."""
    scenario = Scenario(base.file, text, changes)
    if scenario.axes:
        swept = ", ".join(axis.key for axis in scenario.axes)
        raise InputError(f"{base.file} sweeps {swept}: a rank is of one path; choose a value with --set KEY=VALUE")
    return jobs_of(scenario, backend=backend)[0]


def _with_gains(rows: Sequence[Row], planned: _Planned) -> list[Row]:
    """Return the rows, those of several streams with the gain over one."""
    counts = {choice.label for choice, _, _ in planned.runs if choice is not None and choice.streams is not None}
    one = next((row.numbers for row in rows if row.cc == STREAMS_CC), None)
    return [
        replace(row, why=tuple(text for text in (gain(row.numbers, one), *row.why) if text))
        if one is not None and row.cc in counts
        else row
        for row in rows
    ]


def _judged(
    planned: _Planned,
    outcomes: Sequence[Sequence[Outcome]],
    plan: Plan,
    by: str | None,
    keep: Store | None,
    harm: HarmLimit | None,
) -> Comparison:
    """Rank the measured runs; `outcomes` has a list for each repetition, in the order of `planned.runs`."""
    yardstick = [planned.yardstick(repetition).record for repetition in outcomes]
    alone: dict[str, list[Outcome]] = {}
    beside: dict[str, list[Outcome]] = {}
    found: list[Measured] = []
    for choice in dict.fromkeys(choice for choice, _, _ in planned.runs if choice is not None):
        for parts, kind in ((alone, "alone"), (beside, "beside")):
            parts[choice.label] = [item for repetition in outcomes for item in planned.part(repetition, kind, choice)]
        own, others = ([item.record for item in parts[choice.label]] for parts in (alone, beside))
        found.append(measure(choice.label, own, others, yardstick, planned.flows, plan.exact))
    key = by or default_key(found)
    behind = {}
    if harm is not None:
        reasons = {label: above(harm, [item.record for item in done]) for label, done in alone.items()}
        behind = {label: reason for label, reason in reasons.items() if reason is not None}
    grows = {label: growing([item.record for item in done]) for label, done in alone.items()}
    without_bound = {label: reason for label, reason in grows.items() if reason is not None}
    rows = _with_gains(ranked(found, key, behind, without_bound), planned)
    order = [row.cc for row in rows]
    return Comparison(
        rows=tuple(rows),
        by=key,
        alone=Results([item for label in order for item in alone[label]], keep),
        beside=Results([item for label in order for item in beside[label]], keep),
        title=planned.base.title,
        neighbour=planned.neighbour,
        backend=planned.backend,
        plan=plan,
        harm=harm,
    )
