"""The ranked table: its columns and what they are numbers of, for a terminal and for the page alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from elephan.compare.rank import KEYS, TIE, Row
from elephan.compare.running import NEIGHBOUR_STACK, Comparison
from elephan.report import units


@dataclass(frozen=True)
class Column:
    """A column of the table."""

    title: str
    text: str
    """What it is a number of."""
    show: Callable[[Row], str]


def columns(done: Comparison) -> list[Column]:
    """Return the columns; what the rank is by stands in front where it is not among the others."""
    found = [
        Column("rank", "", lambda row: str(row.rank)),
        Column("stack", "", lambda row: row.stack),
    ]
    if done.by in ("lag", "latency", "completion"):
        key = KEYS[done.by]
        found.append(Column(key.title, "What the rank is by.", lambda row: key.show(key.value(row.numbers))))
    return [
        *found,
        Column(
            "goodput",
            "Payload handed to the receiving application in order, per second.",
            lambda row: units.rate(row.numbers.goodput_bps),
        ),
        Column(
            "share of line",
            "Goodput as a part of the line's rate; headers take the rest of a full line.",
            lambda row: units.share(row.numbers.line_share),
        ),
        Column(
            "drops caused",
            "Packets that queues dropped: the loss that the stack itself causes. What the line takes is not in it.",
            lambda row: units.count(row.numbers.caused_drops),
        ),
        Column(
            "retransmitted",
            "Segments sent again, needed or not.",
            lambda row: units.count(row.numbers.retransmitted_segments),
        ),
        Column("RTT mean", "Mean of the round-trip times.", lambda row: units.duration(row.numbers.rtt_mean_s)),
        Column(
            "queue",
            "Mean round-trip time above the least that any of the stacks saw.",
            lambda row: units.duration(row.queue_s),
        ),
        Column(
            "neighbour keeps",
            "Goodput of a reno flow beside this stack, as a part of what it gets beside reno.",
            lambda row: units.share(row.numbers.neighbour_kept),
        ),
    ]


def caption(done: Comparison) -> str:
    """Return what the rank is by, and what the numbers are of."""
    key = KEYS[done.by]
    order = "highest" if key.higher else "lowest"
    mean = ""
    if done.rows and done.rows[0].numbers.repetitions > 1:
        mean = f" Means over {done.rows[0].numbers.repetitions} repetitions."
    return (
        f"Ranked by {key.title}, {order} first; within {TIE * 100:g} % equal, then by fewer drops caused, then by "
        f"the shorter RTT.{mean} The neighbour is one {NEIGHBOUR_STACK} flow on the same route, in a second run."
    )
