"""From a run's specification to hosts, sockets and routes on this machine; makes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elephan.backends.controls import controls_of
from elephan.backends.kernel.mapping import (
    Machine,
    Refused,
    Settings,
    notes_of,
    program_settings_of,
    settings_of,
    socket_of,
    waiting,
)
from elephan.backends.programs import lacks
from elephan.backends.programs.files import require_room
from elephan.congestion_control import find
from elephan.errors import InputError
from elephan.kernel.run_controls import Control
from elephan.path import simulated
from elephan.path.testbed import DISK_FOLDERS, MOST_HOSTS, Host, address, routers
from elephan.run_spec.types import EventSpec, FlowSpec, RunSpec
from elephan.scenario import program, receive_buffers

if TYPE_CHECKING:
    from elephan._native import BpfMap

FIRST_PORT = 10_000
MOST_FLOWS = 50_000
"""One port each."""

MAX_REDUCED_FLOWS = 4096
"""CC_COMMANDS_ of congestion/bpf/cwnd_reduction.h."""


@dataclass(frozen=True)
class Layout:
    """The hosts, ends and controls that a run needs on this machine."""

    hosts: tuple[Host, ...]
    settings: tuple[Settings, ...]
    """Of each host."""
    ends: tuple[tuple[int, int], ...]
    """Source and destination host of each flow."""
    controls: tuple[Control, ...]
    """Every one once, in order of first use."""
    control_of: tuple[int, ...]
    """Of each flow: index into `controls`."""
    listening: frozenset[int]
    """Of `controls`: those whose senders receive commands to reduce their windows."""
    notes: tuple[str, ...]

    def plan(
        self,
        hosts: list[dict[str, Any]],
        names: list[str],
        spec: RunSpec,
        programs: Mapping[int, dict[str, Any]] | None = None,
        commands: Mapping[int, BpfMap] | None = None,
    ) -> dict[str, Any]:
        """Return the plan of crates/kernel/src/plan.rs.

        `hosts` of the site, `names` that the controls were given, `programs` by the number of their flow, `commands`
        the map for commands by the number of the control.
        """
        flows = [
            {
                "source": source,
                "destination": destination,
                "port": FIRST_PORT + number,
                "congestion_control": names[control],
                **socket_of(flow["transport"]),
                "ipv6": flow["transport"].get("ipv6", False),
                "commands": commands[control].id if commands and control in commands else None,
                "program": (programs or {}).get(number),
            }
            for number, (flow, (source, destination), control) in enumerate(
                zip(spec["flows"], self.ends, self.control_of, strict=True)
            )
        ]
        routes: dict[tuple[int, int], list[int]] = {}
        for flow, (source, destination) in zip(spec["flows"], self.ends, strict=True):
            routes.setdefault((source, destination), flow["route"])
            routes.setdefault((destination, source), flow["return_route"])
        return {
            "hosts": hosts,
            "flows": flows,
            "routes": [{"from": a, "to": b, "links": links} for (a, b), links in routes.items()],
            "routers": routers(spec),
            "emulator": {},
        }

    def pairs(self, spec: RunSpec, host: int) -> list[tuple[str, str]]:
        """Return the pairs of addresses between which a host sends: its own and its peer's, by each flow's version."""
        ends = zip(spec["flows"], self.ends, strict=True)
        used = ((flow, here, there) for flow, (here, there) in ends if here == host)
        both = ((address_of(flow, self.hosts[here]), address_of(flow, self.hosts[there])) for flow, here, there in used)
        return list(dict.fromkeys(both))


def address_of(flow: FlowSpec, host: Host) -> str:
    """Return the address of a host that a flow uses."""
    return host.ipv6_address if flow["transport"].get("ipv6") else host.address


def _patient(events: Sequence[EventSpec]) -> set[int]:
    """Return the flows whose senders tolerate reordering when they are moved. Raises `InputError` for events that none
    can follow.
    """
    found: set[int] = set()
    for event in events:
        action = event["action"]
        if action["kind"] != "move" or "mitigation" not in action:
            continue
        tolerance = action["mitigation"]["reordering_tolerance"]
        if tolerance is not None:
            if tolerance["delay_ns"] > 0:
                raise InputError(
                    'mitigation "reordering_tolerance": no Linux takes another duplicate ACK threshold '
                    "for a connection that runs: "
                    'by = "reo_wnd" is what it takes'
                )
            found.update(action["flows"])
    return found


def _reduced(spec: RunSpec) -> set[int]:
    """Return the flows whose senders may receive commands to reduce their windows. Raises `InputError` for too many."""
    found: set[int] = set()
    for event in spec["events"]:
        action = event["action"]
        if action["kind"] == "move" and "mitigation" in action and action["mitigation"]["cwnd_reduction"] is not None:
            found.update(action["flows"])
    mitigations = spec["manager"].get("mitigations", []) if "manager" in spec else []
    ways = [way["route"] for way in mitigations if way["mitigation"]["cwnd_reduction"] is not None]
    found.update(number for number, flow in enumerate(spec["flows"]) if flow["route"] in ways)
    for flow in (spec["flows"][number] for number in sorted(found)):
        if flow["transport"].get("ipv6"):
            raise InputError(
                f'flow {flow["name"]}: mitigation "cwnd_reduction": the backend kernel finds a sender by its IPv4 '
                "addresses: ip_version = 4, or --on sim"
            )
    if len(found) > MAX_REDUCED_FLOWS:
        raise InputError(
            f'mitigation "cwnd_reduction": {len(found)} flows; '
            f"the backend kernel can reduce at most {MAX_REDUCED_FLOWS} in a run"
        )
    return found


def _listening(flows: Sequence[FlowSpec], control_of: Sequence[int], reduced: set[int]) -> frozenset[int]:
    """Return the controls that can follow commands: not those that set the window on every ACK, as in the simulator."""
    return frozenset(
        control_of[number]
        for number in reduced
        if "cong_avoid" in find(flows[number]["transport"]["congestion_control"]).hooks
    )


def require_series(spec: RunSpec) -> None:
    """Raise `InputError` where windows of the measurement have no series to be read from."""
    if spec["measure"].get("windows") and spec["measure"]["series_interval_ns"] is None:
        raise InputError(
            "measure.windows: this backend reads them from the series, and measure.series is false; leave it out"
        )


def layout_of(spec: RunSpec, machine: Machine) -> Layout:
    """Return the hosts, settings and controls of a specification. Raises `InputError` when this machine's kernel cannot
    do what it asks for.
    """
    flows = spec["flows"]
    if not flows:
        raise InputError("the backend kernel runs flows, and this scenario has none: add [[flow]]")
    if len(flows) > MOST_FLOWS:
        raise InputError(f"{len(flows)} connections: the backend kernel has ports for {MOST_FLOWS}")
    for crowd in spec.get("short_flows", ()):
        raise InputError(
            f"flow {crowd['name']}: workload short_flows is the simulator's alone: --on sim, or bulk flows"
        )
    for gateway in spec.get("gateways", ()):
        name = spec["nodes"][gateway["node"]]
        raise InputError(f'node {name}: kind "gateway" is the simulator\'s alone: --on sim')
    simulated.require_none(spec)
    if spec["measure"]["pcap"] is not None:
        raise InputError(
            "--pcap: only the backend sim writes captures; on kernel, run tcpdump in a namespace of the run "
            "(elephan path show lists them)"
        )
    require_series(spec)
    for event in spec["events"]:
        if event["when"]["kind"] == "flow_reaches" and "settled_ns" in event["when"]:
            raise InputError(
                "event.when.settled: only the simulator sees a retransmission when it happens; take --on sim, or "
                "reaches and over"
            )
    places: dict[tuple[int, Settings, int | None], int] = {}
    ends = []
    notes: dict[str, None] = {}
    patient, reduced = _patient(spec["events"]), _reduced(spec)
    for number, flow in enumerate(flows):
        if flow["workload"]["kind"] == "iscsi":
            raise InputError(
                f'flow {flow["name"]}: workload "iscsi" runs on --on sim alone; `elephan path shell` with '
                "`elephan iscsi` runs a live target and load over a scenario's network"
            )
        transport, workload = flow["transport"], flow["workload"]
        carried_by = workload["program"] if workload["kind"] == "program" else None
        lacking = lacks(carried_by, machine.commands) if carried_by else None
        if lacking:
            raise InputError(f"flow {flow['name']}: {lacking}")
        try:
            settings = program_settings_of(transport, machine) if carried_by else settings_of(transport, machine)
            if number in patient:
                settings = waiting(settings)
        except Refused as error:
            raise InputError(f"flow {flow['name']}: {error}") from error
        # A program's hosts are its own: their default control is the flow's, and so is every packet between them.
        owner = number if carried_by else None
        ends.append(
            (
                places.setdefault((flow["source"], settings, owner), len(places)),
                places.setdefault((flow["destination"], settings, owner), len(places)),
            )
        )
        if "udt" not in transport:
            notes.update(dict.fromkeys(notes_of(transport)))
    require_room(flows, DISK_FOLDERS)
    notes.update(dict.fromkeys(program.notes_of(flows)))
    notes.update(dict.fromkeys(receive_buffers.notes_of(flows)))
    if len(places) > MOST_HOSTS:
        raise InputError(
            f"the backend kernel would need {len(places)} hosts, one per node and set of TCP settings, two per "
            "program, "
            f"and makes at most {MOST_HOSTS}: let flows share nodes or settings"
        )
    controls, control_of = controls_of(flows)
    hosts = tuple(
        Host(
            address=address(number),
            node=node,
            mtu_bytes=settings.mtu_bytes,
            sysctls=dict(settings.sysctls),
            route=settings.route,
        )
        for number, (node, settings, _) in enumerate(places)
    )
    return Layout(
        hosts,
        tuple(settings for _, settings, _ in places),
        tuple(ends),
        controls,
        control_of,
        _listening(flows, control_of, reduced),
        tuple(notes),
    )
