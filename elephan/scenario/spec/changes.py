"""Background traffic and events of a scenario as the core takes them."""

from __future__ import annotations

from typing import Any

from elephan.scenario.document import Document
from elephan.scenario.problem import Location, Problem, unknown
from elephan.scenario.quantity import bits_per_second
from elephan.scenario.run import Event
from elephan.scenario.spec.lines import loss_spec
from elephan.scenario.spec.mitigations import difference_ns, mitigation_spec, parted
from elephan.scenario.spec.network import Move, Network


def background_specs(document: Document, network: Network) -> list[dict[str, Any]]:
    """Traffic without congestion control. Raises `Problem` for packets beyond the MTU: nothing here fragments."""
    for index, (source, route) in enumerate(zip(document.background, network.background_routes, strict=True)):
        moved = [move.route or [] for move in network.moves.values() if index in move.sources]
        mtu = min(network.lines[line].mtu_bytes for way in (route, *moved) for line in way)
        if source.packet > mtu:
            raise Problem(("background", index, "packet"), f"at most {mtu}B, the smallest MTU on the route")
    return [
        {
            "name": name,
            "route": route,
            "rate_bps": bits_per_second(source.rate, network.slowest_bps(route)),
            "packet_bytes": source.packet,
            "start_ns": source.start,
            "stop_ns": source.stop,
            "on_off_ns": None if source.on is None else [source.on, source.off],
            "enabled": source.enabled,
        }
        for source, name, route in zip(
            document.background, document.background_names(), network.background_routes, strict=True
        )
    ]


def event_specs(document: Document, network: Network, flows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every single change, in file order: an entry may make several. `flows` are specified ones."""
    return [
        {"when": when, "action": action}
        for index, event in enumerate(document.event)
        for when in [_when(document, flows, index, event)]
        for action in [*actions(document, network, index, event), *_moves(document, network, index, flows)]
    ]


def _moves(document: Document, network: Network, index: int, flows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
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
        ways: dict[str, Any] = {"route": move.route, "return_route": move.return_route}
        ways |= _mitigations(document, network, index, move, {group for group, _ in move.connections})
        found.append({"kind": "move", "flows": list(dict.fromkeys(moved)), **ways})
    if move.sources:
        sources = list(dict.fromkeys(move.sources))
        mitigations = _mitigations(document, network, index, move, set())
        found.append({"kind": "move_background", "sources": sources, "route": move.route, **mitigations})
    return found


def _mitigations(document: Document, network: Network, index: int, move: Move, groups: set[int]) -> dict[str, Any]:
    """The mitigations of a move, under their key; nothing if there are none."""
    mitigations = document.event[index].mitigation
    if mitigations is None or move.route is None:
        return {}
    before = [network.background_routes[source] for source in move.sources]
    for group in groups:
        earlier = [
            other.route for at, other in network.moves.items() if at < index and other.has(group) and other.route
        ]
        before = [earlier[-1] if earlier else network.flow_routes[group][0], *before]
    # Of several old routes wait for the longest.
    old = max(before, key=lambda way: difference_ns(network, *parted(way, move.route or [])[1:]))
    return {"mitigation": mitigation_spec(network, mitigations, old, move.route)}


def _when(document: Document, flows: list[dict[str, Any]], index: int, event: Event) -> dict[str, Any]:
    if event.when is None:
        return {"kind": "at", "time_ns": event.at}
    names = [flow["name"] for flow in flows]
    if event.when.flow not in names:
        where = ("event", index, "when", "flow")
        if event.when.flow in document.flow_names() and event.when.flow in [name.rpartition(".")[0] for name in names]:
            raise Problem(where, f'one of its connections, such as "{event.when.flow}.1"')
        raise Problem(where, unknown("flow", event.when.flow, names))
    return {
        "kind": "flow_reaches",
        "flow": names.index(event.when.flow),
        "rate_bps": event.when.reaches,
        "window_ns": event.when.over,
    }


def actions(document: Document, network: Network, index: int, event: Event) -> list[dict[str, Any]]:
    """Return the changes of one event entry. Raises `Problem` for names that do not exist."""
    where = ("event", index)
    found: list[dict[str, Any]] = []

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
    for key in ("link_down", "link_up"):
        names = getattr(event, key)
        if names is not None:
            found += [{"kind": key, "link": link} for link in _lines_of(network, names, (*where, key), False)]
    for key in ("background_on", "background_off"):
        for name in getattr(event, key) or ():
            if name not in document.background_names():
                raise Problem((*where, key), unknown("background source", name, document.background_names()))
            found.append({"kind": key, "source": document.background_names().index(name)})
    return found


def _lines_of(network: Network, names: list[str], where: Location, forward_only: bool) -> list[int]:
    found: list[int] = []
    for name in names:
        indices = network.lines_named(name)
        if not indices:
            raise Problem(where, unknown("link", name, network.line_names()))
        found += [i for i in indices if not forward_only or network.lines[i].forward or name == network.lines[i].name]
    return found
