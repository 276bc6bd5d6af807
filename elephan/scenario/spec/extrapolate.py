"""Find runs of one long copy, which its steady part can stand for."""

from __future__ import annotations

from elephan.run_spec.route import header_bytes
from elephan.run_spec.types import ExtrapolateSpec, FlowSpec, WorkloadSpec
from elephan.scenario.copy import Copy, mean_sent_bytes
from elephan.scenario.document import Document
from elephan.scenario.line import Red
from elephan.scenario.spec.lines import loss_spec
from elephan.scenario.spec.network import Network
from elephan.scenario.workload import Bulk

PACKETS_MIN = 2**25
"""Packets from which a copy is long: below, some 20 s of processor time simulate all of it."""

FIRST_PACKETS = 2**20
"""Packets before the first check of the steady state."""

MOST_PACKETS = 2**26
"""Packets after which it is given up: about a minute of processor time."""

RANDOM_EPISODES, EPISODES = 30, 5
"""Loss episodes that the steady part must have: where something is drawn at random, and where each is as the last."""

ERROR_PPM = 20_000
"""Half of the 95 % interval with which one is content before `MOST_PACKETS`: 2 %."""

RANDOM_LOSS = ("independent", "gilbert_elliott", "runs", "bit_error_rate", "bit_error_bursts")
"""Loss models that draw."""

_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
_INTERVAL_PACKETS = 64
"""Packets that the line carries between two observations, at least."""


def extrapolate_spec(document: Document, network: Network, flows: list[FlowSpec]) -> ExtrapolateSpec | None:
    """Return how far a run is simulated that is one long copy on a path that does not change; else None."""
    if document.run.exact or document.measure.windows or not _is_one_copy(document) or not _stays_as_it_is(document):
        return None
    copied = _bytes(flows[0]["workload"])
    if copied is None:
        return None
    if flows[0]["transport"].get("udt") is not None:
        # The steady state was studied over TCP alone.
        return None
    packets = copied // (flows[0]["transport"]["mtu_bytes"] - header_bytes(flows[0]["transport"]))
    if packets < PACKETS_MIN:
        return None
    route = flows[0]["route"]
    used = [*route, *flows[0]["return_route"]]
    rtt_ns = sum(network.lines[index].delay_ns for index in used)
    packet_ns = flows[0]["transport"]["mtu_bytes"] * 8 * _NS_PER_S // network.slowest_bps(route)
    return {
        "from_ns": max(document.measure.warmup, *(flow["start_ns"] for flow in flows)),
        "interval_ns": max(rtt_ns, _NS_PER_MS, _INTERVAL_PACKETS * packet_ns),
        "first_packets": FIRST_PACKETS,
        "most_packets": MOST_PACKETS,
        "least_episodes": RANDOM_EPISODES if _draws(document, network, used) else EPISODES,
        "error_ppm": ERROR_PPM,
    }


def _bytes(workload: WorkloadSpec) -> int | None:
    """Return the bytes that connections carry for a copy; None for another workload."""
    if workload["kind"] == "copy":
        return mean_sent_bytes(workload) if workload["jobs"] == 1 else None
    return workload["bytes"] if workload["kind"] == "bulk" else None


def _is_one_copy(document: Document) -> bool:
    if len(document.flow) != 1 or not document.run.stop_when_done:
        return False
    (flow,) = document.flow
    if isinstance(flow.workload, Copy):
        return flow.stop is None
    shares = flow.connections == 1 or flow.distribution == "striped"
    return isinstance(flow.workload, Bulk) and flow.workload.bytes is not None and shares and flow.stop is None


def _stays_as_it_is(document: Document) -> bool:
    """Return True if nothing comes or goes at a time of the scenario's."""
    others = all(source.start == 0 and source.stop is None and source.active is None for source in document.background)
    return others and not document.event and document.manager is None


def _draws(document: Document, network: Network, used: list[int]) -> bool:
    """Return True if anything on these lines is drawn at random."""
    for line in (network.lines[index] for index in used):
        if loss_spec(line.loss)["kind"] in RANDOM_LOSS:
            return True
        if line.jitter is not None or isinstance(line.queue, Red):
            return True
    return any(source.on is not None for source in document.background)
