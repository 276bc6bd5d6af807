"""Flows of a scenario as the core takes them: one entry per connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

from elephan.run_spec.route import IPV6_MTU_LEAST
from elephan.run_spec.types import (
    ActiveSpec,
    BulkSpec,
    FlowSpec,
    QueueSpec,
    ShortFlowsSpec,
    SizesSpec,
    TransportSpec,
    WorkloadSpec,
)
from elephan.scenario import receive_buffers
from elephan.scenario.active import DAY_NS, Hours, active_spec
from elephan.scenario.copy import Copy, copy_spec
from elephan.scenario.document import Document
from elephan.scenario.fcp import Fcp
from elephan.scenario.flow import WINDOW_FIELD_MAX, WINDOW_MAX, WINDOW_MAX_UNBOUND, Flow
from elephan.scenario.gateway import Fc
from elephan.scenario.iscsi import Iscsi
from elephan.scenario.problem import Problem
from elephan.scenario.program import Program, program_spec, streams_of
from elephan.scenario.quantity import U64_MAX, bits_per_second
from elephan.scenario.spec import transport as congestion_controls
from elephan.scenario.spec.changes import actions
from elephan.scenario.spec.fcp import volumes_spec
from elephan.scenario.spec.gateways import pairs_spec
from elephan.scenario.spec.iscsi import session
from elephan.scenario.spec.lines import loss_spec
from elephan.scenario.spec.network import Network
from elephan.scenario.spec.trace import trace_spec
from elephan.scenario.workload import Bulk, ConstantRate, Replicate, ShortFlows
from elephan.scenario.writes import arrivals_spec, sizes_spec

_NS_PER_S = 1_000_000_000
_SYN_NS = 10_000_000
"""UDT's timer of acknowledgments."""


def flow_specs(
    document: Document, network: Network, queues: list[QueueSpec], base: Path, *, runs_programs: bool = False
) -> list[FlowSpec]:
    """One entry per connection. `queues` are specified ones, `base` is where relative paths start. Raises `Problem`.

    Where programs run, each is one entry, whatever the number of its streams.
    """
    specs: list[FlowSpec] = []
    fastest, longest = _extremes(document, network)
    for group, (flow, name) in enumerate(zip(document.flow, document.flow_names(), strict=True)):
        if isinstance(flow.workload, ShortFlows):
            continue
        route, return_route = network.flow_routes[group]
        transport = _transport_on(document, network, queues, (fastest, longest), flow, group, base)
        workload = _workload(document, flow, base, group, network.slowest_bps(route))
        streams = 1 if runs_programs or workload["kind"] != "program" else streams_of(workload)
        jobs, every = (flow.workload.jobs, flow.workload.every or 0) if isinstance(flow.workload, Copy) else (1, 0)
        connections = flow.connections * streams * jobs
        shared = is_shared(flow) or (streams > 1 and is_bounded(flow.workload)) or isinstance(flow.workload, Copy)
        for connection in range(connections):
            job, stream = divmod(connection, connections // jobs)
            start = min(flow.start + job * every + stream * flow.stagger, U64_MAX)
            stop = flow.stop
            if isinstance(flow.workload, Bulk | Program) and flow.workload.duration is not None:
                stop = min(start + flow.workload.duration, U64_MAX)
            spec: FlowSpec = {
                "name": name if connections == 1 else f"{name}.{connection + 1}",
                "group": group,
                "source": network.lines[route[0]].source,
                "destination": network.lines[route[-1]].target,
                "route": route,
                "return_route": return_route,
                "transport": transport,
                "start_ns": start,
                "stop_ns": stop,
                "workload": (
                    _part(workload, connection, flow.connections)
                    if shared and streams == 1
                    else _begun_later(workload, flow, start - flow.start)
                ),
            }
            if shared:
                # Left out where it changes nothing, so that a point keeps its id.
                spec["distribution"] = "striped"
            specs.append(spec)
    return specs


def is_shared(flow: Flow) -> bool:
    """Return True if several connections of a flow share a workload that would be another one if each had it."""
    return flow.connections > 1 and flow.distribution == "striped" and is_bounded(flow.workload)


def is_bounded(workload: Any) -> bool:
    """Return True if a workload is a rate or an amount, which grows when each of several connections carries it."""
    match workload:
        case ConstantRate() | Replicate() | Copy():
            return True
        case Bulk() | Program():
            return workload.bytes is not None
        case _:
            return False


def _part(workload: WorkloadSpec, connection: int, connections: int) -> WorkloadSpec:
    """Return the workload of one connection: programs share nothing while they run, so each has a file of its own."""
    if workload["kind"] != "program":
        return workload
    assert workload["bytes"] is not None, "an amount is shared"
    share, rest = divmod(workload["bytes"], connections)
    return {**workload, "bytes": share + (connection < rest)}


def crowd_specs(document: Document, network: Network, queues: list[QueueSpec], base: Path) -> list[ShortFlowsSpec]:
    """One entry per flow entry of short flows. Raises `Problem`."""
    specs: list[ShortFlowsSpec] = []
    extremes = _extremes(document, network)
    for group, (flow, name) in enumerate(zip(document.flow, document.flow_names(), strict=True)):
        workload = flow.workload
        if not isinstance(workload, ShortFlows):
            continue
        route, return_route = network.flow_routes[group]
        specs.append(
            {
                "name": name,
                "source": network.lines[route[0]].source,
                "destination": network.lines[route[-1]].target,
                "route": route,
                "return_route": return_route,
                "transport": _transport_on(document, network, queues, extremes, flow, group, base),
                "arrivals_per_ks": max(1, round(workload.arrivals * 1000)),
                "sizes": _sizes(workload),
                "start_ns": flow.start,
                "stop_ns": flow.stop,
                **_active(document, workload, flow),
            }
        )
    return specs


def _sizes(workload: ShortFlows) -> SizesSpec:
    if workload.median is not None:
        return {
            "kind": "lognormal",
            "median_bytes": workload.median,
            "sigma_e3": max(1, round(workload.sigma * 1000)),
        }
    return {
        "kind": "pareto",
        "pareto_shape_e3": max(1, round(workload.pareto_shape * 1000)),
        "min_bytes": workload.min,
        "max_bytes": workload.max,
    }


def _transport_on(
    document: Document,
    network: Network,
    queues: list[QueueSpec],
    extremes: tuple[list[int], list[int]],
    flow: Flow,
    group: int,
    base: Path,
) -> TransportSpec:
    """The congestion control of a flow entry, with the settings that its routes decide."""
    ways = network.ways(group)
    mtu_of_route = min(network.lines[index].mtu_bytes for there, back in ways for index in (*there, *back))
    if flow.mtu is not None and flow.mtu > mtu_of_route:
        raise Problem(("flow", group, "mtu"), f"at most {mtu_of_route}B, the smallest MTU on the route")
    in_flight = max(_in_flight(network, queues, there, back, *extremes) for there, back in ways)
    if flow.carried_by == "tcp" and _loses(document, network, {index for way in ways for index in way[0]}):
        # Behind a hole the receiver holds what arrives in a round trip, the queues' delay included, and as much again
        # for each copy that is lost too: room for two.
        largest = max(_in_flight(network, queues, there, back, *extremes, queues_once=False) for there, back in ways)
        in_flight = max(in_flight, 2 * largest)
    if flow.carried_by != "tcp":
        # Acknowledgments wait for a timer: twice what arrives meanwhile is on its way beside the rest.
        fastest_bps = max(min(extremes[0][index] for index in there) for there, _ in ways)
        in_flight += 2 * fastest_bps * _SYN_NS // (8 * _NS_PER_S)
    mtu = flow.mtu or mtu_of_route
    if flow.ip_version == 6 and mtu < IPV6_MTU_LEAST:
        if flow.mtu is not None:
            raise Problem(("flow", group, "mtu"), f"at least {IPV6_MTU_LEAST}B, the least of IPv6 (RFC 8200, 5)")
        raise Problem(("flow", group, "ip_version"), f"4: the route's MTU is {mtu}B, and IPv6 needs {IPV6_MTU_LEAST}B")
    return _transport(flow, base, group, _window(flow, in_flight), mtu)


def _in_flight(
    network: Network,
    queues: list[QueueSpec],
    route: list[int],
    return_route: list[int],
    fastest: list[int],
    longest: list[int],
    *,
    queues_once: bool = True,
) -> int:
    """Bytes that fill a path twice over, and its queues once or twice."""
    rtt_ns = sum(longest[index] for index in (*route, *return_route))
    queue_bytes = sum(_queue_bytes(network, queues, index) for index in route)
    return 2 * min(fastest[index] for index in route) * rtt_ns // (8 * _NS_PER_S) + queue_bytes * (2 - queues_once)


def _queue_bytes(network: Network, queues: list[QueueSpec], index: int) -> int:
    if network.lines[index].queue is None:
        return 0
    queue = queues[index]
    if queue["kind"] == "red":
        return queue["limit_bytes"]
    packets = queue["limit_packets"]
    if packets is not None:
        return packets * network.lines[index].mtu_bytes
    assert queue["kind"] == "drop_tail" and queue["limit_bytes"] is not None, "a queue has a limit"
    return queue["limit_bytes"]


def _loses(document: Document, network: Network, route: set[int]) -> bool:
    """Return whether a line of the route ever loses packets beside those that its queue drops."""
    losing = {index for index in route if loss_spec(network.lines[index].loss)["kind"] != "none"}
    for index, event in enumerate(document.event):
        for action in actions(document, network, index, event):
            if action["kind"] == "loss" and action["loss"]["kind"] != "none":
                losing.add(action["link"])
    return bool(losing & route)


def _extremes(document: Document, network: Network) -> tuple[list[int], list[int]]:
    """Per line the highest rate and the longest delay it ever has: a window found for these suits all of the run."""
    fastest = [line.rate_bps for line in network.lines]
    longest = [line.delay_ns for line in network.lines]
    for index, event in enumerate(document.event):
        for action in actions(document, network, index, event):
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
    bound = WINDOW_MAX if flow.window_bound == "rfc7323" else WINDOW_MAX_UNBOUND
    if flow.receive_autotuning:
        bound = min(bound, receive_buffers.largest_window(flow.receive_buffers))
    largest = bound if flow.window_scale is None else WINDOW_FIELD_MAX << flow.window_scale
    return min(max(in_flight, WINDOW_FIELD_MAX), largest)


def _transport(flow: Flow, base: Path, group: int, window: int, mtu: int) -> TransportSpec:
    congestion, parameters = congestion_controls.resolve(
        flow.congestion_control, base, ("flow", group, "congestion_control")
    )
    spec: TransportSpec = {
        "congestion_control": congestion,
        "parameters": parameters,
        "recovery": flow.recovery,
        "initial_cwnd": flow.initial_cwnd,
        "initial_ssthresh": flow.initial_ssthresh,
        "window_bytes": window,
        "window_bound": flow.window_bound == "rfc7323",
        "window_scaling": flow.window_scaling,
        "window_scale": flow.window_scale,
        "receive_autotuning": flow.receive_autotuning,
        "send_buffer_bytes": flow.send_buffer,
        "mtu_bytes": mtu,
        "timestamps": flow.timestamps,
        "delayed_ack": flow.delayed_ack,
        "sack_compression": flow.sack_compression,
        "quickack_segments": flow.quickack_segments,
        "ecn": flow.ecn,
        "pacing": flow.pacing,
        "tso_autosizing": flow.tso_autosizing,
        "slow_start_after_idle": flow.slow_start_after_idle,
        "rto_min_ns": flow.rto_min,
        "rto_max_ns": flow.rto_max,
        "reordering": flow.reordering,
        "max_reordering": max(flow.max_reordering, flow.reordering),
        "undo": flow.undo,
        "limited_transmit": flow.limited_transmit,
        "frto": flow.frto,
        "fast_retransmit": flow.fast_retransmit,
        "cwnd_clamp": flow.cwnd_clamp,
    }
    if flow.lost_retransmissions != "era":
        spec["lost_retransmissions"] = flow.lost_retransmissions
    if flow.receive_buffers != receive_buffers.NEWEST:
        spec["receive_buffers"] = flow.receive_buffers
    if not flow.cwnd_validation:
        spec["cwnd_validation"] = False
    if flow.count != "segments":
        spec["count"] = flow.count
    if flow.nagle:
        spec["nagle"] = True
    if flow.ip_version == 6:
        spec["ipv6"] = True
    if flow.max_pacing_rate is not None:
        spec["max_pacing_bps"] = flow.max_pacing_rate
    if flow.send_overhead is not None:
        overhead = flow.send_overhead
        spec["send_overhead"] = {"distribution": overhead.distribution, "scale_ns": overhead.scale}
    if flow.carried_by != "tcp":
        spec["udt"] = {"version": flow.carried_by}
    return spec


class _ActiveKey(TypedDict, total=False):
    """The key of a source with periods."""

    active: ActiveSpec


def _active(document: Document, workload: ConstantRate | Replicate | ShortFlows, flow: Flow) -> _ActiveKey:
    """Return the periods of a workload; nothing for one that is always active."""
    if workload.active is None:
        return {}
    return {"active": active_spec(workload.active, flow.start, document.run.time_of_day)}


def _begun_later(workload: WorkloadSpec, flow: Flow, later_ns: int) -> WorkloadSpec:
    """Return the workload of a connection that starts so much after its flow: hours of the day are the same for all."""
    if later_ns == 0 or not isinstance(getattr(flow.workload, "active", None), Hours):
        return workload

    def shifted(active: ActiveSpec) -> ActiveSpec:
        return {**active, "phase_ns": (active["phase_ns"] + later_ns) % DAY_NS}

    if workload["kind"] == "constant_rate":
        return {**workload, "active": shifted(workload["active"])}
    assert workload["kind"] == "replicate", "the others have no periods"
    return {**workload, "writes": {**workload["writes"], "active": shifted(workload["writes"]["active"])}}


def _workload(document: Document, flow: Flow, base: Path, group: int, slowest_bps: int) -> WorkloadSpec:
    workload = flow.workload
    match workload:
        case Bulk():
            bulk: BulkSpec = {"kind": "bulk", "bytes": workload.bytes}
            if workload.buffer is not None:
                bulk["buffer_bytes"] = workload.buffer
            return bulk
        case Program():
            return program_spec(workload)
        case Copy():
            return copy_spec(workload)
        case ConstantRate():
            return {
                "kind": "constant_rate",
                "frame_bytes": workload.frame,
                "rate_bps": bits_per_second(workload.load, slowest_bps),
                "credits": workload.credits,
                **_active(document, workload, flow),
            }
        case Replicate(rate=rate) if rate is not None:
            return {
                "kind": "replicate",
                "writes": {
                    "rate_bps": bits_per_second(rate, slowest_bps),
                    "sizes": sizes_spec(workload.size),
                    "arrivals": arrivals_spec(workload.arrivals),
                    "header_bytes": workload.header,
                    **_active(document, workload, flow),
                },
            }
        case Replicate():
            assert workload.trace is not None
            where = ("flow", group, "workload")
            return {
                "kind": "replicate",
                "trace": trace_spec(base / workload.trace, workload, where, header_bytes=workload.header),
            }
        case Fc():
            return pairs_spec(document, workload, group)
        case Fcp():
            return volumes_spec(document, workload, base, group)
        case Iscsi():
            return session(workload, base, ("flow", group, "workload"))
    raise AssertionError(f"a workload without a case: {workload!r}")
