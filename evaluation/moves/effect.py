"""Numbers that are read off a run with one move, of all flows together, from the move to the run's end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from elephan.report.moves import Course
from evaluation.moves.both_backends import Run


@dataclass(frozen=True)
class Effect:
    """What a move did."""

    moved_at_s: float
    rate_bps: float
    """Mean goodput since."""
    dip: float
    """Part of the second before that the least second since lacks; 0 where none was slower."""
    least_bps: float
    """Least mean over a second since."""
    retransmitted_segments: int
    dropped_packets: int
    first_drop_s: float | None
    """Since the move, as far as the series' interval tells; None: nothing was dropped."""

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
        since = np.flatnonzero((course.lost_s > at_s) & (course.lost_packets > course.lost_before()))
        least = float(means.min())
        return cls(
            moved_at_s=at_s,
            rate_bps=float(course.delivered_bits[-1]) / rest_s,
            dip=max(0.0, 1 - least / course.before_bps(1.0)),
            least_bps=least,
            retransmitted_segments=course.counted("retransmitted_segments", rest_s) or 0,
            dropped_packets=course.lost(rest_s),
            first_drop_s=float(course.lost_s[since[0]]) - at_s if len(since) else None,
        )


def kept_back(run: Run) -> str:
    """Return how much a hold kept back, and for how long; a dash where there was none."""
    most, longest = run.record.metrics.get("held_bytes_max"), run.record.metrics.get("held_max_s")
    return f"{most / 1e6:.2f} MB, {longest * 1e3:.0f} ms" if most and longest else "-"


def mitigation(run: Run) -> str:
    """Return the mitigation of a run, as the scenario has it."""
    text = str(run.record.parameters["event.0.mitigation"])
    return "none" if text == "[]" else f"`{text}`"
