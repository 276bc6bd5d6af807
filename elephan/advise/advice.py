"""Advice: the candidate to copy with, its forecast, the harm it does to others, and the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from elephan.advise.facts import PathFacts

Band = tuple[float, float, float]
"""Low, middle, high: 90 % of what is to be expected lies between low and high."""


@dataclass(frozen=True)
class Candidate:
    """A way to copy."""

    control: str
    streams: int
    window_bytes: int
    """Of each stream."""
    transport: str = "tcp"
    pacing_bps: int | None = None
    """Of all streams together; None: as the control paces."""


@dataclass(frozen=True)
class Advice:
    """What to copy with, and why."""

    candidate: Candidate
    goodput_bps: Band
    harm: dict[str, Band]
    """Share of goodput that an ordinary flow loses, by its control: "reno", "cubic"."""
    limit: float
    """Largest harm that the operator takes."""
    limit_text: str
    reasons: list[str] = field(default_factory=list)
    table: list[dict[str, Any]] = field(default_factory=list)
    """A row per candidate that was simulated, the best first."""
    scenario: str = ""
    """The fitted scenario with the candidate's flow, TOML."""


def advise(
    facts: PathFacts,
    *,
    bytes_to_copy: int,
    harm_limit: float | None = None,
    controls: Sequence[str] = ("cubic", "bbr", "storage_friendly"),
    seed: int = 1,
    workers: int | None = None,
    budget_s: float = 30.0,
) -> Advice:
    """Return the candidate with the most goodput of those within the limit."""
    raise NotImplementedError
