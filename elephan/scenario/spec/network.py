"""Nodes, one-way links and routes of a scenario, from either form."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from elephan.run_spec.types import BatchingSpec, FramingSpec
from elephan.scenario.document import Document
from elephan.scenario.flow import Flow
from elephan.scenario.host_cost import ReceiveCost
from elephan.scenario.line import Policer
from elephan.scenario.path import Link, Node, Path, rate_bps
from elephan.scenario.problem import Location, Problem, unknown
from elephan.scenario.quantity import RATE_MAX
from elephan.scenario.run import Background, Event
from elephan.scenario.workload import ShortFlows

LEFT, RIGHT = "left", "right"

#: An access link's queue never fills: Linux holds a sender back before its own interface drops (TCP small queues).
ACCESS_QUEUE_BYTES = 1 << 50

#: A host takes packets of any size.
MTU_MAX = 65_535


@dataclass(frozen=True)
class Line:
    """One direction of a link."""

    name: str
    """NAME.forward or NAME.reverse."""
    link: str
    """Name of the link."""
    forward: bool
    source: int
    target: int
    rate_bps: int
    delay_ns: int
    mtu_bytes: int
    queue: Any = None
    """A queue model; None for an access link."""
    loss: Any = None
    jitter: Any = None
    policer: Policer | None = None
    framing: FramingSpec | None = None
    """None: the rate is one of IP packets."""
    batching: BatchingSpec | None = None
    """Batches in which a host takes packets; None: each alone, at once."""


@dataclass
class Move:
    """The flows and sources that an event moves, and their new routes."""

    connections: list[tuple[int, int | None]] = field(default_factory=list)
    """Flow entries, each with one of its connections from 0, or None for all."""
    sources: list[int] = field(default_factory=list)
    """Background sources."""
    route: list[int] | None = None
    return_route: list[int] | None = None

    def has(self, group: int) -> bool:
        """Return True if a connection of a flow entry is among them."""
        return any(moved == group for moved, _ in self.connections)


@dataclass
class Network:
    """The network of a run. Indices are those of the specification."""

    nodes: list[str] = field(default_factory=list)
    short_form: bool = False
    """True if it was a `[path]`."""
    lines: list[Line] = field(default_factory=list)
    flow_routes: list[tuple[list[int], list[int]]] = field(default_factory=list)
    """Per flow entry: lines for data, lines for ACKs."""
    background_routes: list[list[int]] = field(default_factory=list)
    moves: dict[int, Move] = field(default_factory=dict)
    """By event entry."""
    lightpaths: list[list[int]] = field(default_factory=list)
    """Per lightpath: its lines."""
    hosts: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By node that takes time for packets: the line of what it sends, that of what it receives."""

    def ways(self, group: int) -> list[tuple[list[int], list[int]]]:
        """Every pair of lines for data and lines for ACKs that a flow entry has, or may come to have by a move."""
        route, return_route = self.flow_routes[group]
        moves = [move for move in self.moves.values() if move.has(group)]
        routes = [route, *(move.route for move in moves if move.route is not None)]
        routes += [way for path in self.lightpaths if (way := self.over(route, path)) is not None]
        back = [return_route, *(move.return_route for move in moves if move.return_route is not None)]
        return [(there, home) for there in routes for home in back]

    def over(self, route: list[int], lightpath: list[int]) -> list[int] | None:
        """A route with a lightpath in place of what lies between its ends; None where it does not pass both."""
        first = [
            index for index, line in enumerate(route) if self.lines[line].source == self.lines[lightpath[0]].source
        ]
        last = [
            index for index, line in enumerate(route) if self.lines[line].target == self.lines[lightpath[-1]].target
        ]
        if not first or not last or first[0] > last[0]:
            return None
        return [*route[: first[0]], *lightpath, *route[last[0] + 1 :]]

    def through_hosts(self, route: list[int]) -> list[int]:
        """A route with the lines of the hosts at its ends."""
        first = self.hosts.get(self.lines[route[0]].source)
        last = self.hosts.get(self.lines[route[-1]].target)
        return [*([] if first is None else [first[0]]), *route, *([] if last is None else [last[1]])]

    def node(self, name: str) -> int:
        """Index of a node, which is added when it is new."""
        if name not in self.nodes:
            self.nodes.append(name)
        return self.nodes.index(name)

    def round_trip_ns(self, route: list[int], return_route: list[int]) -> int:
        """Propagation RTT of a pair of routes."""
        return sum(self.lines[index].delay_ns for index in (*route, *return_route))

    def slowest_bps(self, route: list[int]) -> int:
        """Rate of the slowest line of a route."""
        return min(self.lines[index].rate_bps for index in route)

    def longest_round_trips(self) -> dict[int, int]:
        """Per line the longest propagation RTT of the flows that cross it, or may come to, ns."""
        longest: dict[int, int] = {}
        for route, return_route in (way for group in range(len(self.flow_routes)) for way in self.ways(group)):
            rtt = self.round_trip_ns(route, return_route)
            for line in (*route, *return_route):
                longest[line] = max(longest.get(line, 0), rtt)
        return longest

    def lines_named(self, name: str) -> list[int]:
        """Indices of a link's directions, by the link's name or a direction's; empty when there is none."""
        return [index for index, line in enumerate(self.lines) if name in (line.link, line.name)]

    def line_names(self) -> list[str]:
        """All names that `lines_named` knows."""
        return list(dict.fromkeys(name for line in self.lines for name in (line.link, line.name)))


def build(document: Document) -> Network:
    """The network of a scenario. Raises `Problem` for unknown nodes and for routes that do not exist."""
    if document.path is not None:
        return _sites(document, document.path)
    return _graph(document)


def _two_lines(network: Network, link: Link | Path, name: str, ends: tuple[int, int], delays: tuple[int, int]) -> None:
    framing = link.line.framing if link.line is not None else None
    network.lines.append(
        Line(
            name=f"{name}.forward",
            link=name,
            forward=True,
            source=ends[0],
            target=ends[1],
            rate_bps=rate_bps(link),
            delay_ns=delays[0],
            mtu_bytes=link.mtu,
            queue=link.queue,
            loss=link.loss,
            jitter=link.jitter,
            policer=link.policer,
            framing=framing,
        )
    )
    if isinstance(link, Link) and not link.duplex:
        return
    back = link.reverse
    network.lines.append(
        Line(
            name=f"{name}.reverse",
            link=name,
            forward=False,
            source=ends[1],
            target=ends[0],
            rate_bps=(back and back.bandwidth) or rate_bps(link),
            delay_ns=delays[1],
            mtu_bytes=link.mtu,
            queue=(back and back.queue) or link.queue,
            loss=back.loss if back else None,
            jitter=(back and back.jitter) or link.jitter,
            policer=back.policer if back else None,
            framing=framing,
        )
    )


def _sites(document: Document, path: Path) -> Network:
    network = Network(short_form=True)
    ends = (network.node(LEFT), network.node(RIGHT))
    # An odd ns goes to the forward direction.
    _two_lines(network, path, "path", ends, (path.rtt - path.rtt // 2, path.rtt // 2))
    forward, reverse = [0], [1]
    for index, flow in enumerate(document.flow):
        there, back = forward, reverse
        if path.access is not None:
            name = document.flow_names()[index]
            near = _access(network, path, f"{name}.left", f"{name}.access-left", ends[0])
            far = _access(network, path, f"{name}.right", f"{name}.access-right", ends[1])
            there, back = [near[0], 0, far[1]], [far[0], 1, near[1]]
        network.flow_routes.append((there, back) if flow.direction == "forward" else (back, there))
    network.background_routes = [forward if b.direction == "forward" else reverse for b in document.background]
    return network


def _access(network: Network, path: Path, host: str, name: str, site: int) -> tuple[int, int]:
    """Add a host and its link; return the line to the site and the line from it."""
    rate = int(path.access * rate_bps(path)) if isinstance(path.access, Fraction) else path.access
    if rate > RATE_MAX:
        raise Problem(("path", "access"), f"at most {RATE_MAX // 10**12}Tbit/s")
    network.nodes.append(host)
    node = len(network.nodes) - 1
    first = len(network.lines)
    for direction, source, target in (("forward", node, site), ("reverse", site, node)):
        line = Line(f"{name}.{direction}", name, direction == "forward", source, target, max(1, rate), 0, path.mtu)
        network.lines.append(line)
    return first, first + 1


def _graph(document: Document) -> Network:
    network = Network(nodes=[node.name for node in document.node])
    for index, (link, name) in enumerate(zip(document.link, document.link_names(), strict=True)):
        ends = []
        for key, node in (("from", link.from_), ("to", link.to)):
            if node not in network.nodes:
                raise Problem(("link", index, key), unknown("node", node, network.nodes))
            ends.append(network.nodes.index(node))
        if ends[0] == ends[1]:
            raise Problem(("link", index, "to"), "another node than from")
        if not link.duplex and link.reverse is not None:
            raise Problem(("link", index, "reverse"), "absent, because duplex is false")
        reverse_delay = link.reverse.delay if link.reverse and link.reverse.delay is not None else link.delay
        _two_lines(network, link, name, (ends[0], ends[1]), (link.delay, reverse_delay))

    for host in document.node:
        if isinstance(host, Node) and (host.send is not None or host.receive is not None):
            _add_host(network, host)

    for index, path in enumerate(document.lightpath):
        network.lightpaths.append(_lightpath(network, path.route, ("lightpath", index, "route")))
    # Both directions of their links: a lightpath that is not set up is no route for ACKs either.
    reserved = {network.lines[line].link for path in network.lightpaths for line in path}

    @cache
    def shortest(source: int, target: int) -> list[int] | None:
        return _shortest(network, source, target, reserved)

    def route(where: Location, entry: Flow | Background, back: bool) -> list[int]:
        source, target = _ends(network, where, entry)
        explicit = getattr(entry, "return_route", None) if back else entry.route
        if back:
            source, target = target, source
        if explicit is not None:
            return _explicit(network, explicit, (*where, "return_route" if back else "route"), source, target)
        if back and entry.route is not None:
            return _explicit(network, entry.route[::-1], (*where, "route"), source, target)
        found = shortest(source, target)
        if found is None:
            ends = f'links from "{network.nodes[source]}" to "{network.nodes[target]}"; there is no route'
            raise Problem((*where, "from" if back else "to"), ends)
        return found

    through = network.through_hosts
    for index, flow in enumerate(document.flow):
        where: Location = ("flow", index)
        network.flow_routes.append((through(route(where, flow, False)), through(route(where, flow, True))))
    for index, source in enumerate(document.background):
        network.background_routes.append(through(route(("background", index), source, False)))
    for index, event in enumerate(document.event):
        if event.move is not None:
            network.moves[index] = _move(document, network, index, event)
    return network


def _add_host(network: Network, node: Node) -> None:
    """Add a node for the software of a host, and the lines between it and the host's adapter."""
    adapter = network.nodes.index(node.name)
    network.nodes.append(f"{node.name}.host")
    host, first = len(network.nodes) - 1, len(network.lines)
    ends = {"send": (host, adapter), "receive": (adapter, host)}
    for name, cost in (("send", node.send), ("receive", node.receive)):
        network.lines.append(
            Line(
                name=f"{node.name}.{name}",
                link=f"{node.name}.host",
                forward=name == "send",
                source=ends[name][0],
                target=ends[name][1],
                rate_bps=RATE_MAX if cost is None else cost.rate,
                delay_ns=0,
                mtu_bytes=MTU_MAX,
                queue=cost.queue if isinstance(cost, ReceiveCost) else None,
                framing=None if cost is None else cost.framing,
                batching=None if cost is None else cost.batching,
            )
        )
    network.hosts[adapter] = (first, first + 1)


def _move(document: Document, network: Network, index: int, event: Event) -> Move:
    """Return the flows and sources that one event entry moves; every route leads from one of their ends to the other.
    Raises `Problem`.
    """
    where: Location = ("event", index)
    move = Move()
    for name in event.move or ():
        group, connection = _moved(document, name, (*where, "move"))
        if group is None:
            source = document.background_names().index(name)
            move.sources.append(source)
            entry: Flow | Background = document.background[source]
            if event.return_route is not None:
                raise Problem((*where, "return_route"), f'absent: background source "{name}" gets no ACKs')
        else:
            move.connections.append((group, connection))
            entry = document.flow[group]
        source_node, target_node = _ends(network, where, entry)
        if event.route is not None:
            found = _explicit(network, event.route, (*where, "route"), source_node, target_node)
            move.route = network.through_hosts(found)
        if event.return_route is not None:
            back = (*where, "return_route")
            found = _explicit(network, event.return_route, back, target_node, source_node)
            move.return_route = network.through_hosts(found)
    return move


def _moved(document: Document, name: str, where: Location) -> tuple[int | None, int | None]:
    """A flow entry and one of its connections, or None for all; or neither, for a background source."""
    flows = document.flow_names()
    if name in flows and isinstance(document.flow[flows.index(name)].workload, ShortFlows):
        raise Problem(
            where, f'a flow whose workload is not "short_flows"; those of "{name}" are the manager\'s to move'
        )
    if name in flows:
        return flows.index(name), None
    entry, _, number = name.rpartition(".")
    if entry in flows and number.isdecimal() and 1 <= int(number) <= document.flow[flows.index(entry)].connections:
        return flows.index(entry), int(number) - 1
    if name in document.background_names():
        return None, None
    raise Problem(where, unknown("flow or background source", name, [*flows, *document.background_names()]))


def _ends(network: Network, where: Location, entry: Flow | Background) -> tuple[int, int]:
    ends = []
    for key, name in (("from", entry.from_), ("to", entry.to)):
        if name not in network.nodes:
            raise Problem((*where, key), unknown("node", str(name), network.nodes))
        ends.append(network.nodes.index(name))
    if ends[0] == ends[1]:
        raise Problem((*where, "to"), "another node than from")
    return ends[0], ends[1]


def _shortest(network: Network, source: int, target: int, without: set[str]) -> list[int] | None:
    """Fewest lines, then least delay, then the lines first in the file: one answer on every machine.

    Links of `without` are no part of it.
    """
    leaving: dict[int, list[int]] = {}
    for index, line in enumerate(network.lines):
        if line.link not in without:
            leaving.setdefault(line.source, []).append(index)
    heap: list[tuple[int, int, tuple[int, ...], int]] = [(0, 0, (), source)]
    done: set[int] = set()
    while heap:
        hops, delay, route, node = heapq.heappop(heap)
        if node == target:
            return list(route)
        if node in done:
            continue
        done.add(node)
        for index in leaving.get(node, []):
            line = network.lines[index]
            if line.target not in done:
                heapq.heappush(heap, (hops + 1, delay + line.delay_ns, (*route, index), line.target))
    return None


def _lightpath(network: Network, steps: list[str], where: Location) -> list[int]:
    """The lines of a lightpath."""
    ends = [step for step in steps if step in network.nodes]
    if len(ends) < 2 or ends[0] == ends[-1] or steps[0] != ends[0]:
        raise Problem(where, 'two routers at least, from the first to another one, such as ["r1", "r3"]')
    return _explicit(network, steps, where, network.nodes.index(ends[0]), network.nodes.index(ends[-1]))


def _explicit(network: Network, steps: list[str], where: Location, source: int, target: int) -> list[int]:
    """A route by node names, with a link's name between two nodes where it matters which link."""
    route: list[int] = []
    passed: set[int] = set()
    here, wanted = None, None
    for step in steps:
        if step in network.nodes:
            node = network.nodes.index(step)
            if node in passed:
                raise Problem(where, f'a route that passes each node once; it passes "{step}" twice')
            passed.add(node)
            if here is not None:
                route.append(_line_between(network, here, node, wanted, where))
            here, wanted = node, None
        elif network.lines_named(step):
            wanted = step
        else:
            raise Problem(where, unknown("node or link", step, [*network.nodes, *network.line_names()]))
    if not route or network.lines[route[0]].source != source or here != target:
        ends = f'a route from "{network.nodes[source]}" to "{network.nodes[target]}"'
        raise Problem(where, ends)
    return route


def _line_between(network: Network, here: int, there: int, wanted: str | None, where: Location) -> int:
    candidates = network.lines_named(wanted) if wanted is not None else range(len(network.lines))
    for index in candidates:
        if (network.lines[index].source, network.lines[index].target) == (here, there):
            return index
    via = f' over "{wanted}"' if wanted is not None else ""
    raise Problem(where, f'links that exist; none goes from "{network.nodes[here]}" to "{network.nodes[there]}"{via}')
