"""Notes that a knowing colleague would add to records: what their numbers hang on. From records alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from elephan.record import Record
from elephan.report import units
from elephan.report.units import count, things

FEW = 30
"""Losses below which numbers that hang on them are said to be few: the number of n independent losses is known to
1/sqrt(n), which is 18 % at 30."""

RANDOM_LOSS = frozenset({"independent", "gilbert_elliott", "bit_error_rate"})
"""Loss models of a link that draw."""


def losses(record: Record) -> int:
    """Return the packets that a run's flows lost on lines and in queues.

    Where the flows do not know, which is so under netem, these are all that its links dropped.
    """
    own = [flow["dropped_packets"] for flow in record.flows if flow.get("dropped_packets") is not None]
    if own:
        return int(sum(own))
    return int(sum(link.get("dropped_packets") or 0 for link in record.links))


def few_losses(records: Sequence[Record]) -> str | None:
    """Return a note where the numbers of one point hang on fewer than `FEW` losses; None where they do not.

    `records` are the repetitions of the point. Without a random loss on its links a run without losses needs no note,
    and repetitions of one with some may all be the same.
    """
    seen = sum(losses(record) for record in records)
    if not records or seen >= FEW:
        return None
    drawn = any(_draws_losses(record.spec) for record in records)
    among = "" if len(records) == 1 else f" in {things(len(records), 'repetition')}"
    more = "use repetitions (run.repetitions)" if len(records) == 1 else "use more repetitions"
    if drawn:
        lost = f"only {_losses(seen)}{among}" if seen else f"no loss{among} on a line that loses packets at random"
        return f"{lost}: {'one throw of the dice' if len(records) == 1 else 'few throws of the dice'}; {more}"
    if seen:
        longer = "the numbers hang on where the run ends; a longer run (run.duration) says more"
        return f"only {_losses(seen)}{among}: {longer}"
    return None


def extrapolated(spec: Mapping[str, Any], how: Mapping[str, Any] | None) -> list[str]:
    """Return what a reader must know of a long copy of which a part was simulated; nothing for any other run."""
    if how is None:
        return []
    name = re.sub(r"\.1$", "", str(spec["flows"][0]["name"])) if len(spec["flows"]) > 1 else spec["flows"][0]["name"]
    part = f"flow {name}: {units.size(how['simulated_bytes'])} of {units.size(how['bytes'])} were simulated"
    if "refused" in how:
        return [
            f"{part}, and the rest cannot be extrapolated: {how['refused']}; --exact (run.exact) simulates all of it"
        ]
    whole = "the run ends before the copy"
    if "completion_s" in how:
        expected, low, high = (units.duration(how[f"completion_{key}s"]) for key in ("", "low_", "high_"))
        whole = f"completion {expected}, 95 % from {low} to {high}"
    steady = f"steady from {units.duration(how['steady_from_s'])} on by MSER"
    batches = f"{how['batches']} batch means of {units.duration(how['batch_s'])}"
    return [
        f"{part}, the rest extrapolated ({steady}, {batches}): {whole}; counters are of the part; --exact (run.exact) "
        "simulates all of it"
    ]


def _losses(number: int) -> str:
    return "1 loss" if number == 1 else f"{count(number)} losses"


def _draws_losses(spec: Mapping[str, Any]) -> bool:
    """Whether a link loses packets at random, from the beginning or by an event."""
    return any(loss.get("kind") in RANDOM_LOSS for loss in _loss_models(spec))


def _loss_models(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for link in spec.get("links", ()):
        yield link.get("loss") or {}
    for event in spec.get("events", ()):
        yield event.get("action", {}).get("loss") or {}
