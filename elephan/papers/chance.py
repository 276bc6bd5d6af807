"""The part of chance in a claim's runs: without any one run is as good as five; with some it is one draw."""

from __future__ import annotations

from collections.abc import Sequence

from elephan.api import Results
from elephan.papers.claims import Claim, Runs
from elephan.run_spec.types import LossSpec, RunSpec
from elephan.units import pluralize

FIXED_LOSS = ("none", "every_nth", "list")
FIXED_QUEUES = ("drop_tail", "codel")
FIXED_WORKLOADS = ("bulk", "program", "constant_rate")

NONE = "Nothing in these runs is random: another seed gives the same."
ONE = "One seed: chance was not measured."


def is_random(spec: RunSpec) -> bool:
    """Return False only if nothing of a run draws random numbers (`stream_seed` in crates/), so that seeds are alike.

    What is not known to draw none counts as random.
    """
    losses: list[LossSpec] = [link["loss"] for link in spec["links"]]
    losses += [event["action"]["loss"] for event in spec["events"] if event["action"]["kind"] == "loss"]
    manager = spec.get("manager")
    return (
        any(loss["kind"] not in FIXED_LOSS for loss in losses)
        or any(link["jitter"] is not None or link["queue"]["kind"] not in FIXED_QUEUES for link in spec["links"])
        or any(source["on_off_ns"] is not None for source in spec["background"])
        or bool(spec.get("short_flows"))
        or (manager is not None and manager["sampling_rate"] > 1)
        or any(flow["workload"]["kind"] not in FIXED_WORKLOADS for flow in spec["flows"])
        or any({"udt", "send_overhead"} & flow["transport"].keys() for flow in spec["flows"])
    )


def words_on(claim: Claim, results: Sequence[tuple[Runs, Results]]) -> str:
    """Return a sentence on how often the runs of a claim were drawn; empty where it has none."""
    parts = [list(part) for runs, part in results if runs in claim.runs]
    if not any(parts):
        return ""
    drawn = [part for part in parts if any(is_random(record.spec) for record in part)]
    if not drawn:
        return NONE
    seeds = min(len({record.seed for record in part}) for part in drawn)
    return ONE if seeds == 1 else f"{pluralize(seeds, 'seed')} where something is random."
