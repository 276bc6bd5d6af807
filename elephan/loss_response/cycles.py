"""Published response functions: mean window against loss, segments.

All are for periodic loss: one segment in every 1/p, which is what the sources assume. Each returns the mean of a
cycle, and the window at its loss: a run that loses its first segment at that window is in its steady state at once.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Cycle:
    """From one loss to the next."""

    mean: float
    """Segments per round trip, over the cycle."""
    peak: float
    """Window at the loss."""


def aimd(loss: float, rtt_s: float, increase: float, reduction: float, share: float = 1.0) -> Cycle:
    """W = sqrt(a (2 - b) / (2 b p)): `increase` a segments per round trip, the share b given up at a loss.

    `share` is that of the time in which the congestion control keeps to it.

    With a = 1, b = 1/2 that is Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997, with every segment counted (RFC 3465); in
    general Floyd, Handley, Padhye, "A comparison of equation-based and AIMD congestion control", 2000.
    """
    mean = math.sqrt(increase * (2.0 - reduction) / (2.0 * reduction * loss))
    return Cycle(share * mean, mean / (1.0 - reduction / 2.0))


def highspeed(loss: float, rtt_s: float) -> Cycle:
    """W = 0.12 / p^0.835 above 38 segments, Reno below (RFC 3649, equation 4 and section 5)."""
    reno = aimd(loss, rtt_s, 1.0, 0.5)
    mean = 0.12 / loss**0.835
    if mean < 38.0:
        return reno
    return Cycle(mean, mean / (1.0 - highspeed_reduction(mean) / 2.0))


def highspeed_of_linux(loss: float, rtt_s: float, segments_per_ack: float) -> Cycle:
    """HighSpeed by the rows of RFC 3649's appendix, of which Linux takes the next one above the window.

    A row is where a(w) of equation 6 is whole, with b(w) there. So a window between two rows has the growth and the
    reduction of the upper one: 2 and 0.44 from 38 segments on, where the RFC's equations have 1 and 0.5. It grows by
    a(w) / w for each ACK, whatever that acknowledges.
    """
    rows = highspeed_rows()

    def row(window: float) -> tuple[int, float]:
        increase = min(bisect_left(rows, window) + 1, len(rows))
        return increase, highspeed_reduction(rows[increase - 1])

    def kept(peak: float) -> float:
        return 1.0 - row(peak)[1]

    return summed(loss, kept, lambda window, rounds, peak: row(window)[0] / segments_per_ack)


def highspeed_reduction(window: float) -> float:
    """Return b(w) of RFC 3649, equation 5: the share given up at a window in segments."""
    share = (math.log(window) - math.log(38.0)) / (math.log(83_000.0) - math.log(38.0))
    return (0.1 - 0.5) * share + 0.5


@cache
def highspeed_rows() -> list[float]:
    """Return the windows at which a(w) is 1, 2 and so on, to 83,000 segments.

    a(w) = w^2 p(w) 2 b(w) / (2 - b(w)), p(w) = 0.078 / w^1.2.
    """
    rows, window = [38.0], 38.0
    while window < 83_000.0:
        window += 1.0
        reduction = highspeed_reduction(window)
        if window**0.8 * 0.078 * 2.0 * reduction / (2.0 - reduction) >= len(rows) + 1:
            rows.append(window)
    return rows


def scalable_of_linux(loss: float, rtt_s: float, per: float, segments_per_ack: float, reduction: float) -> Cycle:
    """Scalable as Linux has it: a segment for `per` counted ones, or for as many as the window holds if that is fewer.

    `segments_per_ack` is 1 where segments are counted, 2 where delayed ACKs are.
    """
    return summed(loss, 1.0 - reduction, lambda window, rounds, peak: window / min(window, per) / segments_per_ack)


def scalable(loss: float, rtt_s: float, increase: float, reduction: float, legacy: float) -> Cycle:
    """W = a / (b p), 0.08 / p, when the loss comes (Kelly, CCR 33(2), 2003); Reno up to the legacy window.

    From one loss to the next it takes log(1 - b) / log(1 + a) round trips, so that 1 / p over that is the mean.
    """
    peak = increase / (reduction * loss)
    if peak < legacy:
        return aimd(loss, rtt_s, 1.0, 0.5)
    return Cycle(-math.log1p(increase) / (loss * math.log1p(-reduction)), peak)


def cubic(loss: float, rtt_s: float, scale: float, kept: float) -> Cycle:
    """RFC 9438, equation 5 for the concave region, and never below Reno (section 4.3): the higher of the two."""
    reno = aimd(loss, rtt_s, 1.0, 0.5)
    mean = (scale * (3.0 + kept) / (4.0 * (1.0 - kept))) ** 0.25 * (rtt_s / loss) ** 0.75
    if mean < reno.mean:
        return Cycle(reno.mean, 2.0 * reno.mean / (1.0 + kept))
    return Cycle(mean, 4.0 * mean / (3.0 + kept))


def bic(loss: float, rtt_s: float, kept: float, max_increment: float, low_window: float, min_increment: float) -> Cycle:
    """BIC's growth per round trip, summed up from the window kept to the one lost (Xu, Harfoush, Rhee, INFOCOM 2004).

    Growth is half of the distance, between the least and the most increment; far from the peak that is AIMD with
    a = max_increment.
    """
    reno = aimd(loss, rtt_s, 1.0, 0.5)
    if reno.peak < low_window:
        return reno

    def growth(window: float, rounds: int, peak: float) -> float:
        if window <= low_window:
            return 1.0
        return max(min((peak - window) / 2.0, max_increment), min_increment)

    return summed(loss, kept, growth)


def bic_of_linux(
    loss: float, rtt_s: float, kept: float, max_increment: float, low_window: float, smooth: float
) -> Cycle:
    """BIC as Linux has it: a quarter of the distance per round trip; in the last 8 segments 4 / smooth.

    The paper's search with its least increment became that.
    """
    reno = aimd(loss, rtt_s, 1.0, 0.5)
    if reno.peak < low_window:
        return reno

    def growth(window: float, rounds: int, peak: float) -> float:
        if window <= low_window:
            return 1.0
        distance = peak - window
        return 4.0 / smooth if distance < 8.0 else min(distance / 4.0, max_increment)

    return summed(loss, kept, growth)


def htcp(loss: float, rtt_s: float, kept: float, delta_low_s: float) -> Cycle:
    """a = 2 (1 - b) (1 + 10 d + d^2 / 4) with d = time since the loss less delta_L (Leith and Shorten 2004)."""

    def growth(window: float, rounds: int, peak: float) -> float:
        late_s = max(0.0, rounds * rtt_s - delta_low_s)
        return 2.0 * (1.0 - kept) * (1.0 + 10.0 * late_s + late_s * late_s / 4.0)

    return summed(loss, kept, growth)


def compound(loss: float, rtt_s: float, alpha: float, beta: float, power: float) -> Cycle:
    """W += alpha W^k per round trip, W (1 - beta) at a loss (Tan, Song, Zhang, Sridharan 2006); never less than Reno.

    A cycle of 1 / p segments from (1 - beta) W to W: W^(2 - k) = (2 - k) alpha / (p (1 - (1 - beta)^(2 - k))).
    """
    reno = aimd(loss, rtt_s, 1.0, 0.5)
    rest = 2.0 - power
    peak = (rest * alpha / (loss * (1.0 - (1.0 - beta) ** rest))) ** (1.0 / rest)
    rounds = peak ** (1.0 - power) * (1.0 - (1.0 - beta) ** (1.0 - power)) / ((1.0 - power) * alpha)
    mean = 1.0 / (loss * rounds)
    return reno if mean < reno.mean else Cycle(mean, peak)


def summed(loss: float, kept: float | Callable[[float], float], growth: Callable[[float, int, float], float]) -> Cycle:
    """Return the cycle that begins at `kept` of its peak and reaches it when 1 / loss segments have been sent.

    `growth` is what a source says of one round trip: of the window, the round trips since the loss, and the peak.
    `kept` may depend on the peak.
    """

    def kept_of(peak: float) -> float:
        return kept(peak) if callable(kept) else kept

    low, high = 2.0, 4.0 / loss
    while high / low > 1.0001:
        peak = math.sqrt(low * high)
        if cost_of(peak, kept_of(peak), growth, 1.0 / loss)[0] < 1.0 / loss:
            low = peak
        else:
            high = peak
    segments, rounds = cost_of(low, kept_of(low), growth, 1.0 / loss)
    return Cycle(segments / rounds, low)


def cost_of(peak: float, kept: float, growth: Callable[[float, int, float], float], most: float) -> tuple[float, float]:
    """Return segments and round trips from `kept` of a peak to the peak; not beyond `most` segments."""
    window, segments, rounds = kept * peak, 0.0, 0
    while window < peak and segments < most:
        step = growth(window, rounds, peak)
        share = min(1.0, (peak - window) / step)
        segments += share * (window + share * step / 2.0)
        window += step
        if share < 1.0:
            return segments, rounds + share
        rounds += 1
    return segments, float(rounds)
