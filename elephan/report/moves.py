"""Cost of a move: rates before and after, duplicate ACKs and losses after it, and the time until the flow was back.

From a record and its series alone, so that it holds for either backend. Rates are payload handed to the receiving
application; the series' interval says how finely they can be told. A move between two samples, as on the backend
kernel, counts from the one before, so that nothing that came of it is missed. `Course` is what flows did about any
moment, `Move` what came of one that an event made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elephan.record import Record
from elephan.store.series import Series, values_of

Floats = npt.NDArray[np.float64]

SECOND_S = 1.0
"""Time over which rates are averaged, for a user's view of a move."""

PEAK_S = 0.1
"""Time after a move in which both paths deliver, s."""

EARLY_S = 0.2
"""Time after a move in which losses count as those of two paths that meet, s."""

BACK_RTTS = 10
"""Round trips of the old path, and at least a second, over which a flow must keep a rate to be back at it. A shorter
time would count data that waited for a lost segment, and is delivered all at once, as a rate."""

WAKE_RTTS = 20
WAKE_S = 10.0
"""Least time after a move in which events count as its effects; it is at least so many round trips of the old path."""


@dataclass(frozen=True)
class Course:
    """Rates of flows together before and after a moment, and losses of links."""

    time_s: Floats
    """Ends of the series' intervals."""
    bits: Floats
    """Payload delivered since the run began, at those times."""
    first: int
    """The sample from which the moment counts: the last one at or before it."""
    counters: dict[str, Floats]
    """Of the flows, at those times: `duplicate_acks` where the backend knows them, `retransmitted_segments`."""
    lost_s: Floats
    lost_packets: Floats
    """By all links, at the times before."""

    @classmethod
    def of(cls, series: Series, flows: Sequence[int], at_s: float) -> Course:
        """Read it off a series, which has samples."""
        rows = np.isin(values_of(series.flow, "flow"), list(flows))

        def summed(name: str) -> tuple[Floats, Floats]:
            return _summed(series.flow, name, rows)

        time_s, rates = summed("goodput_bps")
        names = ("duplicate_acks", "retransmitted_segments")
        lost_s, lost = _summed(series.link, "dropped_packets", np.ones(series.link.num_rows, dtype=bool))
        return cls(
            time_s=time_s,
            bits=np.cumsum(rates * np.diff(time_s, prepend=0.0)),
            first=_sample_before(time_s, at_s) if len(time_s) else 0,
            counters={name: summed(name)[1] for name in names if name in series.flow.column_names},
            lost_s=lost_s,
            lost_packets=lost,
        )

    @property
    def since_s(self) -> Floats:
        """Ends of the series' intervals since the moment, from 0 on."""
        since_s: Floats = self.time_s[self.first :] - self.time_s[self.first]
        return since_s

    @property
    def delivered_bits(self) -> Floats:
        """Payload delivered since the moment, at those times."""
        delivered: Floats = self.bits[self.first :] - self.bits[self.first]
        return delivered

    def before_bps(self, over_s: float) -> float:
        """Mean over the time `over_s` before."""
        earlier = _sample_before(self.time_s, self.time_s[self.first] - over_s)
        span_s = self.time_s[self.first] - self.time_s[earlier]
        return float((self.bits[self.first] - self.bits[earlier]) / span_s) if span_s > 0 else float("nan")

    def seconds(self) -> tuple[Floats, Floats]:
        """Return the mean of each second that begins at a sample, and when it begins since the moment, s."""
        return _means(self.since_s, self.delivered_bits, SECOND_S)

    def counted(self, name: str, over_s: float) -> int | None:
        """Events of a counter within `over_s`; None where the backend does not know them."""
        if name not in self.counters:
            return None
        column = self.counters[name][self.first :]
        return int(column[min(int(np.searchsorted(self.since_s, over_s - 1e-9)), len(column) - 1)] - column[0])

    def lost_before(self) -> int:
        """Packets that all links lost before."""
        if not len(self.lost_s):
            return 0
        return int(self.lost_packets[_sample_before(self.lost_s, self.time_s[self.first])])

    def lost(self, over_s: float) -> int:
        """Packets that all links lost within `over_s`."""
        if not len(self.lost_s):
            return 0
        end = int(np.searchsorted(self.lost_s, self.time_s[self.first] + over_s - 1e-9))
        return int(self.lost_packets[min(end, len(self.lost_s) - 1)]) - self.lost_before()


@dataclass(frozen=True)
class Move:
    """One flow that one event moved, and the effects."""

    flow: int
    """Index into the record's flows."""
    time_s: float
    """Time of the event since the run began."""
    rtt_before_s: float
    rtt_after_s: float
    """Propagation."""
    route_after: tuple[int, ...]
    before_bps: float
    """Mean over the round trip before, or a tenth of a second if that is longer: the flow's rate before the move. It is
    at most the rate of the slowest link of its path, since data that waited for a lost segment is delivered all at
    once."""
    peak_bps: float
    """Mean over the first tenth of a second."""
    least_bps: float
    """Least mean over a whole second within the wake."""
    least_at_s: float
    """Start of that second, since the move."""
    duplicate_acks: int | None
    """Within the wake; None where the backend does not know."""
    retransmitted_segments: int
    """Within the wake."""
    dropped_early: int
    """Packets lost on all links in the first `EARLY_S`."""
    dropped: int
    """Within the wake."""
    course: Course
    """All that the flow did."""

    @property
    def dip(self) -> float:
        """Part of the rate before that the least second lacks; below 0 when every second was faster."""
        return 1 - self.least_bps / self.before_bps if self.before_bps else float("nan")

    @property
    def since_s(self) -> Floats:
        """Ends of the series' intervals since the move, from 0 on."""
        return self.course.since_s

    def seconds(self) -> tuple[Floats, Floats]:
        """Return the mean of each second that begins at a sample, and when it begins since the move, s."""
        return self.course.seconds()

    def back_s(self, rate_bps: float) -> float | None:
        """Return when the flow was back at `rate_bps`, kept for `BACK_RTTS`, since the move; None: not in the run.

        0 where the least second itself is no slower: the flow was never away.
        """
        if self.least_bps >= rate_bps:
            return 0.0
        means, begins = _means(self.since_s, self.course.delivered_bits, max(SECOND_S, BACK_RTTS * self.rtt_before_s))
        back = np.flatnonzero((begins >= self.least_at_s - 1e-9) & (means >= rate_bps))
        return float(begins[back[0]]) if len(back) else None


def _means(time_s: Floats, bits: Floats, over_s: float) -> tuple[Floats, Floats]:
    ends = np.searchsorted(time_s, time_s + over_s - 1e-9)
    whole = ends < len(time_s)
    begins = np.flatnonzero(whole)
    spans_s = time_s[ends[whole]] - time_s[begins]
    return (bits[ends[whole]] - bits[begins]) / spans_s, time_s[begins]


def round_trip_s(record: Record, route: Sequence[int], return_route: Sequence[int]) -> float:
    """Return the propagation round-trip time of a pair of routes, as the run began, s."""
    links = record.spec["links"]
    return sum(int(links[link]["delay_ns"]) for link in (*route, *return_route)) / 1e9


def _slowest_bps(record: Record, route: Sequence[int]) -> float:
    return float(min(int(record.spec["links"][link]["rate_bps"]) for link in route))


def moves_of(record: Record, series: Series) -> list[Move]:
    """Return every move that happened, flow by flow, in order; none without series."""
    if not series.flow.num_rows:
        return []
    ways = [(list(flow["route"]), list(flow["return_route"])) for flow in record.spec["flows"]]
    happened = [
        (float(time_s), event["action"])
        for event, time_s in zip(record.spec["events"], record.event_times_s, strict=False)
        if time_s is not None and event["action"]["kind"] == "move"
    ]
    found = []
    for time_s, action in sorted(happened, key=lambda item: item[0]):
        for flow in action["flows"]:
            old = ways[flow]
            ways[flow] = (action["route"] or old[0], action["return_route"] or old[1])
            found.append(_move(record, series, flow, time_s, old, ways[flow]))
    return [move for move in found if move is not None]


def _move(
    record: Record,
    series: Series,
    flow: int,
    time_s: float,
    old: tuple[list[int], list[int]],
    new: tuple[list[int], list[int]],
) -> Move | None:
    course = Course.of(series, [flow], time_s)
    if len(course.time_s) < 2 or course.time_s[-1] < time_s + SECOND_S:
        return None
    rtt_s = round_trip_s(record, *old)
    wake_s = max(WAKE_S, WAKE_RTTS * rtt_s)
    means, begins = course.seconds()
    within = means[begins <= wake_s + 1e-9]
    least = int(np.argmin(within))
    since_s = course.since_s
    peak = min(int(np.searchsorted(since_s, PEAK_S - 1e-9)), len(since_s) - 1)
    return Move(
        flow=flow,
        time_s=time_s,
        rtt_before_s=rtt_s,
        rtt_after_s=round_trip_s(record, *new),
        route_after=tuple(new[0]),
        before_bps=min(_slowest_bps(record, old[0]), course.before_bps(max(PEAK_S, rtt_s))),
        peak_bps=float(course.delivered_bits[peak] / since_s[peak]) if peak else float("nan"),
        least_bps=float(within[least]),
        least_at_s=float(begins[least]),
        duplicate_acks=course.counted("duplicate_acks", wake_s),
        retransmitted_segments=course.counted("retransmitted_segments", wake_s) or 0,
        dropped_early=course.lost(EARLY_S),
        dropped=course.lost(wake_s),
        course=course,
    )


def _sample_before(times: Floats, time_s: float) -> int:
    """Index of the last sample at or before a time; of the first one where there is none."""
    return max(int(np.searchsorted(times, time_s + 1e-9, side="right")) - 1, 0)


def _summed(table: Any, name: str, rows: Any) -> tuple[Floats, Floats]:
    """Times of samples, and a column's sums over all that have a row there."""
    times, places = np.unique(values_of(table, "time_s")[rows], return_inverse=True)
    sums = np.zeros(len(times))
    np.add.at(sums, places, np.asarray(values_of(table, name)[rows], dtype=np.float64))
    return np.asarray(times, dtype=np.float64), sums
