"""Flows with a known limit, drawn by a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

MSS_BYTES = 1448
"""Of packets of 1500 B with time stamps."""
WATCHED_S = 5.0
LIMITS = {
    "application": 30,
    "receiving_application": 28,
    "send_buffer": 28,
    "receive_window": 26,
    "pacing": 20,
    "loss": 30,
    "queue": 50,
    "policer": 30,
    "start_up": 22,
}
"""Flows of each limit in a draw."""
TICK_S = 0.01
"""Between two writes of a steady stream, or reads of one."""
WAYS = 20_000
"""Attempts at a draw of one case."""


@dataclass(frozen=True)
class Case:
    """One flow, or several that compete, over a path of its own."""

    name: str
    limit: str
    """One of `LIMITS`."""
    rate_bps: int
    """Of the path."""
    rtt_s: float
    queue_bytes: int
    congestion_control: str = "cubic"
    loss: float = 0.0
    policer: tuple[int, int] | None = None
    """Rate (bit/s) and burst (bytes)."""
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    window_clamp_bytes: int | None = None
    pacing_bps: int | None = None
    write_bps: float | None = None
    """Mean rate at which the application writes; None: as fast as it can."""
    burst_bytes: int = 0
    """Of each of its writes; 0: every 10 ms."""
    read_bps: float | None = None
    """Rate at which the far application reads; None: as fast as it can."""
    read_bytes: int = 0
    """Of each of its reads; 0: every 10 ms."""
    flows: int = 1
    total_bytes: int | None = None
    """Each connection ends after that; None: never."""
    warm_up_s: float = 0.0
    """From the connection's first byte to the first sample."""

    @property
    def bdp_bytes(self) -> float:
        """Bandwidth-delay product."""
        return self.rate_bps * self.rtt_s / 8

    @property
    def expected_bps(self) -> float:
        """Rate at most, for the emulator's budget."""
        by_window = [size * 8 / self.rtt_s for size in (self.receive_buffer_bytes, self.window_clamp_bytes) if size]
        sizes = [self.write_bps, self.read_bps, self.pacing_bps, self.policer and self.policer[0] * 1.5, *by_window]
        return min([float(size) for size in sizes if size] + [float(self.rate_bps)])

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)


def draw(seed: int, share: float = 1.0) -> list[Case]:
    """Return the cases of a seed, `share` of the number in `LIMITS`."""
    drawn = random.Random(seed)
    cases = []
    for limit, count in LIMITS.items():
        for number in range(max(1, round(count * share))):
            cases.append(_one(drawn, limit, f"{limit}-{number}"))
    drawn.shuffle(cases)
    return cases


def _one(drawn: random.Random, limit: str, name: str) -> Case:
    for _ in range(WAYS):
        rate_bps = int(_log(drawn, 10e6, 1e9))
        rtt_s = round(_log(drawn, 1e-3, 0.2), 6)
        bdp = rate_bps * rtt_s / 8
        queue = int(max(bdp * drawn.uniform(0.3, 2.0), 30 * 1500))
        settings = _MAKERS[limit](drawn, rate_bps, rtt_s, bdp)
        if settings is not None:
            return Case(name, limit, rate_bps, rtt_s, **{"queue_bytes": queue, **settings})
    raise AssertionError(f"no path for {limit}")


def _log(drawn: random.Random, low: float, high: float) -> float:
    return math.exp(drawn.uniform(math.log(low), math.log(high)))


def _settled(rate_bps: float, rtt_s: float) -> float:
    """Time in which slow start reaches `rate_bps` and what it does there is over, s."""
    windows = max(rate_bps * rtt_s / 8 / (10 * MSS_BYTES), 1)
    return min(8.0, 1.0 + rtt_s * (math.log2(windows) + 12))


def _application(drawn: random.Random, rate_bps: int, rtt_s: float, bdp: float) -> dict[str, Any]:
    mean = rate_bps * drawn.uniform(0.03, 0.6)
    # A request every now and then, or a steady stream.
    burst = int(mean / 8 * drawn.uniform(0.05, 0.8)) if drawn.random() < 0.5 else 0
    return {
        # So that its own bursts are not what limits it.
        "queue_bytes": int(max(bdp, 3 * burst, 3 * mean / 8 * TICK_S, 100_000)),
        "write_bps": mean,
        "burst_bytes": burst,
        "congestion_control": drawn.choice(["cubic", "cubic", "reno", "bbr"]),
        "warm_up_s": drawn.uniform(0.5, 1.5) + 4 * rtt_s,
    }


def _receiving(drawn: random.Random, rate_bps: int, rtt_s: float, bdp: float) -> dict[str, Any] | None:
    mean = rate_bps * drawn.uniform(0.03, 0.5)
    read = int(mean / 8 * drawn.uniform(0.05, 0.5)) if drawn.random() < 0.4 else 0
    buffer = drawn.choice([None, None, int(_log(drawn, 2e5, 4e6))])
    if buffer is not None and buffer * 8 / rtt_s < 3 * mean:
        return None
    # Its buffer has to be full before it is the limit.
    fill_s = 4 * (buffer or 6e6) * 8 / (rate_bps - mean)
    if fill_s > 5:
        return None
    return {
        "queue_bytes": int(max(bdp, 4 * (buffer or 6e6), 3 * read)),
        "read_bps": mean,
        "read_bytes": read,
        "receive_buffer_bytes": buffer,
        "congestion_control": drawn.choice(["cubic", "cubic", "reno", "bbr"]),
        "warm_up_s": 1.0 + fill_s + 12 * rtt_s,
    }


def _send_buffer(drawn: random.Random, rate_bps: int, rtt_s: float, bdp: float) -> dict[str, Any] | None:
    # The kernel doubles it, for its own memory of segments.
    window = bdp * drawn.uniform(0.08, 0.5)
    if window < 60_000:
        return None
    return {
        "queue_bytes": int(max(2 * bdp, 100_000)),
        "send_buffer_bytes": int(window / 2),
        "congestion_control": drawn.choice(["cubic", "cubic", "reno", "bbr"]),
        "warm_up_s": _settled(rate_bps, rtt_s),
    }


def _receive_window(drawn: random.Random, rate_bps: int, rtt_s: float, bdp: float) -> dict[str, Any] | None:
    window = bdp * drawn.uniform(0.08, 0.6)
    if window < 60_000:
        return None
    # A clamp is rounded up to 16 bits and a scale (RFC 7323): by a factor of two at most.
    key = drawn.choice(["receive_buffer_bytes", "window_clamp_bytes"])
    return {
        "queue_bytes": int(max(2 * bdp, 100_000)),
        key: int(window / 2 if key == "receive_buffer_bytes" else window),
        "congestion_control": drawn.choice(["cubic", "cubic", "reno", "bbr"]),
        "warm_up_s": _settled(rate_bps, rtt_s),
    }


def _pacing(drawn: random.Random, rate_bps: int, rtt_s: float, bdp: float) -> dict[str, Any] | None:
    return {
        "queue_bytes": int(max(2 * bdp, 100_000)),
        "pacing_bps": int(rate_bps * drawn.uniform(0.1, 0.7)),
        "congestion_control": drawn.choice(["cubic", "cubic", "reno", "bbr"]),
        "warm_up_s": _settled(rate_bps, rtt_s),
    }


def _loss(drawn: random.Random, rate_bps: int, rtt_s: float, bdp: float) -> dict[str, Any] | None:
    loss = _log(drawn, 3e-5, 2e-2)
    control = drawn.choice(["cubic", "reno"])
    # Mathis et al. 1997; RFC 9438, figure 6, which takes the greater of both.
    window = 1.22 / math.sqrt(loss)
    if control == "cubic":
        window = max(window, 1.054 * (rtt_s / loss) ** 0.75)
    share = window * MSS_BYTES / bdp
    lost = window / rtt_s * WATCHED_S * loss
    if not 0.02 < share < 0.5 or lost < 4:
        return None
    return {
        "queue_bytes": int(max(2 * bdp, 100_000)),
        "loss": loss,
        "congestion_control": control,
        "warm_up_s": _settled(rate_bps, rtt_s),
    }


def _queue(drawn: random.Random, rate_bps: int, rtt_s: float, bdp: float) -> dict[str, Any] | None:
    flows = drawn.choice([1, 1, 1, 2, 4])
    control = drawn.choice(["cubic", "cubic", "reno", "bbr"])
    if bdp / flows < 8 * MSS_BYTES:
        return None
    # Reno takes back one packet per round trip: it has to be at the queue again within the watched time.
    if control == "reno" and bdp / MSS_BYTES * rtt_s / flows > 20:
        return None
    return {"flows": flows, "congestion_control": control, "warm_up_s": _settled(rate_bps, rtt_s)}


def _policer(drawn: random.Random, rate_bps: int, rtt_s: float, bdp: float) -> dict[str, Any] | None:
    policed = int(rate_bps * drawn.uniform(0.1, 0.5))
    burst = int(max(policed / 8 * _log(drawn, 0.005, 0.1), 20 * 1500))
    control = drawn.choice(["cubic", "cubic", "reno", "bbr"])
    window = policed * rtt_s / 8 / MSS_BYTES
    # It has to drop within the watched time: Reno's period (half a window, a segment per round trip), and CUBIC's K.
    period_s = {"reno": window / 2 * rtt_s, "cubic": (window * 0.3 / 0.4) ** (1 / 3), "bbr": 0.0}[control]
    if control == "cubic":
        period_s = min(period_s, window / 2 * rtt_s)
    if window < 8 or period_s > WATCHED_S / 2:
        return None
    return {"policer": (policed, burst), "congestion_control": control, "warm_up_s": _settled(rate_bps, rtt_s)}


def _start_up(drawn: random.Random, rate_bps: int, rtt_s: float, bdp: float) -> dict[str, Any] | None:
    total = int(bdp * drawn.uniform(0.15, 0.6))
    if total < 20 * MSS_BYTES or rtt_s < 0.01:
        return None
    return {"total_bytes": total, "congestion_control": drawn.choice(["cubic", "cubic", "reno", "bbr"])}


_MAKERS: dict[str, Callable[[random.Random, int, float, float], dict[str, Any] | None]] = {
    "application": _application,
    "receiving_application": _receiving,
    "send_buffer": _send_buffer,
    "receive_window": _receive_window,
    "pacing": _pacing,
    "loss": _loss,
    "queue": _queue,
    "policer": _policer,
    "start_up": _start_up,
}
