"""Number of repetitions of a comparison: as many as the losses need, within a budget of processor time.

A scenario that draws something by chance is run with several seeds. Their number follows from the first repetition:
from the losses that the line takes, and from the processor time. `run.repetitions` in the scenario decides instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from elephan import units
from elephan.backends import Job
from elephan.errors import InputError
from elephan.record import Record
from elephan.report.chance import RANDOM_LOSS, expected_losses

LEAST = 5
"""Repetitions at least: four degrees of freedom, with which an interval is 2.8 standard errors wide and not 12.7."""

MOST = 100
"""Limit of repetitions: if losses are so rare that more would be needed, a longer run tells more."""

ENOUGH_LOSSES = 30
"""Losses of a congestion control over all repetitions: at 30 a Poisson count varies by 18 %."""

BUDGET_S = {"sim": 600.0, "kernel": 3600.0}
"""Default time for all runs of a comparison, s: processor time, on the kernel real time."""


def chance_in(spec: Mapping[str, Any]) -> bool:
    """Return True if the seed of a specification can change its numbers: something is drawn at random."""
    losses = [link["loss"] for link in spec["links"]]
    losses += [event["action"]["loss"] for event in spec["events"] if event["action"]["kind"] == "loss"]
    return (
        any(loss["kind"] in RANDOM_LOSS for loss in losses)
        or any(link["jitter"] is not None for link in spec["links"])
        or any(link["queue"]["kind"] not in ("drop_tail", "codel") for link in spec["links"])
        or any(source["on_off_ns"] is not None for source in spec["background"])
        or bool(spec.get("short_flows"))
        or spec.get("manager") is not None
        or any(
            flow["workload"]["kind"] in ("iscsi", "fcp") or _draws_frames(flow["workload"]) for flow in spec["flows"]
        )
    )


def _draws_frames(workload: Mapping[str, Any]) -> bool:
    """Return True if sizes or times of a workload's Fibre Channel frames are drawn at random."""
    if workload["kind"] != "fc":
        return False
    load = workload["load"]
    return bool(load["sizes"]["kind"] != "fixed" or load["arrivals"]["process"] != "constant")


def repeated(job: Job, repetition: int) -> Job:
    """Return the same job with the seed of another repetition."""
    seed = job.seed + repetition
    again = replace(job, spec=job.spec | {"seed": seed}, seed=seed)
    # A trace is read, and its digest taken, once.
    again.__dict__["inputs"] = job.inputs
    return again


@dataclass(frozen=True)
class Plan:
    """Number of repetitions of a comparison, and its reason."""

    repetitions: int
    exact: bool = False
    """True if every seed gives the same."""
    wanted: int = 0
    """Repetitions that the losses need; more than `repetitions` where the budget does not allow them."""
    text: str = ""
    """For people, before the other repetitions begin; "" where there is nothing to say."""


def plan_of(alone: Sequence[Record], everything: Sequence[Record], budget_s: float, most: int = MOST) -> Plan:
    """Return the plan that follows from the first repetition: its runs alone, and all of its runs."""
    of_cpu = all(record.backend == "sim" for record in everything)
    cost_s = sum(cost_of(record) for record in everything)
    losses = median(expected_losses(record) for record in alone)
    wanted = min(most, LEAST) if losses <= 0 else min(most, max(LEAST, math.ceil(ENOUGH_LOSSES / losses)))
    allowed = most if cost_s <= 0 else max(1, int(budget_s / cost_s))
    lost = f", with {units.plain(losses)} losses by chance per run" if losses > 0 else ""
    text = f"a repetition took {units.duration(cost_s)}{' of processor time' if of_cpu else ''}{lost}: "
    if allowed < wanted:
        text += f"{units.pluralize(allowed, 'repetition')} of {wanted}, as the budget allows"
    else:
        text += f"{wanted} repetitions, {units.duration(wanted * cost_s)} in all"
    return Plan(min(wanted, allowed), wanted=wanted, text=text)


def cost_of(record: Record) -> float:
    """Return the cost of a run in the budget, s: processor time, on the kernel real time."""
    return float(record.metrics.get("cpu_s" if record.backend == "sim" else "simulated_s") or 0.0)


def announcement(congestion_controls: int, variants: int, runs: int, backend: str, budget_s: float) -> str:
    """Return the text that is printed before the first repetition; `variants` are paced, or have several streams."""
    time = "processor time" if backend == "sim" else "real time"
    each = "each alone and beside reno" if congestion_controls + variants > 1 else "alone and beside reno"
    controls = units.pluralize(congestion_controls, "congestion control")
    if variants:
        controls += f" and {units.pluralize(variants, 'variant')} by pace or streams"
    return (
        f"{controls}, {each}: {runs} runs per repetition, at least {LEAST} repetitions; "
        f"budget {units.duration(budget_s)} of {time} (--budget)"
    )


def budget_of(text: str | None, backend: str) -> float:
    """Return the budget of a text such as "10min", s; the backend's own without one. Raises `InputError`."""
    if text is None:
        return BUDGET_S[backend]
    from elephan.core import native

    try:
        return float(native.parse_span(text)) / 1e9
    except (ValueError, OverflowError) as error:
        raise InputError(f"--budget {text}: {str(error).rpartition(' is not ')[2]}") from None
