"""The cycle that is published of each stack of stacks.toml; and what Reno's formula leaves out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from elephan.stack.cycles import Cycle, aimd, bic, compound, cubic, htcp
from elephan.stack.published import RESPONSES

MODELS: dict[str, Callable[..., Cycle]] = {
    "aimd": aimd,
    "cubic": cubic,
    "bic": bic,
    "htcp": htcp,
    "compound": compound,
}
"""By the name that stacks.toml uses."""


def is_published(stack: dict[str, Any]) -> bool:
    """Whether there is a cycle to hold it against."""
    return stack["name"] in RESPONSES or "model" in stack


def cycle_of(stack: dict[str, Any], loss: float, rtt_s: float) -> Cycle | None:
    """Return what is published of a stack, or None: what `elephan stacks NAME` shows, or the model in stacks.toml."""
    if stack["name"] in RESPONSES:
        return RESPONSES[stack["name"]].cycle(loss, rtt_s)
    name = stack.get("model")
    return None if name is None else MODELS[name](loss, rtt_s, **stack.get("arguments", {}))


def reno_in_segments(period: int, recovery: int) -> float:
    """Return Reno's mean window in whole segments, with so many round trips at the window kept before growth resumes.

    What the formula leaves out and a small window feels: cwnd is a whole number, and a loss takes a round trip to be
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
