"""From a validated scenario to the specification of one run, as crates/lab/src/spec.rs reads it.

**Invariant: complete and in integers; no default is left to the core.**
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elephan.scenario import line as lines
from elephan.scenario import stack as stacks
from elephan.scenario.document import Document
from elephan.scenario.flow import WINDOW_FIELD_MAX, WINDOW_MAX, Flow
from elephan.scenario.network import ACCESS_QUEUE_BYTES, Network, build
from elephan.scenario.problem import Problem, unknown
from elephan.scenario.quantity import Limit, Share
from elephan.scenario.run import Event
from elephan.scenario.trace import check_trace
from elephan.scenario.workload import Bulk, Offered, Replicate

FORMAT = 1
_NS_PER_S = 1_000_000_000


def specify(document: Document, base: Path, seed: int, pcap: Path | None = None) -> dict[str, Any]:
    """The specification of one run. `base` is the folder that paths in the scenario start from. Raises `Problem`."""
    network = build(document)
    queues = [_queue(network, index, network.longest_round_trips()) for index in range(len(network.lines))]
    flows = _flows(document, network, queues, base)
    return {
        "format": FORMAT,
        "seed": seed,
        "duration_ns": document.run.duration,
        "stop_when_done": document.run.stop_when_done,
        "nodes": network.nodes,
        "links": [
            {
                "name": line.name,
                "from": line.source,
                "to": line.target,
                "rate_bps": line.rate_bps,
                "delay_ns": line.delay_ns,
                "queue": queue,
                "loss": _loss(line.loss),
                "jitter": _jitter(line.jitter),
            }
            for line, queue in zip(network.lines, queues, strict=True)
        ],
        "flows": flows,
        "background": _background(document, network),
        "events": [
            {"when": when, "action": action}
            for index, event in enumerate(document.event)
            for when in [_when(document, flows, index, event)]
            for action in _actions(document, network, index, event)
        ],
        "measure": {
            "series_interval_ns": document.measure.series,
            "warmup_ns": document.measure.warmup,
            "pcap": None if pcap is None else str(pcap.resolve()),
            "pcap_node": _pcap_node(document, network, flows),
            "pcap_packets": document.measure.pcap_packets,
        },
    }


# Lines


def _bytes(limit: Limit, network: Network, index: int, rtt_ns: int) -> int:
    """A queue limit in bytes; packets count as MTU-sized, and one packet always fits."""
    line = network.lines[index]
    if limit.unit == "packets":
        return int(limit.amount) * line.mtu_bytes
    if limit.unit == "bytes":
        return int(limit.amount)
    return max(line.mtu_bytes, int(limit.amount * line.rate_bps * rtt_ns / (8 * _NS_PER_S)))


def _queue(network: Network, index: int, longest: dict[int, int]) -> dict[str, Any]:
    line = network.lines[index]
    queue = line.queue
    if queue is None:
        return {"kind": "drop_tail", "limit_bytes": ACCESS_QUEUE_BYTES, "limit_packets": None}
    own = sum(network.lines[i].delay_ns for i in network.lines_named(line.link))
    limit = _bytes(queue.limit, network, index, longest.get(index, own))
    if limit < line.mtu_bytes:
        where = _line_location(network, index, "queue")
        raise Problem(where, f"room for at least one packet of the MTU ({line.mtu_bytes}B)")
    packets = int(queue.limit.amount) if queue.limit.unit == "packets" else -(-limit // line.mtu_bytes)
    match queue:
        case lines.DropTail():
            if queue.limit.unit == "packets":
                return {"kind": "drop_tail", "limit_bytes": None, "limit_packets": packets}
            return {"kind": "drop_tail", "limit_bytes": limit, "limit_packets": None}
        case lines.Red():
            largest = queue.max if queue.max is not None else max(1, limit // 4)
            least = queue.min if queue.min is not None else max(1, largest // 3)
            if not least < largest <= limit:
                where = _line_location(network, index, "queue")
                raise Problem(where, f"min < max <= limit; here they are {least}B, {largest}B and {limit}B")
            return {
                "kind": "red",
                "limit_bytes": limit,
                "min_bytes": least,
                "max_bytes": largest,
                "max_probability_ppm": round(queue.max_probability / 10**6),
                "weight_shift": queue.weight_shift,
                "ecn": queue.ecn,
            }
        case lines.Codel():
            return {
                "kind": "codel",
                "limit_packets": packets,
                "target_ns": queue.target,
                "interval_ns": queue.interval,
                "ecn": queue.ecn,
            }
        case lines.FqCodel():
            return {
                "kind": "fq_codel",
                "limit_packets": packets,
                "flows": queue.flows,
                "quantum_bytes": queue.quantum,
                "target_ns": queue.target,
                "interval_ns": queue.interval,
                "ecn": queue.ecn,
            }
    raise AssertionError(f"a queue discipline without a case: {queue!r}")


def _line_location(network: Network, index: int, key: str) -> tuple[str | int, ...]:
    line = network.lines[index]
    if line.link == "path":
        return ("path", key)
    links = list(dict.fromkeys(other.link for other in network.lines))
    return ("link", links.index(line.link), key)


def _loss(loss: Any) -> dict[str, Any]:
    match loss:
        case None:
            return {"kind": "none"}
        case lines.IndependentLoss():
            if loss.probability == 0:
                return {"kind": "none"}
            return {"kind": "independent", "probability_e12": loss.probability}
        case lines.GilbertElliottLoss():
            return {
                "kind": "gilbert_elliott",
                "good_to_bad_e12": loss.good_to_bad,
                "bad_to_good_e12": loss.bad_to_good,
                "loss_good_e12": loss.loss_good,
                "loss_bad_e12": loss.loss_bad,
            }
        case lines.PeriodicLoss():
            return {"kind": "every_nth", "n": loss.every}
        case lines.BitErrorLoss():
            return {"kind": "bit_error_rate", "probability_e18": loss.bit_error_rate}
        case lines.ListedLoss():
            return {"kind": "list", "packets": loss.packets}
    raise AssertionError(f"a loss model without a case: {loss!r}")


def _jitter(jitter: lines.Jitter | None) -> dict[str, Any] | None:
    if jitter is None:
        return None
    return {"distribution": jitter.distribution, "scale_ns": jitter.scale, "reordering": jitter.reordering}


# Flows


def _flows(document: Document, network: Network, queues: list[dict[str, Any]], base: Path) -> list[dict[str, Any]]:
    specs = []
    fastest, longest = _extremes(document, network)
    for group, (flow, name) in enumerate(zip(document.flow, document.flow_names(), strict=True)):
        route, return_route = network.flow_routes[group]
        mtu_of_route = min(network.lines[index].mtu_bytes for index in (*route, *return_route))
        if flow.mtu is not None and flow.mtu > mtu_of_route:
            raise Problem(("flow", group, "mtu"), f"at most {mtu_of_route}B, the smallest MTU on the route")
        queue_bytes = sum(_queue_bytes(network, queues, index) for index in route)
        rtt_ns = sum(longest[index] for index in (*route, *return_route))
        in_flight = 2 * min(fastest[index] for index in route) * rtt_ns // (8 * _NS_PER_S) + queue_bytes
        stack = _stack(flow, base, group, _window(flow, in_flight), flow.mtu or mtu_of_route)
        workload = _workload(flow, base, group, network.slowest_bps(route))
        for connection in range(flow.connections):
            start = flow.start + connection * flow.stagger
            stop = flow.stop
            if isinstance(flow.workload, Bulk) and flow.workload.duration is not None:
                stop = start + flow.workload.duration
            specs.append(
                {
                    "name": name if flow.connections == 1 else f"{name}.{connection + 1}",
                    "group": group,
                    "source": network.lines[route[0]].source,
                    "destination": network.lines[route[-1]].target,
                    "route": route,
                    "return_route": return_route,
                    "stack": stack,
                    "start_ns": start,
                    "stop_ns": stop,
                    "workload": workload,
                }
            )
    return specs


def _queue_bytes(network: Network, queues: list[dict[str, Any]], index: int) -> int:
    if network.lines[index].queue is None:
        return 0
    queue = queues[index]
    packets = queue.get("limit_packets")
    return int(queue["limit_bytes"]) if packets is None else int(packets) * network.lines[index].mtu_bytes


def _extremes(document: Document, network: Network) -> tuple[list[int], list[int]]:
    """Per line the highest rate and the longest delay it ever has: a window found for these is never the limit."""
    fastest = [line.rate_bps for line in network.lines]
    longest = [line.delay_ns for line in network.lines]
    for index, event in enumerate(document.event):
        for action in _actions(document, network, index, event):
            if action["kind"] == "rate":
                fastest[action["link"]] = max(fastest[action["link"]], action["rate_bps"])
            elif action["kind"] == "delay":
                longest[action["link"]] = max(longest[action["link"]], action["delay_ns"])
    return fastest, longest


def _window(flow: Flow, in_flight: int) -> int:
    """The receive window in bytes, "auto" resolved."""
    if not flow.window_scaling:
        return min(flow.window or WINDOW_FIELD_MAX, WINDOW_FIELD_MAX)
    if flow.window is not None:
        return flow.window
    largest = WINDOW_MAX if flow.window_scale is None else WINDOW_FIELD_MAX << flow.window_scale
    return min(max(in_flight, WINDOW_FIELD_MAX), largest)


def _stack(flow: Flow, base: Path, group: int, window: int, mtu: int) -> dict[str, Any]:
    congestion, parameters = stacks.resolve(flow.stack, base, ("flow", group, "stack"))
    return {
        "congestion": congestion,
        "parameters": parameters,
        "recovery": flow.recovery,
        "initial_cwnd": flow.initial_cwnd,
        "initial_ssthresh": flow.initial_ssthresh,
        "window_bytes": window,
        "window_scaling": flow.window_scaling,
        "window_scale": flow.window_scale,
        "receive_autotuning": flow.receive_autotuning,
        "send_buffer_bytes": flow.send_buffer,
        "mtu_bytes": mtu,
        "timestamps": flow.timestamps,
        "delayed_ack": flow.delayed_ack,
        "quickack_segments": flow.quickack_segments,
        "ecn": flow.ecn,
        "pacing": flow.pacing,
        "slow_start_after_idle": flow.slow_start_after_idle,
        "rto_min_ns": flow.rto_min,
        "rto_max_ns": flow.rto_max,
        "reordering": flow.reordering,
        "limited_transmit": flow.limited_transmit,
        "frto": flow.frto,
        "fast_retransmit": flow.fast_retransmit,
        "cwnd_clamp": flow.cwnd_clamp,
    }


def _workload(flow: Flow, base: Path, group: int, slowest_bps: int) -> dict[str, Any]:
    workload = flow.workload
    match workload:
        case Bulk():
            return {"kind": "bulk", "bytes": workload.bytes}
        case Offered():
            return {
                "kind": "offered",
                "frame_bytes": workload.frame,
                "rate_bps": _rate(workload.load, slowest_bps),
                "credits": workload.credits,
            }
        case Replicate():
            where = ("flow", group, "workload", "trace")
            return {
                "kind": "replicate",
                "trace": {
                    "path": str(check_trace(base / workload.trace, workload.format, where)),
                    "format": workload.format,
                    "slowdown_e6": max(1, round(workload.slowdown * 10**6)),
                    "looped": workload.loop,
                    "header_bytes": workload.header,
                },
            }
    raise AssertionError(f"a workload without a case: {workload!r}")


def _rate(load: Share | int, line_bps: int) -> int:
    return load.resolve(line_bps) if isinstance(load, Share) else load


# What else happens


def _background(document: Document, network: Network) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "route": route,
            "rate_bps": _rate(source.rate, network.slowest_bps(route)),
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


def _when(document: Document, flows: list[dict[str, Any]], index: int, event: Event) -> dict[str, Any]:
    if event.when is None:
        return {"kind": "at", "time_ns": event.at}
    names = [flow["name"] for flow in flows]
    if event.when.flow not in names:
        where = ("event", index, "when", "flow")
        if event.when.flow in document.flow_names():
            raise Problem(where, f'one of its connections, such as "{event.when.flow}.1"')
        raise Problem(where, unknown("flow", event.when.flow, names))
    return {
        "kind": "flow_reaches",
        "flow": names.index(event.when.flow),
        "rate_bps": event.when.reaches,
        "window_ns": event.when.over,
    }


def _actions(document: Document, network: Network, index: int, event: Event) -> list[dict[str, Any]]:
    where = ("event", index)
    actions: list[dict[str, Any]] = []

    def changed(forward_only: bool = False) -> list[int]:
        names = event.link
        if names is None:
            links = document.link_names() if document.path is None else ["path"]
            if len(links) > 1:
                raise Problem((*where, "link"), "missing; which link is to change?")
            names = links
        return _lines_of(network, names, (*where, "link"), forward_only)

    if event.bandwidth is not None:
        actions += [{"kind": "rate", "link": link, "rate_bps": event.bandwidth} for link in changed()]
    if event.rtt is not None:
        forward, reverse = _lines_of(network, ["path"], (*where, "rtt"), False)
        actions.append({"kind": "delay", "link": forward, "delay_ns": event.rtt - event.rtt // 2})
        actions.append({"kind": "delay", "link": reverse, "delay_ns": event.rtt // 2})
    if event.delay is not None:
        actions += [{"kind": "delay", "link": link, "delay_ns": event.delay} for link in changed()]
    if event.loss is not None:
        actions += [{"kind": "loss", "link": link, "loss": _loss(event.loss)} for link in changed(forward_only=True)]
    for key in ("link_down", "link_up"):
        names = getattr(event, key)
        if names is not None:
            actions += [{"kind": key, "link": link} for link in _lines_of(network, names, (*where, key), False)]
    for key in ("background_on", "background_off"):
        for name in getattr(event, key) or ():
            if name not in document.background_names():
                raise Problem((*where, key), unknown("background source", name, document.background_names()))
            actions.append({"kind": key, "source": document.background_names().index(name)})
    return actions


def _lines_of(network: Network, names: list[str], where: tuple[str | int, ...], forward_only: bool) -> list[int]:
    found: list[int] = []
    for name in names:
        indices = network.lines_named(name)
        if not indices:
            raise Problem(where, unknown("link", name, network.line_names()))
        found += [i for i in indices if not forward_only or network.lines[i].forward or name == network.lines[i].name]
    return found


def _pcap_node(document: Document, network: Network, flows: list[dict[str, Any]]) -> int:
    name = document.measure.pcap_node
    if name is None:
        return int(flows[0]["source"])
    if name not in network.nodes:
        raise Problem(("measure", "pcap_node"), unknown("node", name, network.nodes))
    return network.nodes.index(name)
