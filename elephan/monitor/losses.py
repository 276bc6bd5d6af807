"""Loss of a path in the newest minutes, also where it is below an alert. No I/O."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from elephan.monitor.journal import Sample

WINDOW_S = 600.0
"""Time over which losses are counted, s: at ten packets a second three events of loss are a rate of 5e-4."""
EVENTS_LEAST = 3
"""Events below which a rate is not significant."""
EVENT_S, EVENT_PACKETS = 3.0, 10
"""A loss so soon after the first one of an event belongs to it, as in `crates/change-detection`: a burst is no rate."""


@dataclass
class LossRate:
    """Events of loss among the packets of the newest minutes."""

    _events_ns: deque[int] = field(default_factory=deque)
    _packets_ns: deque[int] = field(default_factory=deque)
    _since_event: int = EVENT_PACKETS

    def add(self, sample: Sample) -> None:
        """Take a packet, answered or lost, in the order of sending."""
        if self._packets_ns and sample.sent_ns < self._packets_ns[-1]:
            # The clock was set back.
            self._packets_ns.clear()
            self._events_ns.clear()
        self._packets_ns.append(sample.sent_ns)
        self._since_event += 1
        if sample.is_lost and self._begins_event(sample):
            self._events_ns.append(sample.sent_ns)
            self._since_event = 0
        for times in (self._packets_ns, self._events_ns):
            while times and times[0] < sample.sent_ns - WINDOW_S * 1e9:
                times.popleft()

    def _begins_event(self, sample: Sample) -> bool:
        is_apart = not self._events_ns or sample.sent_ns - self._events_ns[-1] > EVENT_S * 1e9
        return is_apart and self._since_event > EVENT_PACKETS

    @property
    def value(self) -> float | None:
        """Return events per packet; None where they are too few."""
        if len(self._events_ns) < EVENTS_LEAST:
            return None
        return len(self._events_ns) / len(self._packets_ns)
