"""From a validated scenario to the specification of one run, whose form and defaults the crate spec defines.

**Invariant: complete and in integers; no default is left to the core.**
"""

from __future__ import annotations

from pathlib import Path

from elephan.run_spec.defaults import FORMAT
from elephan.run_spec.types import EmulatorSpec, FlowSpec, RunSpec, WindowSpec
from elephan.scenario.document import Document
from elephan.scenario.problem import Problem, unknown
from elephan.scenario.spec.changes import background_specs, event_specs, first_specs
from elephan.scenario.spec.extrapolate import extrapolate_spec
from elephan.scenario.spec.flows import crowd_specs, flow_specs
from elephan.scenario.spec.gateways import gateway_specs
from elephan.scenario.spec.hybrid import manager_spec
from elephan.scenario.spec.lines import jitter_spec, loss_spec, policer_specs, queue_specs
from elephan.scenario.spec.network import MTU_MAX, Network, build


def specify(
    document: Document, base: Path, seed: int, pcap: Path | None = None, *, runs_programs: bool = False
) -> RunSpec:
    """The specification of one run. `base` is the folder that paths in the scenario start from. Raises `Problem`.

    Without `runs_programs` each stream of a program is a connection of its own, which is how a simulator plays it.
    """
    network = build(document)
    queues = queue_specs(network)
    flows = flow_specs(document, network, queues, base, runs_programs=runs_programs)
    spec: RunSpec = {
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
                "loss": loss_spec(line.loss),
                "jitter": jitter_spec(line.jitter),
            }
            for line, queue in zip(network.lines, queues, strict=True)
        ],
        "flows": flows,
        "background": background_specs(document, network),
        "events": event_specs(document, network, flows),
        "measure": {
            "series_interval_ns": document.measure.series,
            "warmup_ns": document.measure.warmup,
            "pcap": None if pcap is None else str(pcap.resolve()),
            "pcap_node": _pcap_node(document, network, flows),
            "pcap_packets": document.measure.pcap_packets,
        },
    }
    # Left out where there is nothing to say: specifications without them stay as they were, ids and all.
    for link, policer in zip(spec["links"], policer_specs(network), strict=True):
        if policer is not None:
            link["policer"] = policer
    lines_with_mtu = [line for line in network.lines if line.mtu_bytes < MTU_MAX]
    differ = len({line.mtu_bytes for line in lines_with_mtu}) > 1
    for link, line in zip(spec["links"], network.lines, strict=True):
        if differ and line.mtu_bytes < MTU_MAX:
            link["mtu_bytes"] = line.mtu_bytes
        if line.framing is not None:
            link["framing"] = line.framing
        if line.batching is not None:
            link["batching"] = line.batching
    windows = _windows(document, network, flows)
    if windows:
        spec["measure"]["windows"] = windows
    emulator = _emulator(document)
    if emulator is not None:
        spec["emulator"] = emulator
    gateways = gateway_specs(document, network)
    if gateways:
        spec["gateways"] = gateways
    short_flows = crowd_specs(document, network, queues, base)
    if short_flows:
        spec["short_flows"] = short_flows
    manager = manager_spec(document, network, flows)
    if manager is not None:
        spec["manager"] = manager
    extrapolate = extrapolate_spec(document, network, flows)
    if extrapolate is not None:
        spec["extrapolate"] = extrapolate
    if not flows and not document.run.exact:
        spec["closed_form"] = True
    return spec


def _windows(document: Document, network: Network, flows: list[FlowSpec]) -> list[WindowSpec]:
    found: list[WindowSpec] = []
    for window in document.measure.windows:
        spec: WindowSpec = {"name": window.name, "from_ns": window.from_, "to_ns": window.to}
        if window.event is not None:
            spec["event"] = first_specs(document, network, flows)[window.event]
        found.append(spec)
    return found


def _emulator(document: Document) -> EmulatorSpec | None:
    """Return the emulator if it is not elephan's."""
    return "netem" if document.path is not None and document.path.emulator == "netem" else None


def _pcap_node(document: Document, network: Network, flows: list[FlowSpec]) -> int:
    name = document.measure.pcap_node
    if name is None:
        return flows[0]["source"] if flows else 0
    if name not in network.nodes:
        raise Problem(("measure", "pcap_node"), unknown("node", name, network.nodes))
    return network.nodes.index(name)
