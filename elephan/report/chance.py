"""Chance in the numbers of records: how few losses they hang on. From records alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from elephan.record import Record
from elephan.units import count, pluralize

FEW = 30
"""Losses below which numbers that hang on them are said to be few: the number of n independent losses is known to
1/sqrt(n), which is 18 % at 30."""

FEW_BY_CHANCE = 20
"""Expected losses by chance over all repetitions, below which a note says so: they vary by 22 % and more."""

RANDOM_LOSS = frozenset({"independent", "gilbert_elliott", "runs", "bit_error_rate", "bit_error_bursts"})
"""Loss models of a link that draw."""


def losses(record: Record) -> int:
    """Return the packets that a run's flows lost on lines and in queues.

    Under netem the flows do not know them: these are then all packets that the links dropped.
    """
    own = [flow["dropped_packets"] for flow in record.flows if flow.get("dropped_packets") is not None]
    if own:
        return int(sum(own))
    return int(sum(link.get("dropped_packets") or 0 for link in record.links))


def few_losses(records: Sequence[Record]) -> str | None:
    """Return a note where the numbers of one point hang on fewer than `FEW` losses; None where they do not.

    `records` are the repetitions of the point. Without a random loss on its links a run without losses, or one that has
    ended by itself, needs no note, and repetitions of one with some may all be the same.
    """
    seen = sum(losses(record) for record in records)
    if not records or seen >= FEW:
        return None
    drawn = any(_draws_losses(record.spec) for record in records)
    among = "" if len(records) == 1 else f" in {pluralize(len(records), 'repetition')}"
    more = "use repetitions (run.repetitions)" if len(records) == 1 else "use more repetitions"
    if drawn:
        lost = f"only {_losses(seen)}{among}" if seen else f"no loss{among} on a line that loses packets at random"
        return f"{lost}: {'too few to be' if seen else 'not'} significant; {more}"
    if seen and not all(_has_ended(record) for record in records):
        longer = "the numbers hang on where the run ends; a longer run (run.duration) says more"
        return f"only {_losses(seen)}{among}: {longer}"
    return None


def _has_ended(record: Record) -> bool:
    """Return True if each flow has carried all of its data, so that a longer run would be the same."""
    return all(flow.get("completion_s") is not None for flow in record.flows)


def expected_losses(record: Record) -> float:
    """Return how often the lines of a run take packets by chance, on average over all seeds; a burst counts once."""
    found = 0.0
    for link, counted in zip(record.spec["links"], record.links, strict=True):
        packets = sum(counted.get(name) or 0 for name in ("delivered_packets", "dropped_by_loss"))
        found += _by_chance(link["loss"], packets, counted.get("delivered_bytes") or 0)
    return found


def loss_per_packet(loss: Mapping[str, Any], packet_bytes: int) -> float:
    """Return how often a line takes a packet, per packet of this size, whether it draws or counts; a burst counts once,
    and a list of packets not at all.
    """
    if loss["kind"] == "every_nth":
        return 1.0 / int(loss["n"])
    return min(1.0, _by_chance(loss, 1.0, packet_bytes))


def _by_chance(loss: Mapping[str, Any], packets: float, line_bytes: float) -> float:
    match loss["kind"]:
        case "independent":
            return float(packets * loss["probability_e12"] / 1e12)
        case "bit_error_rate":
            return float(8 * line_bytes * loss["probability_e18"] / 1e18)
        case "bit_error_bursts":
            return float(8 * line_bytes * loss["good_to_bad_e18"] / 1e18)
        case "runs":
            begins = loss["begins_e12"] / 1e12
            return float(packets * begins / (1 + (loss["length"] - 1) * begins))
        case "gilbert_elliott":
            into_bad, out_of_bad = loss["good_to_bad_e12"] / 1e12, loss["bad_to_good_e12"] / 1e12
            good = out_of_bad / (into_bad + out_of_bad) if into_bad else 1.0
            return float(packets * good * (into_bad + loss["loss_good_e12"] / 1e12))
        case _:
            return 0.0


def few_by_chance(records: Sequence[Record]) -> str | None:
    """Return a note where lines take too few packets by chance, however many the queues dropped; else None.

    A burst of drops in a queue is one event, and thousands of them say nothing of the line's losses.
    """
    if not 0 < sum(expected_losses(record) for record in records) < FEW_BY_CHANCE:
        return None
    lost = sum(link.get("dropped_by_loss") or 0 for record in records for link in record.links)
    losses = f"only {lost} {'loss' if lost == 1 else 'losses'} by chance"
    return f"{losses}: too few to be significant" if len(records) == 1 else f"{losses} in {len(records)} repetitions"


def _losses(number: int) -> str:
    return "1 loss" if number == 1 else f"{count(number)} losses"


def _draws_losses(spec: Mapping[str, Any]) -> bool:
    """Return True if a link loses packets at random, from the beginning or by an event."""
    certain = 10**12
    return any(
        loss.get("kind") in RANDOM_LOSS and loss.get("probability_e12") != certain for loss in _loss_models(spec)
    )


def _loss_models(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for link in spec.get("links", ()):
        yield link.get("loss") or {}
    for event in spec.get("events", ()):
        yield event.get("action", {}).get("loss") or {}
