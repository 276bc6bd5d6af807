"""Background traffic and events of a scenario as the core takes them."""

from __future__ import annotations

from fractions import Fraction
from math import floor

from elephan.run_spec.route import header_bytes
from elephan.run_spec.types import (
    ActionSpec,
    BackgroundSpec,
    EventSpec,
    FlowReachesSpec,
    FlowSpec,
    FramingSpec,
    MitigationSpec,
    MoveBackgroundSpec,
    MoveSpec,
    WhenSpec,
)
from elephan.scenario.active import active_spec
from elephan.scenario.document import Document
from elephan.scenario.problem import Location, Problem, unknown
from elephan.scenario.program import Program
from elephan.scenario.quantity import RATE_MAX, Share, bits_per_second
from elephan.scenario.run import Event
from elephan.scenario.spec.lines import loss_spec
from elephan.scenario.spec.mitigations import difference_ns, mitigation_spec, parted
from elephan.scenario.spec.network import Move, Network


def background_specs(document: Document, network: Network) -> list[BackgroundSpec]:
    """Traffic without congestion control. Raises `Problem` for packets beyond the MTU: nothing here fragments."""
    for index, (source, route) in enumerate(zip(document.background, network.background_routes, strict=True)):
        moved = [move.route or [] for move in network.moves.values() if index in move.sources]
        mtu = min(network.lines[line].mtu_bytes for way in (route, *moved) for line in way)
        if max(source.round) > mtu:
            key = "packet" if source.mix is None else "mix"
            raise Problem(("background", index, key), f"at most {mtu}B, the smallest MTU on the route")
    specs: list[BackgroundSpec] = [
        {
            "name": name,
            "route": route,
            "rate_bps": bits_per_second(source.rate, network.slowest_bps(route)),
            "packet_bytes": max(source.round),
            "start_ns": source.start,
            "stop_ns": source.stop,
            "on_off_ns": None if source.on is None or source.off is None else [source.on, source.off],
            "enabled": source.enabled,
        }
        for source, name, route in zip(
            document.background, document.background_names(), network.background_routes, strict=True
        )
    ]
    for index, (spec, source) in enumerate(zip(specs, document.background, strict=True)):
        if source.active is not None:
            spec["active"] = active_spec(source.active, source.start, document.run.time_of_day)
        if source.speech is not None:
            spec["codec"] = source.speech
        slowest = min((network.lines[line] for line in spec["route"]), key=lambda line: line.rate_bps)
        framing = slowest.framing if isinstance(source.rate, Share) else None
        if source.mix is not None or framing is not None or not document.flow:
            if spec["rate_bps"] > RATE_MAX:
                raise Problem(("background", index, "rate"), f"at most {RATE_MAX // 10**12}Tbit/s")
            none: FramingSpec = {"header_bytes": 0, "min_frame_bytes": 0, "gap_bytes": 0}
            spec["frames"] = {"packets_bytes": source.round, "framing": framing or none}
    return specs


def event_specs(document: Document, network: Network, flows: list[FlowSpec]) -> list[EventSpec]:
    """Every single change, in file order: an entry may make several. `flows` are specified ones."""
    return [
        {"when": when, "action": action}
        for index, event in enumerate(document.event)
        for when in [_when(document, network, flows, index, event)]
        for action in [*actions(document, network, index, event), *_moves(document, network, index, flows)]
    ]


def _moves(document: Document, network: Network, index: int, flows: list[FlowSpec]) -> list[ActionSpec]:
    found: list[ActionSpec] = []
    move = network.moves.get(index)
    if move is None:
        return found
    if move.connections:
        first: dict[int, int] = {}
        for place, flow in enumerate(flows):
            first.setdefault(flow["group"], place)
        moved = [
            place
            for place, flow in enumerate(flows)
            for group, connection in move.connections
            if flow["group"] == group and connection in (None, place - first[group])
        ]
        flows_move: MoveSpec = {
            "kind": "move",
            "flows": list(dict.fromkeys(moved)),
            "route": move.route,
            "return_route": move.return_route,
        }
        mitigation = _mitigation(document, network, index, move, {group for group, _ in move.connections})
        if mitigation is not None:
            flows_move["mitigation"] = mitigation
        found.append(flows_move)
    if move.sources:
        assert move.route is not None, "a background source moves by a route"
        sources = list(dict.fromkeys(move.sources))
        sources_move: MoveBackgroundSpec = {"kind": "move_background", "sources": sources, "route": move.route}
        mitigation = _mitigation(document, network, index, move, set())
        if mitigation is not None:
            sources_move["mitigation"] = mitigation
        found.append(sources_move)
    return found


def _mitigation(
    document: Document, network: Network, index: int, move: Move, groups: set[int]
) -> MitigationSpec | None:
    """Return the mitigation of a move; None where there is none."""
    mitigations = document.event[index].mitigation
    if mitigations is None or move.route is None:
        return None
    before = [network.background_routes[source] for source in move.sources]
    for group in groups:
        earlier = [
            other.route for at, other in network.moves.items() if at < index and other.has(group) and other.route
        ]
        before = [earlier[-1] if earlier else network.flow_routes[group][0], *before]
    # Of several old routes wait for the longest.
    old = max(before, key=lambda way: difference_ns(network, *parted(way, move.route or [])[1:]))
    return mitigation_spec(network, mitigations, old, move.route)


def _when(document: Document, network: Network, flows: list[FlowSpec], index: int, event: Event) -> WhenSpec:
    if event.when is None:
        assert event.at is not None, "an event has a time or a condition"
        return {"kind": "at", "time_ns": event.at}
    names = [flow["name"] for flow in flows]
    where = ("event", index, "when", "flow")
    for name, flow in zip(document.flow_names(), document.flow, strict=True):
        if name == event.when.flow and isinstance(flow.workload, Program) and flow.workload.streams > 1:
            raise Problem(where, "a flow of another workload, or with workload.streams = 1")
    if event.when.flow not in names:
        if event.when.flow in document.flow_names() and event.when.flow in [name.rpartition(".")[0] for name in names]:
            raise Problem(where, f'one of its connections, such as "{event.when.flow}.1"')
        raise Problem(where, unknown("flow", event.when.flow, names))
    watched = names.index(event.when.flow)
    _require_reachable(document, network, flows[watched], index, event.when.reaches)
    found: FlowReachesSpec = {
        "kind": "flow_reaches",
        "flow": watched,
        "rate_bps": bits_per_second(event.when.reaches, network.slowest_bps(flows[watched]["route"])),
        "window_ns": event.when.over,
    }
    if event.when.settled:
        found["settled_ns"] = event.when.settled
    return found


def _require_reachable(document: Document, network: Network, flow: FlowSpec, index: int, reaches: Share | int) -> None:
    """Raise `Problem` for a share of the line that full segments of the flow never carry as payload."""
    is_first_path = all(event.bandwidth is None and event.move is None for event in document.event)
    if not isinstance(reaches, Share) or document.manager is not None or not is_first_path:
        return
    transport = flow["transport"]
    mtu = transport["mtu_bytes"]
    slowest = min((network.lines[line] for line in flow["route"]), key=lambda line: line.rate_bps)
    framing = slowest.framing or {"header_bytes": 0, "min_frame_bytes": 0, "gap_bytes": 0}
    taken = max(mtu + framing["header_bytes"], framing["min_frame_bytes"]) + framing["gap_bytes"]
    largest = Fraction(mtu - header_bytes(transport), taken)
    if reaches.of_line > largest:
        known = f'at most "{floor(largest * 1000) / 10:g}%", the payload of a line full of its segments of {mtu}B'
        raise Problem(("event", index, "when", "reaches"), known)


def first_specs(document: Document, network: Network, flows: list[FlowSpec]) -> list[int]:
    """Return, of each event entry, the index among `event_specs` of its move, or else of its first change."""
    found = []
    first = 0
    for index, event in enumerate(document.event):
        changes, moves = actions(document, network, index, event), _moves(document, network, index, flows)
        found.append(first + (len(changes) if moves else 0))
        first += len(changes) + len(moves)
    return found


def actions(document: Document, network: Network, index: int, event: Event) -> list[ActionSpec]:
    """Return the changes of one event entry. Raises `Problem` for names that do not exist."""
    where = ("event", index)
    found: list[ActionSpec] = []

    def changed(forward_only: bool = False) -> list[int]:
        names = event.link
        if names is None:
            links = document.link_names() if document.path is None else ["path"]
            if len(links) > 1:
                raise Problem((*where, "link"), "missing; which link is to change?")
            names = links
        return _lines_of(network, names, (*where, "link"), forward_only)

    if event.bandwidth is not None:
        found += [{"kind": "rate", "link": link, "rate_bps": event.bandwidth} for link in changed()]
    if event.rtt is not None:
        forward, reverse = _lines_of(network, ["path"], (*where, "rtt"), False)
        found.append({"kind": "delay", "link": forward, "delay_ns": event.rtt - event.rtt // 2})
        found.append({"kind": "delay", "link": reverse, "delay_ns": event.rtt // 2})
    if event.delay is not None:
        found += [{"kind": "delay", "link": link, "delay_ns": event.delay} for link in changed()]
    if event.loss is not None:
        loss = loss_spec(event.loss)
        found += [{"kind": "loss", "link": link, "loss": loss} for link in changed(forward_only=True)]

    def lines(key: str, names: list[str] | None) -> list[int]:
        return _lines_of(network, names or [], (*where, key), False)

    def sources(key: str, names: list[str] | None) -> list[int]:
        known = document.background_names()
        for name in names or []:
            if name not in known:
                raise Problem((*where, key), unknown("background source", name, known))
        return [known.index(name) for name in names or []]

    found += [{"kind": "link_down", "link": link} for link in lines("link_down", event.link_down)]
    found += [{"kind": "link_up", "link": link} for link in lines("link_up", event.link_up)]
    found += [{"kind": "background_on", "source": on} for on in sources("background_on", event.background_on)]
    found += [{"kind": "background_off", "source": off} for off in sources("background_off", event.background_off)]
    return found


def _lines_of(network: Network, names: list[str], where: Location, forward_only: bool) -> list[int]:
    found: list[int] = []
    for name in names:
        indices = network.lines_named(name)
        if not indices:
            raise Problem(where, unknown("link", name, network.line_names()))
        if any(network.lines[index].batching is not None for index in indices):
            raise Problem(where, f'another link: "{name}" is of a host with tso, gro or coalesce, and does not change')
        found += [i for i in indices if not forward_only or network.lines[i].forward or name == network.lines[i].name]
    return found
