"""The commands and sysctls that put a congestion control, and the window of a path, into use on real machines."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from elephan import units
from elephan.congestion_control import CongestionControl, Parameter, find
from elephan.kernel import namespaces
from elephan.kernel.names import kernel_name
from elephan.kernel.socket_buffers import INT_MAX, buffer_for
from elephan.run_spec.route import header_bytes, passing_bps, policers_of, round_trip_ns
from elephan.scenario.flow import WINDOW_MAX

SYSCTL_FILE = "/etc/sysctl.d/90-elephan.conf"
"""Read at every boot (sysctl.d(5))."""

SEND_PER_WINDOW = 2
"""Send buffer for a window of one byte: the kernel tunes it to twice the congestion window, so that a program can write
while a window is unacknowledged (tcp_sndbuf_expand in net/ipv4/tcp_input.c)."""

READ = (4096, 131_072, 33_554_432)
WRITE = (4096, 16_384, 4_194_304)
"""tcp_rmem and tcp_wmem of Linux 6.16, the largest of any version (Documentation/networking/ip-sysctl.rst)."""
CORE = 4_194_304
"""net.core.rmem_max and wmem_max of Linux 6.18."""
SYSCTLS = Path("/proc/sys/net")
POLICED_WINDOW = 2
"""Window before a policer, in bandwidth-delay products of its rate."""


@dataclass(frozen=True)
class Deployment:
    """Commands that put one congestion control into use."""

    name: str
    """In the kernel."""
    load: str
    """The command that loads it until the next boot."""
    enable: str
    """The command that loads it at every boot."""
    default: str
    """The command that makes it the default of all connections."""
    linux: str | None = None
    """The running kernel's own module with the same behaviour: nothing needs to be loaded. `None`: there is none."""

    def lines(self) -> list[str]:
        """Return the commands, each with its effect."""
        if self.linux is not None:
            setting = f"net.ipv4.tcp_congestion_control={self.linux}"
            return [
                f"# This machine's kernel has {self.linux}: nothing to load, and a program chooses it (TCP_CONGESTION, "
                "iperf3 -C).",
                f"sysctl -w {setting}  # for every connection of the machine; in {SYSCTL_FILE} at every boot",
                f"# On a machine without it: {self.enable} --default",
            ]
        found = [
            (self.load, f"until the next boot; a program chooses {self.name} (TCP_CONGESTION, iperf3 -C)"),
            (self.default, "for every connection of the machine"),
            (f"{self.enable} --default", "both at every boot, by a systemd unit"),
        ]
        width = max(len(command) for command, _ in found)
        return [f"{command:<{width}}  # {text}" for command, text in found]


def deployment_of(cc: CongestionControl, parameters: Mapping[str, int] | None = None) -> Deployment:
    """Return how to put a congestion control with these values into use; those absent keep the default.

    A value that the variant decides has no text, and is left out.
    """
    declared = {item.name: item for item in cc.parameters}
    words = [_shown(cc.path) if cc.path else cc.name]
    for key, value in sorted((parameters or {}).items()):
        if not (declared[key].is_by_variant and value == declared[key].default):
            words += ["--set", f"{key}={exact(declared[key], value)}"]
    given = shlex.join(words)
    name = kernel_name(cc.name)
    changed = {key: value for key, value in (parameters or {}).items() if value != declared[key].default}
    is_linux = cc.path is None and changed == cc.as_linux and cc.name in _available()
    return Deployment(
        name,
        f"elephan kernel load {given}",
        f"elephan kernel enable {given}",
        f"elephan kernel default {name} --host",
        cc.name if is_linux else None,
    )


def _available() -> list[str]:
    """Return the running kernel's congestion controls; empty where there is no Linux."""
    try:
        return namespaces.available()
    except OSError:
        return []


def _shown(path: str) -> str:
    """Return a file's path as it may be typed here: below the working directory from there."""
    with suppress(ValueError):
        return f"./{Path(path).resolve().relative_to(Path.cwd())}"
    return str(Path(path).resolve())


def exact(parameter: Parameter, value: int) -> str:
    """Return a parameter's value as text that gives this very value when it is read again."""
    text = parameter.text(value)
    if parameter.choices or parameter.is_switch or parameter.scale == 1:
        return text
    return text if round(Fraction(text) * parameter.scale) == value else str(Fraction(value, parameter.scale))


def of_flow(flow: Mapping[str, Any]) -> Deployment:
    """Return how to put the congestion control of a specification's flow into use. Raises `InputError`."""
    return deployment_of(find(flow["transport"]["congestion_control"]), flow["transport"]["parameters"])


def sysctls_for(window_bytes: int, mtu_bytes: int, overhead_bytes: int) -> dict[str, str]:
    """Return the least values with which Linux offers, and fills, a window of so many bytes; for both ends.

    None is below the default of any Linux version, or below the value of the running kernel.
    """
    read, write = _least("ipv4/tcp_rmem", READ), _least("ipv4/tcp_wmem", WRITE)
    receive = max(read[2], min(buffer_for(window_bytes, mtu_bytes, overhead_bytes), INT_MAX))
    send = max(write[2], min(SEND_PER_WINDOW * window_bytes, INT_MAX))
    return {
        # For programs that set their buffers themselves, which ends autotuning (socket(7)).
        "net.core.rmem_max": str(max(receive, *_least("core/rmem_max", (CORE,)))),
        "net.core.wmem_max": str(max(send, *_least("core/wmem_max", (CORE,)))),
        "net.ipv4.tcp_rmem": f"{read[0]} {read[1]} {receive}",
        "net.ipv4.tcp_wmem": f"{write[0]} {write[1]} {send}",
        "net.ipv4.tcp_window_scaling": "1",
    }


def _least(name: str, known: tuple[int, ...]) -> tuple[int, ...]:
    """Return the larger of known defaults and the running kernel's values, number by number."""
    try:
        running = [int(number) for number in (SYSCTLS / name).read_text().split()]
    except (OSError, ValueError):
        # No Linux, or a network namespace that does not show it.
        return known
    return tuple(max(pair) for pair in zip(known, running, strict=True)) if len(running) == len(known) else known


@dataclass(frozen=True)
class Needs:
    """The window of a path, and where it comes from."""

    rate_bps: int
    rtt_ns: int
    window_bytes: int
    """Largest window of the first flow: by default that of `window = "auto"`."""
    mtu_bytes: int
    overhead_bytes: int
    """Headers of a full packet."""

    @property
    def path_bytes(self) -> int:
        """Capacity of the path without a queue: rate times RTT."""
        return self.rate_bps * self.rtt_ns // 8_000_000_000

    @property
    def sysctls(self) -> dict[str, str]:
        """By name."""
        return sysctls_for(self.window_bytes, self.mtu_bytes, self.overhead_bytes)

    def lines(self) -> list[str]:
        """Return what to write into a file of sysctl.d(5), and what that is for."""
        path = f"{units.rate(self.rate_bps)}, {units.duration(self.rtt_ns / 1e9)}"
        window = f"a window of {units.size(self.window_bytes)}"
        found = [f"# {path}: the path holds {units.size(self.path_bytes)}; {window}."]
        found.append(
            "# No value is below the one of the machine that printed this, or the default of any Linux up to 6.18. On "
            "another machine, leave out what is larger there."
        )
        if self.window_bytes >= WINDOW_MAX:
            found.append("# No TCP has a larger one (RFC 7323): more than that takes several connections.")
        return found + [f"{name} = {value}" for name, value in self.sysctls.items()]


def needs_of(spec: Mapping[str, Any]) -> Needs:
    """Return the window that a specification's first flow needs on its path: of what passes, by a policer too."""
    flow = spec["flows"][0]
    transport = flow["transport"]
    rtt_ns = round_trip_ns(spec, flow)
    window_bytes = min(transport["window_bytes"], WINDOW_MAX)
    for policer in policers_of(spec, flow["route"]):
        # Behind a policer there is no queue of its rate: a window of twice what it lets through grows as far as it may.
        passes = POLICED_WINDOW * policer["rate_bps"] * rtt_ns // 8_000_000_000 + policer["burst_bytes"]
        window_bytes = min(window_bytes, max(passes, 2 * transport["mtu_bytes"]))
    rate_bps = passing_bps(spec, flow["route"])
    return Needs(rate_bps, rtt_ns, window_bytes, transport["mtu_bytes"], header_bytes(transport))


def pacing_lines(spec: Mapping[str, Any]) -> list[str]:
    """Return how to pace the connections as they were; nothing if the first flow's were not."""
    flows: dict[str, Mapping[str, Any]] = {}
    for flow in spec["flows"]:
        several = sum(other["group"] == flow["group"] for other in spec["flows"]) > 1
        flows.setdefault(re.sub(r"\.\d+$", "", flow["name"]) if several else flow["name"], flow["transport"])
    bounds = {name: transport.get("max_pacing_bps") for name, transport in flows.items()}
    first_bps = next(iter(bounds.values()))
    if first_bps is None:
        return []
    if set(bounds.values()) == {first_bps}:
        return [
            f"# Each connection paced at {units.rate(first_bps)} of payload: by the program (SO_MAX_PACING_RATE, "
            "elephan copy --rate), or for all of an interface's:",
            f"tc qdisc replace dev DEVICE root fq maxrate {_tc_rate(first_bps, spec)}",
        ]
    paced = {name: bound for name, bound in bounds.items() if bound is not None}
    of_each = ", ".join(f"{name} at {units.rate(bound)}" for name, bound in paced.items())
    changes = " ".join(f"--set flow.{name}.max_pacing_rate={bound}bit/s" for name, bound in paced.items())
    return [
        f"# Each connection of a flow paced, payload: {of_each}: by the program (SO_MAX_PACING_RATE, elephan copy "
        "--rate).",
        "# fq has one maxrate for all connections of an interface; where each flow has an interface to itself:",
        *(
            f"tc qdisc replace dev DEVICE root fq maxrate {_tc_rate(bound, spec)}  # flow {name}"
            for name, bound in paced.items()
        ),
        f"# The same in a run of the scenario: {changes}",
    ]


def _tc_rate(payload_bps: int, spec: Mapping[str, Any]) -> str:
    """Return the rate of packets for a rate of payload, as tc(8) takes it: fq counts packets with their headers.

    Rounded up to four digits, at most 0.1 % more: paced connections leave 1 % of a contract or more.
    """
    transport = spec["flows"][0]["transport"]
    mtu = int(transport["mtu_bytes"])
    packets_bps = -(-payload_bps * mtu // (mtu - header_bytes(transport)))
    step = 10 ** max(len(str(packets_bps)) - 4, 0)
    rounded = -(-packets_bps // step) * step
    for size, unit in ((10**9, "gbit"), (10**6, "mbit"), (10**3, "kbit")):
        if rounded >= size:
            return f"{rounded / size:g}{unit}"
    return f"{rounded}bit"


def text_of(deployment: Deployment, needs: Needs | None = None) -> list[str]:
    """Return all of it as lines; without `needs` only the congestion control."""
    if needs is None:
        return deployment.lines()
    return [*deployment.lines(), f"{SYSCTL_FILE}, then: sysctl --system", *(f"  {line}" for line in needs.lines())]
