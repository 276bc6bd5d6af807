"""What the source of an algorithm says of its mean window under loss: segments, at the algorithm's default parameters.

Every formula assumes one loss in 1/p packets, and a window that nothing but loss bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt


@dataclass(frozen=True)
class Response:
    """A published response function."""

    text: str
    """The formula, as one writes it."""
    source: str
    window: Callable[[float, float], float]
    """Mean window in segments, from the loss per packet and the round-trip time in s."""


def aimd(loss: float, reduction: float) -> float:
    """Return the mean window of one segment per round trip and a share given up at a loss.

    The window goes from (1 - r) W to W in r W round trips, which carry r W W (2 - r) / 2 = 1/p packets; its mean is
    W (2 - r) / 2. For r = 1/2 this is Mathis et al., CCR 27(3), 1997, equation 3.
    """
    return sqrt((2 - reduction) / (2 * reduction * loss))


def _reno(loss: float, rtt_s: float) -> float:
    return aimd(loss, 0.5)


def _cubic(loss: float, rtt_s: float) -> float:
    # RFC 9438, 5.1 with C = 0.4, beta = 0.7; below, its Reno-friendly region (4.3).
    return max(1.054 * (rtt_s / loss) ** 0.75, _reno(loss, rtt_s))


def _highspeed(loss: float, rtt_s: float) -> float:
    # RFC 3649, 5: up to 38 segments it is Reno.
    return max(0.12 / loss**0.835, _reno(loss, rtt_s))


def _scalable(loss: float, rtt_s: float) -> float:
    # Kelly 2003: a / (b p) = 0.08 / p when a loss comes, a = 0.01, b = 1/8. The window grows by a factor from (1 - b)
    # of that, so that its mean over time is b / ln(1 / (1 - b)) of it. Up to 16 segments it is Reno.
    return max(0.08 / loss * 0.125 / log(1 / 0.875), _reno(loss, rtt_s))


RESPONSES = {
    "reno": Response("sqrt(3 / (2 p))", "Mathis et al. 1997", _reno),
    "storage_friendly": Response(
        "sqrt((2 - r) / (2 r p)), r = 1/8", "as Mathis et al. 1997", lambda loss, _: aimd(loss, 0.125)
    ),
    "cubic": Response("1.054 (RTT / p)^0.75, at least Reno's", "RFC 9438, 5.1", _cubic),
    "highspeed": Response("0.12 / p^0.835, at least Reno's", "RFC 3649, 5", _highspeed),
    "scalable": Response("0.0749 / p, at least Reno's", "Kelly 2003, mean of the cycle", _scalable),
}
"""By the name of a built-in algorithm. What is not here has no published closed form, or none in loss alone."""
