"""Published mean windows of algorithms under loss: segments, at the algorithm's default parameters.

Every formula assumes one loss in 1/p packets, and a window that nothing but loss bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from elephan.loss_response.cycles import Cycle, aimd, cubic, highspeed, scalable


@dataclass(frozen=True)
class Response:
    """A published response function."""

    text: str
    """The formula, as one writes it."""
    source: str
    cycle: Callable[[float, float], Cycle]
    """From one loss to the next, from the loss per packet and the round-trip time in s."""

    def window(self, loss: float, rtt_s: float) -> float:
        """Return the mean window, segments."""
        return self.cycle(loss, rtt_s).mean


RESPONSES = {
    "reno": Response("sqrt(3 / (2 p))", "Mathis et al. 1997", lambda loss, rtt_s: aimd(loss, rtt_s, 1.0, 0.5)),
    "storage_friendly": Response(
        "sqrt((2 - r) / (2 r p)), r = 1/8",
        "as Mathis et al. 1997",
        lambda loss, rtt_s: aimd(loss, rtt_s, 1.0, 0.125),
    ),
    "cubic": Response(
        "1.054 (RTT / p)^0.75, at least Reno's", "RFC 9438, 5.1", lambda loss, rtt_s: cubic(loss, rtt_s, 0.4, 0.7)
    ),
    "highspeed": Response("0.12 / p^0.835, at least Reno's", "RFC 3649, 5", highspeed),
    "scalable": Response(
        "0.0745 / p, at least Reno's",
        "Kelly 2003, mean of the cycle",
        lambda loss, rtt_s: scalable(loss, rtt_s, 0.01, 0.125, 16.0),
    ),
}
"""By the name of a built-in algorithm. The others have no published closed form, or none in loss alone."""
