"""The same flow with other settings, simulated: a scenario of what was measured of its path.

Of a flow that its window or an application holds back nobody knows from outside what the path carries: the line's rate
is then given, or that of the interface towards the peer, and stands in the forecast as the assumption that it is.
"""

from __future__ import annotations

import ipaddress
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from elephan.report.flow_limits import LOSS_BLIND
from elephan.run_spec.route import IPV6_EXTRA_BYTES, IPV6_MTU_LEAST
from elephan.units import rate, size

PACKETS_MOST = 500_000
"""Of a simulated run: a second or two of this processor."""
RTTS, SECONDS = 60, 20.0
"""Length of a run, where that is fewer packets."""
HEADER_BYTES = 40
"""IPv4 and TCP, without options."""
BEHIND_POLICER = 4
"""Rate of the link behind a policer, in times of the policer's, where the line's is not given."""
DISAGREES = 1 / 3
"""Difference of the flow's goodput and the one simulated with its own settings, of the former, from which on the model
is not the path's."""
BURST = 1.5
"""Losses at a time, mean, from which on a policer may be their cause, too: independent ones come alone."""
MEASURE = "`elephan measure policer` measures it: give its rate and burst, --policer 50Mbit/s,64KiB"
KNOWN = ("reno", "cubic", "bbr")
"""Congestion controls of Linux that are simulated."""


@dataclass(frozen=True)
class Outcome:
    """One simulated variant."""

    change: str
    """Difference from the flow as it is."""
    goodput_bps: float
    rtt_s: float | None


@dataclass(frozen=True)
class Policer:
    """A token bucket on the path."""

    rate_bps: int
    burst_bytes: int


@dataclass(frozen=True)
class Forecast:
    """Outcomes of other settings."""

    line_rate_bps: int | None = None
    """Of the simulated path."""
    assumed: str | None = None
    """Origin of that rate, unless it was measured."""
    as_it_is: Outcome | None = None
    """The flow itself, simulated: how far the model holds."""
    is_own_rate: bool = False
    """The path's rate is the flow's own goodput: simulated as it is it has that by construction."""
    policer: Policer | None = None
    """Of the simulated path."""
    outcomes: list[Outcome] = field(default_factory=list)
    none_because: str | None = None


def forecast(
    flow: Mapping[str, Any],
    line_rate_bps: int | None = None,
    policer: Policer | None = None,
    say: Callable[[str], None] | None = None,
) -> Forecast:
    """Return the forecast for a flow of `Watched`. `line_rate_bps` is the path's, None: the interface's; `policer` is
    one that the path is known to have.

    `say` is told before something is simulated, which takes seconds.
    """
    if (why := _refusal(flow, policer)) is not None:
        return Forecast(none_because=why)
    counters, limit = flow["counters"], flow["limit"]
    assumed = None
    # The goodput of a flow that fills a queue is its share of the bottleneck.
    is_own_rate = limit == "queue"
    if policer is not None and flow["goodput_bps"] > policer.rate_bps:
        return Forecast(none_because=f"it is faster than the policer's {rate(policer.rate_bps)}: another --policer")
    if is_own_rate:
        line_rate_bps = int(flow["goodput_bps"] * _packet_bytes(flow) / counters["mss_bytes"])
    elif policer is not None:
        # The link behind a policer is faster than it.
        line_rate_bps = max(line_rate_bps or BEHIND_POLICER * policer.rate_bps, policer.rate_bps)
    elif line_rate_bps is not None:
        assumed = "--line-rate"
    else:
        line_rate_bps, device = _interface_rate(flow["remote"])
        assumed = f"the rate of {device}"
    if line_rate_bps is None:
        return Forecast(none_because="the path's rate is not known: give it, --line-rate 1Gbit/s")
    if line_rate_bps < flow["goodput_bps"]:
        return Forecast(none_because=f"it is faster than the path's rate of {rate(line_rate_bps)}: another --line-rate")
    if say is not None:
        say(f"simulating {flow['local']} to {flow['remote']} with other settings (--no-forecast leaves it out)")
    model = _Model(flow, line_rate_bps, policer)
    as_it_is = model.run("as it is", **model.own())
    found = Forecast(line_rate_bps, assumed, as_it_is, is_own_rate, model.policer)
    if abs(as_it_is.goodput_bps - flow["goodput_bps"]) > DISAGREES * flow["goodput_bps"]:
        return replace(found, none_because=_disagreement(flow, as_it_is, policer))
    return replace(found, outcomes=[model.run(change, **settings) for change, settings in model.variants()])


def _refusal(flow: Mapping[str, Any], policer: Policer | None) -> str | None:
    """Return why a flow's counters make no model of its path, in words; None: they make one."""
    counters, limit = flow["counters"], flow["limit"]
    if counters is None:
        return "it needs the sender's counters: watch it there"
    if limit is None:
        return "what limits it is not known"
    if limit == "application":
        return "the application sends all it has: no setting of TCP changes that"
    if limit == "receiving_application":
        return "the far application reads no faster: no setting of TCP changes that"
    if counters["min_rtt_us"] <= 0 or counters["mss_bytes"] <= 0:
        return "its round-trip time is not known yet"
    if policer is not None:
        return None
    if limit == "policer" and flow["congestion_control"] in LOSS_BLIND:
        own = rate(flow["goodput_bps"])
        return f"it has the policer's rate, {own}, and the burst, which bounds other controls, does not show; {MEASURE}"
    if limit == "policer":
        return f"its drops keep it below the policer's rate, which its counters do not show; {MEASURE}"
    if limit == "loss" and counters["loss_episodes"] == 0:
        return "it lost nothing while it was watched, so the rate of loss is not known: watch longer (--seconds)"
    if limit == "loss" and counters["losses_per_episode"] >= BURST:
        return (
            f"{counters['losses_per_episode']:.1f} losses at a time are what a policer makes, too, and it would bound "
            f"the rate; {MEASURE}"
        )
    return None


def _disagreement(flow: Mapping[str, Any], as_it_is: Outcome, policer: Policer | None) -> str:
    measured = f"measured {rate(flow['goodput_bps'])}: they disagree"
    text = f"simulated as it is it has {rate(as_it_is.goodput_bps)}, {measured}"
    given = "" if policer is not None else ", or give what is known of the path (--line-rate, --policer)"
    return f"{text}, so other settings are not simulated; watch longer (--seconds){given}"


def _is_ipv6(flow: Mapping[str, Any]) -> bool:
    address = ipaddress.ip_address(_address(flow["remote"]))
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None


def _address(end: str) -> str:
    """Return the address of ADDRESS:PORT."""
    return end.rpartition(":")[0].strip("[]")


def _packet_bytes(flow: Mapping[str, Any]) -> int:
    return int(flow["counters"]["mss_bytes"]) + HEADER_BYTES + (IPV6_EXTRA_BYTES if _is_ipv6(flow) else 0)


class _Model:
    """A path and a flow in the words of a scenario."""

    def __init__(self, flow: Mapping[str, Any], line_rate_bps: int, policer: Policer | None) -> None:
        self.flow, self.line_rate_bps = flow, line_rate_bps
        self.counters: Mapping[str, Any] = flow["counters"]
        self.policer = policer
        self.limit: str = flow["limit"]
        self.rtt_s = self.counters["min_rtt_us"] / 1e6
        self.control = flow["congestion_control"] if flow["congestion_control"] in KNOWN else "cubic"
        self.bdp_bytes = line_rate_bps * self.rtt_s / 8

    def own(self) -> dict[str, Any]:
        """Return the settings of the flow as it is."""
        held = self.limit in ("receive_window", "send_buffer", "pacing")
        # As much is in flight as the limit lets through.
        return (
            {"window_bytes": max(int(self.counters["in_flight_bytes"]), 2 * _packet_bytes(self.flow))}
            if held
            else {}
        )

    def variants(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what may be changed."""
        room = size(2 * self.bdp_bytes)
        others = [name for name in KNOWN if name != self.control]
        match self.limit:
            case "receive_window":
                yield f"with a receive window of {room}", {}
            case "send_buffer":
                yield f"with a send buffer of {room}", {}
            case "pacing":
                yield "without SO_MAX_PACING_RATE", {}
            case "loss":
                for other in others:
                    yield f"with {other}", {"control": other}
                yield "with 4 connections", {"connections": 4}
            case "queue" | "policer":
                for other in others:
                    yield f"with {other}", {"control": other}
            case "start_up":
                yield "if it went on", {}

    def run(
        self, change: str, *, control: str | None = None, window_bytes: int | None = None, connections: int = 1
    ) -> Outcome:
        """Simulate one variant."""
        from elephan.api import run

        packet = _packet_bytes(self.flow)
        bound_bps = self.line_rate_bps if self.policer is None else self.policer.rate_bps
        most_s = PACKETS_MOST * packet * 8 / bound_bps
        seconds = max(min(max(SECONDS, RTTS * self.rtt_s), most_s), 0.5)
        path = [
            f'bandwidth = "{self.line_rate_bps}bit/s"',
            f'rtt = "{int(self.rtt_s * 1e9)}ns"',
            f'mtu = "{packet}B"',
            f'queue = "{self._queue_bytes()}B"',
        ]
        if self.limit == "loss" and self.policer is None:
            path.append(f"loss = {min(self.counters['retransmitted'], 0.5):.12f}")
        if self.policer is not None:
            rate_bps, burst_bytes = self.policer.rate_bps, max(self.policer.burst_bytes, 2 * packet)
            path.append(f'policer = {{ rate = "{rate_bps}bit/s", burst = "{burst_bytes}B" }}')
        flow = [f'congestion_control = "{control or self.control}"', f"connections = {connections}"]
        if _is_ipv6(self.flow) and packet >= IPV6_MTU_LEAST:
            flow.append("ip_version = 6")
        if window_bytes is not None:
            flow.append(f'window = "{window_bytes}B"')
        lines = [
            "[run]",
            f'duration = "{seconds:.3f}s"',
            "[path]",
            *path,
            "[[flow]]",
            *flow,
            "[measure]",
            "series = false",
        ]
        lines.append(f'warmup = "{seconds / 2:.3f}s"')
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "forecast.toml"
            file.write_text("\n".join(lines))
            (record,) = run(file, store="none", workers=1)
        metrics = record.metrics
        return Outcome(change, metrics["goodput_bps"] or 0.0, metrics.get("rtt_mean_s"))

    def _queue_bytes(self) -> int:
        """Return the queue that was seen in use; one of a BDP where none was."""
        least = 10 * _packet_bytes(self.flow)
        if self.limit != "queue":
            return max(int(self.bdp_bytes), least)
        delay_s = (self.counters["srtt_us"][2] - self.counters["min_rtt_us"]) / 1e6
        return max(int(delay_s * self.line_rate_bps / 8), least)


def _interface_rate(remote: str) -> tuple[int | None, str]:
    """Return the rate of the interface towards an address, bit/s, and its name."""
    try:
        command = ["ip", "-j", "route", "get", _address(remote)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        device = str(json.loads(done.stdout)[0]["dev"])
        mbit = int((Path("/sys/class/net") / device / "speed").read_text())
    except (OSError, ValueError, LookupError, subprocess.CalledProcessError):
        return None, ""
    # A virtual one has none: -1.
    return (mbit * 1_000_000, device) if mbit > 0 else (None, device)
