"""Policy during a transfer: the forecast checked against what comes; streams or rate changed in small steps."""

from __future__ import annotations

from dataclasses import dataclass

from elephan.advise.advice import Advice


@dataclass(frozen=True)
class Limits:
    """Bounds of what steering may do."""

    streams_min: int = 1
    streams_max: int = 32
    rtt_rise: float = 2.0
    """Largest RTT of the probe, in multiples of what the advice expects."""
    loss_max: float = 0.02
    """Largest loss that the probe may see beyond that of the empty path."""


@dataclass(frozen=True)
class Decision:
    """A change and its reason. Exactly one of `streams` and `rate_bps` is set."""

    at_s: float
    reason: str
    streams: int | None = None
    rate_bps: int | None = None


class Steerer:
    """Decides once a second; reads no clock and draws no chance."""

    def __init__(self, advice: Advice, limits: Limits | None = None) -> None:
        """Begin with the candidate of an advice."""
        self.advice = advice
        self.limits = limits or Limits()
        self.streams = advice.candidate.streams

    def handle(self, now_s: float, goodput_bps: float, rtt_s: float | None, loss: float | None) -> list[Decision]:
        """Take what the last interval gave, `rtt_s` and `loss` of the probe; return what to change."""
        raise NotImplementedError
