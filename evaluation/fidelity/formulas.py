"""Theory of Reno: rates in segments per second, times in s, windows in segments, losses per segment."""

from __future__ import annotations

from math import sqrt


def mathis(loss: float, rtt_s: float, segments_per_increase: float = 1.0) -> float:
    """Return the rate of AIMD under periodic loss: C / (RTT sqrt(p)), C = sqrt(3 / (2 b)).

    M. Mathis, J. Semke, J. Mahdavi, T. Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm",
    CCR 27(3), 1997, equation 3. b is the number of segments that an ACK must cover to count as one: 2 with delayed ACKs
    when ACKs are counted (sqrt(3/4)); 1 when acknowledged segments are, as Linux does (RFC 3465), whether ACKs
    are delayed or not (sqrt(3/2)).
    """
    return sqrt(3.0 / (2.0 * segments_per_increase)) / (rtt_s * sqrt(loss))


OTT_FACTOR = 1.3098 / sqrt(1.5)
"""Independent loss instead of periodic: the time average of the window is 1.3098 / sqrt(p) for small p.

T. Ott, J. Kemperman, M. Mathis, "The stationary behavior of ideal TCP congestion avoidance", 1996.
"""


def padhye(loss: float, rtt_s: float, rto_s: float, segments_per_increase: float = 1.0) -> float:
    """Return the rate of Reno under loss with time-outs.

    J. Padhye, V. Firoiu, D. Towsley, J. Kurose, "Modeling TCP throughput: a simple model and its empirical validation",
    SIGCOMM 1998, equation 30 (without a window limit): a duplicate-ACK recovery costs half the window, a time-out T0
    with its backoff. It models a Reno without SACK whose losses come in bursts to the end of a round.
    """
    b, p = segments_per_increase, loss
    time_outs = rto_s * min(1.0, 3.0 * sqrt(3.0 * b * p / 8.0)) * p * (1.0 + 32.0 * p * p)
    return 1.0 / (rtt_s * sqrt(2.0 * b * p / 3.0) + time_outs)


def window_limited(window_segments: int, rtt_s: float) -> float:
    """Return the rate of a sender whose window is the limit: W / RTT."""
    return window_segments / rtt_s


def sawtooth_period(line_segments_per_s: float, product_segments: float, queue_segments: float) -> float:
    """Return the time between two losses of one Reno flow on a line with a drop-tail queue, s.

    The window goes from W/2 to W = product + queue in steps of 1 per round trip: 3/8 W^2 segments. With a queue of at
    least one product the line never idles, so that these take 3/8 W^2 / line.
    """
    peak = product_segments + queue_segments
    return 3.0 / 8.0 * peak * peak / line_segments_per_s
