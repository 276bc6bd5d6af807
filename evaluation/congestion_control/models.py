"""The cycle that is published of each congestion control of congestion_controls.toml; and what Reno's formula leaves
out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from elephan.loss_response.cycles import (
    Cycle,
    aimd,
    bic,
    bic_of_linux,
    compound,
    cubic,
    highspeed_of_linux,
    htcp,
    scalable_of_linux,
)
from elephan.loss_response.published import RESPONSES

MODELS: dict[str, Callable[..., Cycle]] = {
    "aimd": aimd,
    "cubic": cubic,
    "bic": bic,
    "bic_of_linux": bic_of_linux,
    "highspeed_of_linux": highspeed_of_linux,
    "scalable_of_linux": scalable_of_linux,
    "htcp": htcp,
    "compound": compound,
}
"""By the name that congestion_controls.toml uses."""


def is_published(cc: dict[str, Any]) -> bool:
    """Return True if there is a cycle to hold it against."""
    return cc["name"] in RESPONSES or "model" in cc


def cycle_of(cc: dict[str, Any], loss: float, rtt_s: float) -> Cycle | None:
    """Return the published cycle of a congestion control, or None: that of `elephan cc NAME`, or the model in
    congestion_controls.toml.
    """
    if cc["name"] in RESPONSES:
        return RESPONSES[cc["name"]].cycle(loss, rtt_s)
    name = cc.get("model")
    return None if name is None else MODELS[name](loss, rtt_s, **cc.get("arguments", {}))


def reno_in_segments(period: int, recovery: int) -> float:
    """Return Reno's mean window in whole segments, with so many round trips at the window kept before growth resumes.

    The formula leaves out two effects on a small window: cwnd is a whole number, and a loss takes a round trip to be
    noticed, in which the window is at its peak, and one to be repaired, in which it does not grow.
    """
    starts: dict[int, tuple[int, int]] = {}
    start, total, rounds = 2, 0, 0
    while start not in starts:
        starts[start] = (total, rounds)
        sent, window = 0, start
        for _ in range(recovery):
            sent, rounds = sent + window, rounds + 1
        while sent < period:
            sent, rounds, window = sent + window, rounds + 1, window + 1
        total += sent
        start = max(2, window // 2)
    before = starts[start]
    return (total - before[0]) / (rounds - before[1])
