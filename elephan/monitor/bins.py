"""Samples of a path, ten seconds at a time: what its detectors of delay and route see.

A host that is busy sends late, reads late or reflects late, and what it measures meanwhile is longer than the path. So
the median of those samples counts with which both hosts were in time; where there are few, the least of all, since a
host's lateness only adds. No I/O.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from elephan.monitor.journal import UNKNOWN, Sample
from elephan.monitor.summaries import nearest_rank

BIN_S = 10.0
"""Time of a bin, s; a period where that is longer."""
LATE_LEAST_NS = 500_000
LATE_PART = 0.025
"""Lateness from which on a sample is late, ns and in parts of its RTT: a quarter of the tolerance of an agreed RTT."""
TIMELY_LEAST, TIMELY_PART = 3, 0.2
"""Timely samples that a median needs, and their share of all that were answered."""


def is_near_late(one: Sample) -> bool:
    """Return True if this host was late with a sample."""
    return one.late_ns > max(LATE_LEAST_NS, LATE_PART * one.rtt_ns)


def is_far_late(one: Sample) -> bool:
    """Return True if the far host was late with a sample."""
    return one.residence_ns > max(LATE_LEAST_NS, LATE_PART * one.rtt_ns)


@dataclass
class Bin:
    """The samples of a bin that runs."""

    span_s: float
    samples: list[Sample] = field(default_factory=list)

    @classmethod
    def of_period(cls, period_s: float) -> Bin:
        """Return an empty bin for samples so far apart."""
        return cls(max(BIN_S, period_s))

    def add(self, one: Sample) -> list[Sample]:
        """Take a sample; return those of the bin before when it is the first of another one."""
        done: list[Sample] = []
        if self.samples and one.sent_ns // 10**9 // self.span_s != self.samples[0].sent_ns // 10**9 // self.span_s:
            done, self.samples = self.samples, []
        self.samples.append(one)
        return done


def _timely(answered: Sequence[Sample]) -> list[Sample]:
    """Return the samples with which no host was late."""
    return [one for one in answered if not (is_near_late(one) or is_far_late(one))]


def values_of(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the values of a bin by quantity; none where no packet was answered."""
    answered = [one for one in samples if not one.is_lost]
    if not answered:
        return {}
    timely = _timely(answered)
    if len(timely) < min(len(answered), max(TIMELY_LEAST, TIMELY_PART * len(answered))):
        timely = [min(answered, key=lambda one: one.rtt_ns)]
    values = {"rtt_s": statistics.median(one.rtt_ns for one in timely) / 1e9}
    told = [one for one in timely if one.forward_ns != UNKNOWN]
    if told:
        values["forward_delay_s"] = statistics.median(one.forward_ns for one in told) / 1e9
        values["reverse_delay_s"] = statistics.median(one.rtt_ns - one.forward_ns for one in told) / 1e9
    ttls = Counter(one.ttl for one in answered if one.ttl)
    if ttls:
        values["ttl"] = float(ttls.most_common(1)[0][0])
    return values


def late_shares(samples: Sequence[Sample]) -> tuple[float, float]:
    """Return the shares of answered samples with which this host was late, and the far one."""
    answered = [one for one in samples if not one.is_lost]
    count = max(1, len(answered))
    return sum(map(is_near_late, answered)) / count, sum(map(is_far_late, answered)) / count


def delays_of(samples: Sequence[Sample]) -> dict[str, float] | None:
    """Return least, median and 95th percentile of the RTT, s: of timely samples, or of all where each is late.

    None where no packet was answered.
    """
    answered = [one for one in samples if not one.is_lost]
    values = sorted(one.rtt_ns / 1e9 for one in _timely(answered) or answered)
    if not values:
        return None
    return {"min_s": values[0], "median_s": nearest_rank(values, 0.5), "p95_s": nearest_rank(values, 0.95)}


def least_s(samples: Sequence[Sample]) -> float | None:
    """Return the least RTT that no host's lateness explains, s: that of timely samples; where each sample is late, the
    least after its lateness is subtracted. None where no packet was answered.
    """
    answered = [one for one in samples if not one.is_lost]
    bounds = [one.rtt_ns for one in _timely(answered)] or [one.rtt_ns - one.late_ns for one in answered]
    return min(bounds) / 1e9 if bounds else None
