"""RFC 6349's test of TCP over a path: window by window and with several connections, against what the path could carry.

Baseline round-trip time and bottleneck bandwidth (3.2) give the bandwidth-delay product, and that the windows (3.3).
The metrics are transfer time ratio (4.1), efficiency (4.2) and buffer delay (4.3). Numbers come from records of runs,
on whichever backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elephan.errors import InputError, RunError
from elephan.record import Record

Run = Callable[[Mapping[str, Any]], Record]
"""Runs the scenario once with some keys changed, given as text."""
BASELINE_LOAD = "1%"
"""Load of the run that measures the baseline round-trip time: the path has no queue (3.2)."""
BASELINE_BYTES = 1000
"""Payload of its frames: one packet each."""
WINDOWS_PER_CENT = (25, 50, 100, 200)
"""Windows, of the bandwidth-delay product."""
TRANSFER_BYTES = 100 * 10**6
"""Transfer whose times are shown (the RFC's example has 100 MB)."""
HOST_ENDINGS = (".send", ".receive")
"""Endings of the links that stand for the time a host takes: what TCP loses to hosts is no limit of the path."""
IP_TCP_BYTES = 20 + 20
"""Headers of IPv4 and TCP without options."""
TIMESTAMP_BYTES = 12
"""TCP's timestamp option, padded (RFC 7323, appendix A)."""


@dataclass(frozen=True)
class Path:
    """A path, as TCP could fill it at best."""

    rtt_s: float
    """Baseline round-trip time."""
    bottleneck_bps: int
    """Rate of its slowest line, with everything that lies between payloads."""
    mtu_bytes: int
    payload_bytes: int
    """Of a full segment."""
    line_bytes: int
    """Bytes of the slowest line that a full segment takes."""

    @property
    def bdp_bytes(self) -> int:
        """Bandwidth-delay product: the least window that fills the path (3.3)."""
        return round(self.rtt_s * self.bottleneck_bps / 8)

    @property
    def ideal_bps(self) -> float:
        """Largest payload rate (4.1): every segment full, none sent twice, no pause."""
        return self.bottleneck_bps * self.payload_bytes / self.line_bytes

    def expected_bps(self, window_bytes: int) -> float:
        """Return the payload rate that a window allows in one baseline round-trip time."""
        return min(self.ideal_bps, window_bytes * 8 / self.rtt_s)


@dataclass(frozen=True)
class TcpRun:
    """One run of TCP with its metrics."""

    window_per_cent: int
    """Window of all connections together, of the bandwidth-delay product."""
    window_bytes: int
    """Window of each connection."""
    connections: int
    goodput_bps: float
    expected_bps: float
    """Payload rate that the windows allow."""
    transfer_time_ratio: float
    """Actual time of a transfer by the ideal one (4.1): 1 is ideal, 2 takes twice as long."""
    transfer_s: float
    """Time for `TRANSFER_BYTES` at the goodput."""
    efficiency: float
    """Share of the bytes sent that were not sent again (4.2)."""
    buffer_delay: float | None
    """Increase of the mean round-trip time over the baseline, as a share of it (4.3)."""
    rtt_mean_s: float | None
    retransmitted_bytes: int
    record: str
    """Id of the run's record."""
    notes: tuple[str, ...]
    """Notes of the record."""


def baseline(run: Run, bottleneck_bps: int | None = None) -> Path:
    """Measure the baseline round-trip time by a light flow, and return the path.

    The slowest line is the scenario's, or `bottleneck_bps`: a rate that a test of the line has found. Raises
    `InputError` for a scenario that is not one flow of TCP, `RunError` without a sample of the round-trip time.
    """
    frame = f"{BASELINE_BYTES}B"
    light = f'{{ kind = "constant_rate", load = "{BASELINE_LOAD}", frame = "{frame}" }}'
    record = run({"flow.workload": light, "flow.connections": "1"})
    flows = record.spec["flows"]
    if len(flows) != 1 or record.spec.get("background"):
        raise InputError("a test of TCP needs one flow, and no background traffic: it is the path that is tested")
    transport = flows[0]["transport"]
    if "udt" in transport:
        raise InputError("flow.transport: a test of TCP needs a flow of TCP")
    samples = [record.metrics.get(name) for name in ("path_rtt_s", "rtt_min_s")]
    known = [float(one) for one in samples if one]
    if not known:
        raise RunError("the light flow gave no sample of the round-trip time: give it a longer run.duration")
    mtu = int(transport["mtu_bytes"])
    payload = mtu - IP_TCP_BYTES - (TIMESTAMP_BYTES if transport["timestamps"] else 0)
    links = [record.spec["links"][hop] for hop in flows[0]["route"]]
    lines = [_line(link, mtu) for link in links if not str(link["name"]).endswith(HOST_ENDINGS)]
    # Of each line the rate that it leaves to payloads.
    rate_bps, line_bytes = min(lines, key=lambda line: line[0] / line[1])
    return Path(min(known), bottleneck_bps or rate_bps, mtu, payload, line_bytes)


def _line(link: Mapping[str, Any], mtu: int) -> tuple[int, int]:
    """Return a link's rate, and the bytes that it takes for a full packet."""
    framing = link.get("framing") or {"header_bytes": 0, "min_frame_bytes": 0, "gap_bytes": 0}
    frame = max(mtu + framing["header_bytes"], framing["min_frame_bytes"])
    return int(link["rate_bps"]), frame + framing["gap_bytes"]


def measure(
    run: Run, path: Path, windows: Sequence[int] = WINDOWS_PER_CENT, connections: Sequence[int] = (1,)
) -> Iterator[TcpRun]:
    """Yield a run for each window with one connection, then one at the product for each further number of connections.

    `windows` are per cent of the bandwidth-delay product. Connections share the window (5).
    """
    one = connections[0] if connections else 1
    wanted = [(window, one) for window in windows]
    wanted += [(100, number) for number in connections[1:]]
    for per_cent, number in wanted:
        yield _tcp_run(run, path, per_cent, number)


def _tcp_run(run: Run, path: Path, per_cent: int, connections: int) -> TcpRun:
    # TCP cannot work with a window below two segments.
    window = max(2 * path.mtu_bytes, path.bdp_bytes * per_cent // 100 // connections)
    record = run({"flow.workload": "bulk", "flow.window": f"{window}B", "flow.connections": str(connections)})
    metrics = record.metrics
    goodput_bps = float(metrics.get("goodput_bps") or 0)
    sent_again = int(metrics.get("retransmitted_bytes") or 0)
    delivered = int(metrics.get("delivered_bytes") or 0)
    rtt_s = metrics.get("rtt_mean_s")
    return TcpRun(
        window_per_cent=per_cent,
        window_bytes=window,
        connections=connections,
        goodput_bps=goodput_bps,
        expected_bps=path.expected_bps(window * connections),
        transfer_time_ratio=path.ideal_bps / goodput_bps if goodput_bps else float("inf"),
        transfer_s=TRANSFER_BYTES * 8 / goodput_bps if goodput_bps else float("inf"),
        efficiency=delivered / (delivered + sent_again) if delivered else 0.0,
        buffer_delay=None if not rtt_s else float(rtt_s) / path.rtt_s - 1,
        rtt_mean_s=None if not rtt_s else float(rtt_s),
        retransmitted_bytes=sent_again,
        record=record.id,
        notes=tuple(record.notes),
    )
