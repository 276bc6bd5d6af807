"""Gateways, and the pairs of N_Ports behind them, as the core takes them."""

from __future__ import annotations

from fractions import Fraction

from elephan.run_spec.types import FcWorkloadSpec, GatewaySpec
from elephan.scenario.document import Document
from elephan.scenario.fcp import Fcp
from elephan.scenario.gateway import Fc, Gateway
from elephan.scenario.problem import Problem
from elephan.scenario.quantity import Share
from elephan.scenario.spec.network import Network
from elephan.scenario.writes import FixedSize, arrivals_spec, sizes_spec

_LINE_BYTES = 24 + 4 + 8 + 24
"""Of a frame beside its payload on the line: header, CRC, delimiters, least gap (FC-FS-2)."""


def gateway_specs(document: Document, network: Network) -> list[GatewaySpec]:
    """Return the nodes that are gateways."""
    return [
        {
            "node": network.nodes.index(node.name),
            "rate_bps": node.rate,
            "delay_ns": node.distance,
            "credits": node.credits,
            "buffer_bytes": node.buffer,
        }
        for node in document.node
        if isinstance(node, Gateway)
    ]


def ends_of(document: Document, workload: Fc | Fcp, group: int) -> tuple[Gateway, Gateway]:
    """Return the gateways at a flow entry's ends. Raises `Problem` for an end that is none."""
    flow = document.flow[group]
    gateways = {node.name: node for node in document.node if isinstance(node, Gateway)}
    for key, name in (("from", flow.from_), ("to", flow.to)):
        if name not in gateways:
            expected = f'a node of kind "gateway", because workload.kind is "{workload.kind}"'
            raise Problem(("flow", group, key), expected)
    return gateways[str(flow.from_)], gateways[str(flow.to)]


def pairs_spec(document: Document, workload: Fc, group: int) -> FcWorkloadSpec:
    """Return the pairs of a flow entry. Raises `Problem` for an end that is no gateway."""
    near, _ = ends_of(document, workload, group)
    flow = document.flow[group]
    return {
        "kind": "fc",
        "protocol": workload.protocol,
        "pairs": flow.connections if workload.pairs is None else workload.pairs,
        "load": {
            "rate_bps": _payload_bps(workload, near.rate),
            "sizes": sizes_spec(workload.frame),
            "arrivals": arrivals_spec(workload.arrivals),
            "queue_frames": workload.queue,
        },
    }


def _payload_bps(workload: Fc, port_bps: int) -> int:
    """Return the rate of the frames' payload."""
    if not isinstance(workload.load, Share):
        return workload.load
    weights = {workload.frame.bytes: 1} if isinstance(workload.frame, FixedSize) else workload.frame.mix
    payload = sum(size * weight for size, weight in weights.items())
    # Payload is padded to words.
    line = sum((-(-size // 4) * 4 + _LINE_BYTES) * weight for size, weight in weights.items())
    return max(1, int(workload.load.of_line * port_bps * Fraction(payload, line)))
