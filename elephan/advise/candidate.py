"""A way to copy."""

from __future__ import annotations

from dataclasses import dataclass

OPEN_WINDOW_BYTES = 1_073_725_440
"""A window that bounds nothing: the largest of TCP (RFC 7323, 2.3)."""


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

    @property
    def stream_pacing_bps(self) -> int | None:
        """Payload of each stream; None: as the control paces."""
        return None if self.pacing_bps is None else max(8, round(self.pacing_bps / self.streams))

    @property
    def bound_bytes(self) -> int | None:
        """Window to set; None: none, so that the kernel's own tuning stays on (tcp(7), tcp_moderate_rcvbuf)."""
        return None if self.window_bytes >= OPEN_WINDOW_BYTES else self.window_bytes
