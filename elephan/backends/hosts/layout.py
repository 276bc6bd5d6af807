"""From a run's specification to one sender and one receiver; makes nothing and asks nobody.

The keys of the network are what is expected of the path between the two hosts. A scenario that changes its network, or
has more of it than two ends, is refused, because nobody can make a real path follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from elephan.backends.controls import controls_of
from elephan.backends.kernel.mapping import sysctls_of
from elephan.backends.kernel.plan import require_series
from elephan.errors import InputError
from elephan.kernel.run_controls import Control
from elephan.run_spec.defaults import TRANSPORT
from elephan.run_spec.types import EventSpec, FlowSpec, RunSpec, TransportSpec
from elephan.scenario.program import PROGRAMS

EMULATED = "--on kernel emulates it"

PER_SOCKET = ("tcp_moderate_rcvbuf", "tcp_rmem", "tcp_wmem")
"""Sysctls of the backend kernel that a socket's own options stand for on a host."""

OF_A_NAMESPACE = ("tcp_no_metrics_save",)
"""Sysctls of the backend kernel that a host keeps as it has them."""

SHORT_FORM = ("left", "right")
"""Nodes of a scenario's `[path]`, at its two sites."""


@dataclass(frozen=True)
class Layout:
    """One direction between two ends."""

    forward: bool
    """True if the left host sends."""
    controls: tuple[Control, ...]
    """Every one once, in order of first use."""
    control_of: tuple[int, ...]
    """Of each flow: index into `controls`."""
    required: dict[str, str]
    """Sysctls under net.ipv4 that the scenario sets away from elephan's defaults."""
    usual: dict[str, str]
    """Those of elephan's defaults."""
    expected_rtt_ns: int
    expected_rate_bps: int
    expected_mtu_bytes: int
    ip_version: int
    """Of the first flow."""


def layout_of(spec: RunSpec) -> Layout:
    """Return the layout of a specification. Raises `InputError` for what no two hosts can do."""
    _refuse(spec)
    flows = spec["flows"]
    forward = _direction(spec)
    required: dict[str, str] = {}
    owner: dict[str, str] = {}
    plain = switches_of(TRANSPORT)
    for flow in flows:
        _refuse_route_keys(flow)
        for name, value in switches_of(flow["transport"]).items():
            if value == plain[name]:
                continue
            if required.setdefault(name, value) != value:
                raise InputError(
                    f"flow {flow['name']}: net.ipv4.{name} = {value}, and flow {owner[name]} needs "
                    f"{required[name]}: a host has one value for all; {EMULATED}"
                )
            owner.setdefault(name, flow["name"])
    for name, first in owner.items():
        other = next((flow["name"] for flow in flows if switches_of(flow["transport"])[name] == plain[name]), None)
        if other is not None:
            raise InputError(
                f"flow {other}: net.ipv4.{name} = {plain[name]}, and flow {first} needs {required[name]}: a host has "
                f"one value for all; {EMULATED}"
            )
    controls, control_of = controls_of(flows)
    first_flow, links = flows[0], spec["links"]
    return Layout(
        forward=forward,
        controls=controls,
        control_of=control_of,
        required=required,
        usual={name: value for name, value in plain.items() if name not in required},
        expected_rtt_ns=sum(links[hop]["delay_ns"] for hop in (*first_flow["route"], *first_flow["return_route"])),
        expected_rate_bps=min(links[hop]["rate_bps"] for hop in first_flow["route"]),
        expected_mtu_bytes=first_flow["transport"]["mtu_bytes"],
        ip_version=6 if first_flow["transport"].get("ipv6") else 4,
    )


def switches_of(transport: TransportSpec) -> dict[str, str]:
    """Return the sysctls under net.ipv4 that a transport has keys for and that hold for a whole host."""
    return {name: value for name, value in sysctls_of(transport).items() if name not in PER_SOCKET + OF_A_NAMESPACE}


def _refuse(spec: RunSpec) -> None:
    """Raise `InputError` for parts of a specification that only a simulated or emulated network has."""
    if not spec["flows"]:
        raise InputError("the backend hosts runs flows, and this scenario has none: add [[flow]]")
    for source in spec["background"]:
        raise InputError(f"background {source['name']}: a real path has the traffic that it has; {EMULATED}")
    if "manager" in spec:
        raise InputError(f"manager: a real path has no lightpaths to set up; {EMULATED}")
    for event in spec["events"]:
        raise InputError(f"event: {_words(event)}: nobody can make a real path do so; {EMULATED}")
    for crowd in spec.get("short_flows", ()):
        raise InputError(f"flow {crowd['name']}: workload short_flows is the simulator's alone: --on sim")
    for gateway in spec.get("gateways", ()):
        name = spec["nodes"][gateway["node"]]
        raise InputError(f'node {name}: kind "gateway" is the simulator\'s alone: --on sim')
    require_series(spec)
    if spec["measure"]["pcap"] is not None:
        raise InputError("--pcap: only the backend sim writes captures; on a host, run tcpdump there")
    for flow in spec["flows"]:
        kind = flow["workload"]["kind"]
        if kind in ("iscsi", "fc", "fcp"):
            raise InputError(f'flow {flow["name"]}: workload "{kind}" runs on --on sim alone')
        workload = flow["workload"]
        if workload["kind"] == "program" and PROGRAMS[workload["program"]].over_udp:
            raise InputError(
                f'flow {flow["name"]}: program = "{workload["program"]}": an agent counts what TCP delivers, and this '
                "goes over UDP: take --on kernel, or scp, rsync or iperf3"
            )


def _words(event: EventSpec) -> str:
    kind = event["action"]["kind"]
    return kind.replace("_", " ")


def _direction(spec: RunSpec) -> bool:
    """Return True if all flows go from left to right. Raises `InputError` where they do not go one way, between the
    same two ends.
    """
    flows = spec["flows"]
    if tuple(spec["nodes"][:2]) == SHORT_FORM:
        # Link 0 is the path's forward direction.
        ways = {0 in flow["route"] for flow in flows}
        first = flows[0]
    else:
        first = flows[0]
        ends = (first["source"], first["destination"])
        for flow in flows:
            pair = (flow["source"], flow["destination"])
            if set(pair) != set(ends):
                names = sorted({spec["nodes"][node] for node in (*ends, *pair)})
                raise InputError(
                    f"flow {flow['name']}: ends at other nodes than {first['name']} ({', '.join(names)}): two hosts "
                    f"are two ends; {EMULATED}"
                )
            if pair == ends and flow["route"] != first["route"]:
                raise InputError(
                    f"flow {flow['name']}: goes another way than {first['name']}: two hosts have one path; {EMULATED}"
                )
        ways = {(flow["source"], flow["destination"]) == ends for flow in flows}
    if len(ways) > 1:
        other = next(flow for flow in flows if _is_forward(spec, flow) != _is_forward(spec, first))
        raise InputError(
            f"flow {other['name']}: goes the other way than {first['name']}: a run between hosts has one direction; "
            f"{EMULATED}, or one direction in each of two scenarios"
        )
    return ways == {True}


def _is_forward(spec: RunSpec, flow: FlowSpec) -> bool:
    if tuple(spec["nodes"][:2]) == SHORT_FORM:
        return 0 in flow["route"]
    return flow["source"] == spec["flows"][0]["source"]


def _refuse_route_keys(flow: FlowSpec) -> None:
    """Raise `InputError` for keys that are attributes of a route, or of the kernel's table of metrics."""
    transport = flow["transport"]
    attributes = {
        "initial_cwnd": ("initcwnd", transport["initial_cwnd"], TRANSPORT["initial_cwnd"]),
        "rto_min": ("rto_min", _ms(transport["rto_min_ns"]), _ms(TRANSPORT["rto_min_ns"])),
        "delayed_ack": ("quickack", 0 if transport["delayed_ack"] else 1, 0),
    }
    for key, (attribute, value, usual) in attributes.items():
        if value != usual:
            raise InputError(
                f"flow {flow['name']}: {key} is an attribute of a host's route, which stays as it is: leave it out; an "
                f"administrator sets it by ip route change ... {attribute} {value}; {EMULATED}"
            )
    for key, given in {
        "initial_ssthresh": transport["initial_ssthresh"],
        "cwnd_clamp": transport["cwnd_clamp"],
    }.items():
        if given is not None:
            raise InputError(f"flow {flow['name']}: {key} has no switch on a host: leave it out; {EMULATED}")


def _ms(time_ns: int) -> str:
    return f"{time_ns // 1_000_000}ms"
