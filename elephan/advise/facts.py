"""Facts of a path, as measured or as a scenario says them, and the scenario that they make."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

Range = tuple[float, float]


@dataclass(frozen=True)
class PathFacts:
    """A path from sender to receiver."""

    rate_bps: float
    """Of the narrowest link, bits of IP packets per second."""
    rtt_s: float
    """Of the empty path, s."""
    rtt_max_s: float = 0.0
    """The largest seen, s."""
    loss: float = 0.0
    """Share of packets that the line loses, other than by a full queue or a policer."""
    loss_burst: float = 1.0
    """Mean packets of one loss event."""
    queue_bytes: float = 0.0
    """Depth of the bottleneck's queue; 0: not known."""
    policer_rate_bps: float | None = None
    policer_burst_bytes: float | None = None
    competing_flows: float = 0.0
    """Long flows on the same bottleneck that reduce their rate at a loss."""
    competing_bps: float = 0.0
    """Traffic of others on the bottleneck, bit/s."""
    mtu_bytes: int = 1500
    ranges: dict[str, Range] = field(default_factory=dict)
    """Interval (low, high) of a fact by its name, where it was measured."""
    given: tuple[str, ...] = ()
    """Names of the facts that a scenario states: they are not measured, and have no interval."""
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Outcome of each path test that was made, by its name."""

    @property
    def is_queue_assumed(self) -> bool:
        """Return True if path tests were made and none found the queue's depth."""
        found = self.sources.get("queue", {"estimates": []})["estimates"]
        return bool(self.sources) and all(estimate["quantity"] != "queue_bytes" for estimate in found)

    def as_dict(self) -> dict[str, Any]:
        """Return them for JSON."""
        return asdict(self)
