"""Numbers that are read off a run with one move, of all flows together, from the move to the run's end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from elephan.report.moves import Course
from elephan.report.timeline import Floats
from evaluation.moves.both_backends import Run


@dataclass(frozen=True)
class Effect:
    """Effect of a move."""

    moved_at_s: float
    rate_bps: float
    """Mean goodput since."""
    dip: float
    """Part of the second before that the least second since lacks; 0 where none was slower."""
    least_bps: float
    """Least mean over a second since."""
    retransmitted_segments: int
    dropped_packets: int
    """Those that found a hold buffer full included."""
    first_drop_s: float | None
    """Since the move, as far as the series' interval tells; None: nothing was dropped. Series count the drops of links:
    where a hold buffer alone dropped, that is when the first segment was sent again."""

    @classmethod
    def of(cls, run: Run) -> Effect:
        """Read it off a run, in which one event moved flows."""
        (at_s,) = (
            float(time_s)
            for event, time_s in zip(run.record.spec["events"], run.record.event_times_s, strict=True)
            if event["action"]["kind"] == "move" and time_s is not None
        )
        course = Course.of(run.series, range(len(run.record.flows)), at_s)
        means, _ = course.seconds()
        rest_s = float(course.since_s[-1])
        dropped = int(run.record.metrics["dropped_packets"] or 0) - course.lost_before()
        first_s = _first(course.lost_s, course.lost_packets, at_s)
        if dropped and first_s is None:
            first_s = _first(course.time_s, course.counters["retransmitted_segments"], at_s)
        least = float(means.min())
        return cls(
            moved_at_s=at_s,
            rate_bps=float(course.delivered_bits[-1]) / rest_s,
            dip=max(0.0, 1 - least / course.before_bps(1.0)),
            least_bps=least,
            retransmitted_segments=course.counted("retransmitted_segments", rest_s) or 0,
            dropped_packets=dropped,
            first_drop_s=None if first_s is None else first_s - at_s,
        )


def _first(time_s: Floats, counter: Floats, at_s: float) -> float | None:
    """Return when a counter first grew after `at_s`; None where it did not."""
    grown = np.flatnonzero((np.diff(counter, prepend=counter[:1]) > 0) & (time_s > at_s))
    return float(time_s[grown[0]]) if len(grown) else None


def kept_back(run: Run) -> str:
    """Return how much a hold kept back, and for how long; a dash where there was none."""
    most, longest = run.record.metrics.get("held_bytes_max"), run.record.metrics.get("held_max_s")
    return f"{most / 1e6:.2f} MB, {longest * 1e3:.0f} ms" if most and longest else "-"


def mitigation(run: Run) -> str:
    """Return the mitigation of a run, as the scenario has it."""
    text = str(run.record.parameters["event.0.mitigation"])
    return "none" if text == "[]" else f"`{text}`"
