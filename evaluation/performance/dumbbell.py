"""A dumbbell as data, and as the specification that elephan's core takes.

Sources on the left, destinations on the right, one bottleneck between two routers; every flow has access links of its
own, four times as fast as the bottleneck and with a tenth of the one-way delay each. The scripts under peers/ build the
same network in ns-2 and ns-3. This module writes the form of the crate spec directly, so that the bench and the
fidelity tables depend on the core alone and not on the scenario front.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from elephan.run_spec import defaults

PACKET_BYTES = 1500
"""An IP packet with a full segment."""
PAYLOAD_BYTES = 1448
"""Payload of a packet, beside 20 bytes of IP, 20 of TCP and 12 of timestamps."""
LARGEST_WINDOW_BYTES = 65_535 << 14
"""RFC 7323, section 2.3."""
ACCESS_FACTOR = 4
"""Rate of the access links over the bottleneck's."""
NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Dumbbell:
    """One dumbbell with greedy flows. Times in ns, rates in bit/s of IP packets."""

    rate_bps: int
    rtt_ns: int
    duration_ns: int
    flows: int = 1
    congestion_control: str = "cubic"
    parameters: dict[str, int] = field(default_factory=dict)
    loss_e12: int = 0
    """Independent loss of data packets at the bottleneck, 10^-12 per packet."""
    loss_every: int | None = None
    """Loss of every n-th data packet instead."""
    queue_packets: int | None = None
    """Bottleneck queue; none: one bandwidth-delay product."""
    window_bytes: int = LARGEST_WINDOW_BYTES
    stagger_ns: int = 0
    """Time between the starts of two flows."""
    seed: int = 1
    warmup_ns: int = 0
    series_ns: int | None = None
    jitter_ns: int = 0
    """Most that a packet is late on its access link, at random, data and ACKs alike; none overtakes another."""
    transport: dict[str, Any] = field(default_factory=dict)
    """Deviations from `TRANSPORT`."""
    session: dict[str, Any] | None = None
    """Each flow carries an iSCSI session, of which these are the deviations from `SESSION`; none: bulk data."""

    @property
    def product_packets(self) -> int:
        """Bandwidth-delay product, packets."""
        return self.rate_bps * self.rtt_ns // (8 * NS_PER_S * PACKET_BYTES)

    @property
    def limit_packets(self) -> int:
        """Bottleneck queue, packets."""
        return self.product_packets if self.queue_packets is None else self.queue_packets


TRANSPORT: dict[str, Any] = {
    **defaults.TRANSPORT,
    "mtu_bytes": PACKET_BYTES,
    "sack_compression": False,
    "tso_autosizing": False,
}
"""An endpoint's defaults, which are Linux's; but an ACK for each segment that is out of order, and each segment alone,
as ns-2 and ns-3 have it."""

SESSION: dict[str, Any] = {
    "kind": "iscsi",
    "queue_depth": 32,
    "initial_r2t": True,
    "immediate_data": True,
    "max_burst_bytes": 256 << 10,
    "first_burst_bytes": 64 << 10,
    "initiator_max_recv_bytes": 8 << 10,
    "target_max_recv_bytes": 8 << 10,
    "max_outstanding_r2t": 1,
    "header_digest": False,
    "data_digest": False,
    "command_window": 128,
    "allegiance": "round_robin",
    "disk": {
        "model": "cheetah-9lp",
        "drive": None,
        "scheduler": None,
        "count": 8,
        "stripe_bytes": 64 << 10,
        "size_bytes": 1 << 40,
    },
    "source": {
        "kind": "mix",
        "reads_e6": 500_000,
        "request_bytes": 64 << 10,
        "random": True,
        "think_ns": 0,
        "requests": None,
        "span_bytes": None,
    },
}
"""A session's defaults (RFC 7143), and those of a volume in a scenario, on as many drives as the iSCSI paper's."""

DEEP_QUEUE = {"kind": "drop_tail", "limit_bytes": None, "limit_packets": 10_000_000}
"""Queue of every link but the bottleneck: it never drops."""


def run_spec(bell: Dumbbell) -> dict[str, Any]:
    """Return the core's specification of a dumbbell (the crate spec)."""
    access_ns = bell.rtt_ns // 20
    middle_ns = bell.rtt_ns // 2 - 2 * access_ns
    nodes = ["left", "right"]
    bottleneck_queue = {"kind": "drop_tail", "limit_bytes": None, "limit_packets": bell.limit_packets}
    loss: dict[str, Any] = {"kind": "none"}
    if bell.loss_every is not None:
        loss = {"kind": "every_nth", "n": bell.loss_every}
    elif bell.loss_e12:
        loss = {"kind": "independent", "probability_e12": bell.loss_e12}
    links = [
        link("left->right", 0, 1, bell.rate_bps, middle_ns, bottleneck_queue, loss),
        # Sessions read as well: their data goes both ways.
        link("right->left", 1, 0, bell.rate_bps, middle_ns, bottleneck_queue if bell.session is not None else None),
    ]
    access_bps = ACCESS_FACTOR * bell.rate_bps
    flows = []
    for index in range(bell.flows):
        source, destination = len(nodes), len(nodes) + 1
        nodes += [f"source{index}", f"destination{index}"]
        first = len(links)
        near = link(f"source{index}->left", source, 0, access_bps, access_ns)
        back = link(f"destination{index}->right", destination, 1, access_bps, access_ns)
        if bell.jitter_ns:
            near["jitter"] = back["jitter"] = uniform_jitter(bell.jitter_ns)
        links += [
            near,
            link(f"right->destination{index}", 1, destination, access_bps, access_ns),
            back,
            link(f"left->source{index}", 0, source, access_bps, access_ns),
        ]
        transport = (
            TRANSPORT | {"congestion_control": bell.congestion_control, "parameters": bell.parameters} | bell.transport
        )
        transport["window_bytes"] = bell.window_bytes
        made = flow(index, source, first, transport, index * bell.stagger_ns)
        if bell.session is not None:
            made["workload"] = SESSION | bell.session
        flows.append(made)
    return {
        "seed": bell.seed,
        "duration_ns": bell.duration_ns,
        "stop_when_done": False,
        "nodes": nodes,
        "links": links,
        "flows": flows,
    } | rest(bell.series_ns, bell.warmup_ns)


def flow(
    index: int, source: int, first: int, transport: dict[str, Any], start_ns: int, sends_bytes: int | None = None
) -> dict[str, Any]:
    """Return a bulk flow from node `source` to the next.

    Its own links, from `first` on: source to bottleneck, bottleneck to destination, and the same two in reverse. Links
    0 and 1 are the bottleneck, forward and reverse.
    """
    return {
        "name": f"flow{index}",
        "group": index,
        "source": source,
        "destination": source + 1,
        "route": [first, 0, first + 1],
        "return_route": [first + 2, 1, first + 3],
        "transport": transport,
        "start_ns": start_ns,
        "stop_ns": None,
        "workload": {"kind": "bulk", "bytes": sends_bytes},
    }


def rest(series_ns: int | None, warmup_ns: int) -> dict[str, Any]:
    """Return the keys of a specification that are the same for all dumbbells: measurements, and empty tables."""
    return {
        "format": defaults.FORMAT,
        "background": [],
        "events": [],
        "measure": {
            "series_interval_ns": series_ns,
            "warmup_ns": warmup_ns,
            "pcap": None,
            "pcap_node": 2,
            "pcap_packets": None,
        },
    }


def uniform_jitter(most_ns: int) -> dict[str, Any]:
    """Return a random delay from 0 to `most_ns` that keeps packets in order."""
    return {"distribution": "uniform", "scale_ns": most_ns, "reordering": False}


def link(
    name: str,
    start: int,
    end: int,
    rate_bps: int,
    delay_ns: int,
    queue: dict[str, Any] | None = None,
    loss: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return one direction of a link."""
    return {
        "name": name,
        "from": start,
        "to": end,
        "rate_bps": rate_bps,
        "delay_ns": delay_ns,
        "queue": queue or DEEP_QUEUE,
        "loss": loss or {"kind": "none"},
        "jitter": None,
    }
