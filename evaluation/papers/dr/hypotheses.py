"""The paper's rates, 0.13 MB/s per stream: what would give them, one change to the stated path at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from elephan.papers.evaluation import Evaluation, PaperResults, Table, part
from elephan.papers.spread import Spread
from elephan.record import Record

from .transfers import JUDGED, TUNED_BYTES, UNTUNED_BYTES, path_of, spreads, transfer_of

CLAIM = "dr.rates"

Points = Mapping[tuple[int, int, str], Spread]
"""Throughput by window, streams and congestion control."""

FEW = (1, 2)
"""Streams with which the paper finds BIC about equal to FAST."""


@part("hypotheses.toml")
def rates(results: PaperResults) -> Evaluation:
    """Ten streams under each hypothesis; what else of the paper it would give."""
    found = points_of(results.of("hypotheses.toml"))
    measured = {name: ten_streams(points).values for name, points in found.items()}
    heads = (
        "hypothesis",
        "1 stream",
        "10 streams",
        "times the paper's 1.3",
        "steps that give more, of 12",
        "most of 10 over 8",
        "FAST > BIC > Reno, of 5",
        "BIC / FAST, 1 and 2 streams",
        "184,320 / 65,535 B",
    )
    rows = [(name, *_row(points)) for name, points in found.items()]
    caption = (
        "MB/s of Reno to FAST, least to largest of five seeds each, window 65,535 B. A step or an order counts where "
        "the ranges of its seeds do not overlap. The last column: least and largest over streams and controls."
    )
    return Evaluation({CLAIM: measured}, [], [Table(CLAIM, "Hypotheses, one at a time", heads, tuple(rows), caption)])


def points_of(records: Sequence[Record]) -> dict[str, Points]:
    """Return throughputs by hypothesis and point."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(path_of(record.spec), []).append(record)
    return {
        name: spreads(map(transfer_of, part), lambda one: (one.window_bytes, one.streams, one.cc))
        for name, part in found.items()
    }


def ten_streams(points: Points) -> Spread:
    """Return the throughput of ten streams, of the fastest congestion control, MB/s."""
    return max((points[UNTUNED_BYTES, 10, cc] for cc in JUDGED), key=lambda rates: rates.median)


def in_order(points: Points, streams: int) -> bool:
    """Return True if FAST is above BIC and BIC above Reno, without tuning, ranges apart."""
    slow, middle, fast = (points[UNTUNED_BYTES, streams, cc] for cc in JUDGED)
    return slow.is_below(middle) and middle.is_below(fast)


def steps(points: Points) -> int:
    """Return how often more streams gave more, ranges apart, without tuning."""
    pairs = [(less, more, cc) for less, more in pairwise(counts_of(points)) for cc in JUDGED]
    return sum(points[UNTUNED_BYTES, a, cc].is_below(points[UNTUNED_BYTES, b, cc]) for a, b, cc in pairs)


def counts_of(points: Points) -> list[int]:
    """Return the numbers of streams."""
    return sorted({streams for _, streams, _ in points})


def _row(points: Points) -> tuple[str, ...]:
    def rate(streams: int) -> str:
        of_all = [points[UNTUNED_BYTES, streams, cc] for cc in JUDGED]
        return _span([one.low for one in of_all] + [one.high for one in of_all])

    def median(window: int, streams: int, cc: str) -> float:
        return points[window, streams, cc].median

    counts = counts_of(points)
    gain = max(median(UNTUNED_BYTES, 10, cc) / median(UNTUNED_BYTES, 8, cc) for cc in JUDGED)
    few = [median(UNTUNED_BYTES, count, "bic") / median(UNTUNED_BYTES, count, "fast") for count in FEW]
    tuned = [median(TUNED_BYTES, count, cc) / median(UNTUNED_BYTES, count, cc) for count in counts for cc in JUDGED]
    return (
        rate(1),
        rate(10),
        f"{ten_streams(points).median / 1.3:.2f}",
        str(steps(points)),
        f"{gain:.2f}",
        str(sum(in_order(points, count) for count in counts)),
        _span(few),
        _span(tuned),
    )


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"
