"""What a move cost: rates before and after, duplicate ACKs and losses in its wake, and when the flow was back.

From a record and its series alone, so that it holds for either ground. Rates are payload handed to the receiving
application; the series' interval says how finely they can be told. A move between two samples, as on the ground kernel,
counts from the one before, so that nothing that came of it is missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elephan.record import Record
from elephan.store.series import Series

Floats = npt.NDArray[np.float64]

SECOND_S = 1.0
"""Time over which rates are averaged: what a move took from a user is told in seconds."""

PEAK_S = 0.1
"""Time after a move in which both ways deliver, s."""

EARLY_S = 0.2
"""Time after a move in which losses count as those of two ways that meet, s."""

BACK_RTTS = 10
"""Round trips of the old way, and at least a second, over which a flow must keep a rate to be back at it: less would
take for a rate that what waited for a lost segment is delivered all at once."""

WAKE_RTTS = 20
WAKE_S = 10.0
"""What happens within so many round trips of the old way, and at least so many seconds, is put down to the move."""


@dataclass(frozen=True)
class Move:
    """One flow that one event moved, and what came of it."""

    flow: int
    """Index into the record's flows."""
    time_s: float
    """When, since the run began."""
    rtt_before_s: float
    rtt_after_s: float
    """Propagation."""
    route_after: tuple[int, ...]
    before_bps: float
    """Mean over the round trip before, or a tenth of a second where that is longer: what the flow had come to; no more
    than the slowest link of its way carries, since what waited for a lost segment is delivered all at once."""
    peak_bps: float
    """Mean over the first tenth of a second."""
    least_bps: float
    """Least mean over a whole second within the wake."""
    least_at_s: float
    """When that second began, since the move."""
    duplicate_acks: int | None
    """Within the wake; None where the ground does not know."""
    retransmitted_segments: int
    """Within the wake."""
    dropped_early: int
    """Packets lost on all links in the first `EARLY_S`."""
    dropped: int
    """Within the wake."""
    since_s: Floats
    """Ends of the series' intervals since the move, from 0 on."""
    delivered_bits: Floats
    """Payload delivered since the move, at those times."""

    @property
    def dip(self) -> float:
        """Part of the rate before that the least second lacks; below 0 when every second was faster."""
        return 1 - self.least_bps / self.before_bps if self.before_bps else float("nan")

    def seconds(self) -> tuple[Floats, Floats]:
        """Return the mean of each second that begins at a sample, and when it begins since the move, s."""
        return _means(self.since_s, self.delivered_bits, SECOND_S)

    def back_s(self, rate_bps: float) -> float | None:
        """Return when the flow was back at `rate_bps`, kept for `BACK_RTTS`, since the move; None: not in the run.

        0 where the least second itself is no slower: the flow was never away.
        """
        if self.least_bps >= rate_bps:
            return 0.0
        means, begins = _means(self.since_s, self.delivered_bits, max(SECOND_S, BACK_RTTS * self.rtt_before_s))
        back = np.flatnonzero((begins >= self.least_at_s - 1e-9) & (means >= rate_bps))
        return float(begins[back[0]]) if len(back) else None


def _means(time_s: Floats, bits: Floats, over_s: float) -> tuple[Floats, Floats]:
    ends = np.searchsorted(time_s, time_s + over_s - 1e-9)
    whole = ends < len(time_s)
    begins = np.flatnonzero(whole)
    spans_s = time_s[ends[whole]] - time_s[begins]
    return (bits[ends[whole]] - bits[begins]) / spans_s, time_s[begins]


def round_trip_s(record: Record, route: Sequence[int], return_route: Sequence[int]) -> float:
    """Return the propagation round-trip time of a pair of ways, as the run began, s."""
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
        for event, time_s in zip(record.spec["events"], record.happened_s, strict=False)
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
    rows = series.flow.column("flow").to_numpy() == flow
    times = _column(series.flow, "time_s", rows)
    rates = _column(series.flow, "goodput_bps", rows)
    if len(times) < 2 or times[-1] < time_s + SECOND_S:
        return None
    bits = np.cumsum(rates * np.diff(times, prepend=0.0))
    first = _sample_before(times, time_s)
    since_s, after = times[first:] - times[first], bits[first:] - bits[first]
    rtt_s = round_trip_s(record, *old)
    earlier = _sample_before(times, times[first] - max(PEAK_S, rtt_s))
    span_s = times[first] - times[earlier]
    wake_s = max(WAKE_S, WAKE_RTTS * rtt_s)
    means, begins = _means(since_s, after, SECOND_S)
    within = means[begins <= wake_s + 1e-9]
    least = int(np.argmin(within))
    nan = float("nan")
    peak = min(int(np.searchsorted(since_s, PEAK_S - 1e-9)), len(since_s) - 1)

    def counted(name: str) -> int | None:
        if name not in series.flow.column_names:
            return None
        column = _column(series.flow, name, rows)[first:]
        return int(column[min(int(np.searchsorted(since_s, wake_s - 1e-9)), len(column) - 1)] - column[0])

    return Move(
        flow=flow,
        time_s=time_s,
        rtt_before_s=rtt_s,
        rtt_after_s=round_trip_s(record, *new),
        route_after=tuple(new[0]),
        before_bps=min(_slowest_bps(record, old[0]), (bits[first] - bits[earlier]) / span_s) if span_s > 0 else nan,
        peak_bps=float(after[peak] / since_s[peak]) if peak else nan,
        least_bps=float(within[least]),
        least_at_s=float(begins[least]),
        duplicate_acks=counted("duplicate_acks"),
        retransmitted_segments=counted("retransmitted_segments") or 0,
        dropped_early=_lost(series, times[first], EARLY_S),
        dropped=_lost(series, times[first], wake_s),
        since_s=since_s,
        delivered_bits=after,
    )


def _sample_before(times: Floats, time_s: float) -> int:
    """Index of the last sample at or before a time; of the first one where there is none."""
    return max(int(np.searchsorted(times, time_s + 1e-9, side="right")) - 1, 0)


def _column(table: Any, name: str, rows: Any) -> Floats:
    return np.asarray(table.column(name).to_numpy()[rows], dtype=np.float64)


def _lost(series: Series, from_s: float, over_s: float) -> int:
    """Packets that all links lost within `over_s` from `from_s` on."""
    total = 0.0
    links = series.link.column("link").to_numpy()
    for link in np.unique(links):
        rows = links == link
        times, dropped = _column(series.link, "time_s", rows), _column(series.link, "dropped_packets", rows)
        before = dropped[_sample_before(times, from_s)]
        total += dropped[min(int(np.searchsorted(times, from_s + over_s - 1e-9)), len(times) - 1)] - before
    return int(total)
