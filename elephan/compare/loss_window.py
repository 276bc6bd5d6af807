"""The mean window that losses explain, by the published responses of Reno and CUBIC."""

from __future__ import annotations

RESPONSE = 2.0
"""Losses explain a mean window from Reno's by this factor to CUBIC's times it (RFC 9438, 5.1): a control that takes no
loss for congestion, such as BBR, has a larger one, and a flow that something else holds down a smaller one."""
CUBIC_FACTOR, CUBIC_EXPONENT = 1.054, 0.75
RENO_FACTOR, RENO_EXPONENT = 1.2247, 0.5
"""Mean window of one stream, packets, by the loss events per packet p: CUBIC's 1.054 (RTT/p)^0.75, or Reno's
sqrt(3/2)/p^0.5 where that is more (RFC 9438, 5.1)."""


def mean_window(lost: float, rtt_s: float) -> float:
    """Return the mean window of a CUBIC flow, packets, at a share of packets that begin a loss episode (RFC 9438, 5.1;
    Reno's where that is larger)."""
    return max(float(CUBIC_FACTOR * (rtt_s / lost) ** CUBIC_EXPONENT), reno_window(lost))


def reno_window(lost: float) -> float:
    """Return the mean window of a Reno flow, packets, at such a share."""
    return float(RENO_FACTOR / lost**RENO_EXPONENT)
