"""A way to copy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A way to copy."""

    control: str
    streams: int
    window_bytes: int
    """Of each stream."""
    transport: str = "tcp"
    pacing_bps: int | None = None
    """Payload of all streams together; None: as the control paces."""
