"""Policy during a transfer: the forecast checked against what comes; streams or rate changed in small steps.

It takes one observation a second and answers with changes, each with its reason. It reads no clock and draws no chance:
the same observations give the same decisions.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from elephan.advise.advice import Advice
from elephan.units import duration, rate, share

SETTLE_S = 6.0
SETTLE_RTTS = 20.0
"""Time without a change after a change: new streams have left slow start, the queue has emptied."""
WINDOW = 10
"""Observations of which the mean is compared with the forecast."""
PRESSED = (3, 5)
"""Observations beyond a limit, of the last so many, that make it back off: one alone is chance."""
CALM = 0.7
"""Part of the way from the empty path to a limit below which the probe's path counts as calm: the gap to the limit is
the hysteresis."""
STEP = 0.25
"""Change of streams or rate, of what they are; one stream at least."""
GAIN = 0.05
"""Goodput that more streams must gain, or they are taken back."""
TRY_AGAIN_S = 120.0
"""Time after streams that gained nothing before more are tried again; doubled each time, up to `LONGEST_S`."""
RETURN_S = 30.0
"""Calm time after backing off before a step is taken back; doubled when that was too early, up to `LONGEST_S`."""
LONGEST_S = 1800.0
STRICT = 0.2
"""A limit of harm below this is one that allows no full queue."""


@dataclass(frozen=True)
class Limits:
    """Bounds of what steering may do, and of what the probe may see."""

    streams_min: int = 1
    streams_max: int = 32
    rtt_max_s: float = float("inf")
    """Largest RTT of the probe, s."""
    loss_max: float = 0.05
    """Largest loss of the probe."""
    rate_min_bps: int = 1_000_000
    rtt_empty_s: float = 0.0
    """RTT of the empty path, s."""


def limits_of(advice: Advice) -> Limits:
    """Return the bounds that follow from an advice.

    Ordinary flows fill a drop-tail queue: an operator who takes their harm takes that. A stricter limit allows a
    quarter of the queue. Streams at most double, as the harm of more was not weighed.
    """
    strict = advice.limit < STRICT and advice.is_operators
    full = advice.rtt_s + advice.queue_s
    rtt_max = advice.rtt_s + max(0.005, 0.25 * advice.queue_s) if strict else max(1.2 * full, full + 0.01)
    loss_max = advice.loss + 0.002 if strict else max(4 * advice.loss, advice.loss + 0.02)
    return Limits(
        streams_max=min(64, 2 * advice.candidate.streams),
        rtt_max_s=rtt_max,
        loss_max=loss_max,
        rtt_empty_s=advice.rtt_s,
    )


@dataclass(frozen=True)
class Decision:
    """A change and its reason. Exactly one of `streams` and `rate_bps` is set."""

    at_s: float
    reason: str
    streams: int | None = None
    rate_bps: int | None = None

    def as_dict(self) -> dict[str, float | int | str | None]:
        """Return it for the record."""
        return {"at_s": self.at_s, "reason": self.reason, "streams": self.streams, "rate_bps": self.rate_bps}


@dataclass(frozen=True)
class _Trial:
    """More streams that have to show a gain."""

    streams: int
    """Those before."""
    goodput_bps: float
    """Mean before."""


class Steerer:
    """Decides once a second."""

    def __init__(self, advice: Advice, limits: Limits | None = None) -> None:
        """Begin with the candidate of an advice. Without `limits`, those that follow from it."""
        self.advice = advice
        self.limits = limits or limits_of(advice)
        self.streams = advice.candidate.streams
        self.rate_bps = advice.candidate.pacing_bps
        self._advised = (self.streams, self.rate_bps)
        self._settle_s = max(SETTLE_S, SETTLE_RTTS * advice.rtt_s)
        self._goodput: deque[float] = deque(maxlen=WINDOW)
        self._beyond: deque[str] = deque(maxlen=PRESSED[1])
        self._changed_s: float | None = None
        self._calm_since_s: float | None = None
        self._trial: _Trial | None = None
        self._may_try_s, self._try_again_s = 0.0, TRY_AGAIN_S
        self._return_s, self._returned_s = RETURN_S, float("-inf")

    def handle(self, now_s: float, goodput_bps: float, rtt_s: float | None, loss: float | None) -> list[Decision]:
        """Take what the last interval gave, `rtt_s` and `loss` of the probe (None: it has no answer); return what to
        change.
        """
        if self._changed_s is None:
            self._changed_s = now_s
        self._goodput.append(goodput_bps)
        self._beyond.append(self._pressure(rtt_s, loss))
        if not self._is_calm(rtt_s, loss):
            self._calm_since_s = None
        elif self._calm_since_s is None:
            self._calm_since_s = now_s
        if now_s - self._changed_s < self._settle_s:
            return []
        decision = self._back_off(now_s) or self._judge_trial(now_s) or self._go_back(now_s) or self._grow(now_s)
        return [] if decision is None else [decision]

    def _pressure(self, rtt_s: float | None, loss: float | None) -> str:
        """Return what is beyond its limit, in words; empty: nothing."""
        if rtt_s is not None and rtt_s > self.limits.rtt_max_s:
            return f"the probe's round trip is {duration(rtt_s)}, its limit {duration(self.limits.rtt_max_s)}"
        if loss is not None and loss > self.limits.loss_max:
            return f"the probe loses {share(loss)}, its limit is {share(self.limits.loss_max)}"
        return ""

    def _is_calm(self, rtt_s: float | None, loss: float | None) -> bool:
        empty, most = self.limits.rtt_empty_s, self.limits.rtt_max_s
        short = rtt_s is None or most == float("inf") or rtt_s <= empty + CALM * (most - empty)
        few = loss is None or loss <= self.advice.loss + CALM * max(0.0, self.limits.loss_max - self.advice.loss)
        return short and few

    def _back_off(self, now_s: float) -> Decision | None:
        beyond = [text for text in self._beyond if text]
        if len(beyond) < PRESSED[0]:
            return None
        if now_s - self._returned_s < 2 * RETURN_S:
            # The way back was too early.
            self._return_s = min(LONGEST_S, 2 * self._return_s)
        self._trial = None
        if self.streams > self.limits.streams_min and self.rate_bps is None:
            fewer = max(self.limits.streams_min, self.streams - _step(self.streams))
            return self._set(now_s, f"{beyond[-1]}: fewer streams", streams=fewer)
        now_bps = self.rate_bps if self.rate_bps is not None else round(self._mean())
        lower = max(self.limits.rate_min_bps, round((1 - STEP) * now_bps))
        if self.rate_bps is not None and lower >= self.rate_bps:
            return None
        return self._set(now_s, f"{beyond[-1]}: a lower rate", rate_bps=lower)

    def _judge_trial(self, now_s: float) -> Decision | None:
        if self._trial is None or len(self._goodput) < WINDOW:
            return None
        trial, self._trial = self._trial, None
        if self._mean() >= (1 + GAIN) * trial.goodput_bps:
            return None
        self._may_try_s = now_s + self._try_again_s
        self._try_again_s = min(LONGEST_S, 2 * self._try_again_s)
        text = f"{self.streams} streams gained less than {share(GAIN)}: back to {trial.streams}"
        return self._set(now_s, text, streams=trial.streams)

    def _go_back(self, now_s: float) -> Decision | None:
        """Return one step towards what was advised, after calm time."""
        if self._calm_since_s is None or now_s - self._calm_since_s < self._return_s:
            return None
        streams, rate_bps = self._advised
        if self.rate_bps is not None and (rate_bps is None or self.rate_bps < rate_bps):
            higher = round((1 + STEP) * self.rate_bps)
            ceiling = rate_bps or round(self.advice.goodput_bps[2])
            text = f"the probe was calm for {duration(now_s - self._calm_since_s)}: a higher rate"
            if self.rate_bps >= ceiling:
                return None
            self._returned_s = now_s
            return self._set(now_s, text, rate_bps=min(ceiling, higher))
        if self.streams < streams:
            text = f"the probe was calm for {duration(now_s - self._calm_since_s)}: more streams"
            self._returned_s = now_s
            return self._set(now_s, text, streams=min(streams, self.streams + _step(self.streams)))
        return None

    def _grow(self, now_s: float) -> Decision | None:
        """Try more streams where goodput stays below the forecast and the probe is calm."""
        low = self.advice.goodput_bps[0]
        if len(self._goodput) < WINDOW or self._mean() >= low or now_s < self._may_try_s:
            return None
        if self._calm_since_s is None or now_s - self._calm_since_s < WINDOW or self.rate_bps is not None:
            return None
        more = min(self.limits.streams_max, self.streams + _step(self.streams))
        if more <= self.streams:
            return None
        self._trial = _Trial(self.streams, self._mean())
        text = f"{rate(self._mean())} is below the forecast ({rate(low)} at least) and the probe is calm: more streams"
        return self._set(now_s, text, streams=more)

    def _set(self, now_s: float, reason: str, *, streams: int | None = None, rate_bps: int | None = None) -> Decision:
        if streams is not None:
            self.streams = streams
        if rate_bps is not None:
            self.rate_bps = rate_bps
        self._changed_s, self._calm_since_s = now_s, None
        self._goodput.clear()
        self._beyond.clear()
        return Decision(now_s, reason, streams, rate_bps)

    def _mean(self) -> float:
        return sum(self._goodput) / max(1, len(self._goodput))


def _step(streams: int) -> int:
    return max(1, round(STEP * streams))
