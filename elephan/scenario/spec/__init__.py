"""From a validated scenario to the specification of one run, as crates/experiment/src/spec.rs reads it.

**Invariant: complete and in integers; no default is left to the core.**
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elephan.scenario.document import Document
from elephan.scenario.problem import Problem, unknown
from elephan.scenario.spec.changes import background_specs, event_specs
from elephan.scenario.spec.extrapolate import extrapolate_spec
from elephan.scenario.spec.flows import crowd_specs, flow_specs
from elephan.scenario.spec.hybrid import manager_spec
from elephan.scenario.spec.lines import jitter_spec, loss_spec, queue_specs
from elephan.scenario.spec.network import Network, build

#: Form of the specification; see `RunSpec::format`.
FORMAT = 2


def specify(document: Document, base: Path, seed: int, pcap: Path | None = None) -> dict[str, Any]:
    """The specification of one run. `base` is the folder that paths in the scenario start from. Raises `Problem`."""
    network = build(document)
    queues = queue_specs(network)
    flows = flow_specs(document, network, queues, base)
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
                "loss": loss_spec(line.loss),
                "jitter": jitter_spec(line.jitter),
            }
            for line, queue in zip(network.lines, queues, strict=True)
        ],
        **_emulator(document),
        "flows": flows,
        **_hybrid(document, network, flows, crowd_specs(document, network, queues, base)),
        **extrapolate_spec(document, network, flows),
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


def _emulator(document: Document) -> dict[str, Any]:
    """Return the emulator if it is not elephan's: specifications without it stay as they were, ids and all."""
    named = "elephan" if document.path is None else document.path.emulator
    return {} if named == "elephan" else {"emulator": named}


def _hybrid(
    document: Document, network: Network, flows: list[dict[str, Any]], crowds: list[dict[str, Any]]
) -> dict[str, Any]:
    """Short flows and the manager, where there are any: specifications without them stay as they were, ids and all."""
    manager = manager_spec(document, network, flows)
    return ({"short_flows": crowds} if crowds else {}) | ({"manager": manager} if manager else {})


def _pcap_node(document: Document, network: Network, flows: list[dict[str, Any]]) -> int:
    name = document.measure.pcap_node
    if name is None:
        return int(flows[0]["source"])
    if name not in network.nodes:
        raise Problem(("measure", "pcap_node"), unknown("node", name, network.nodes))
    return network.nodes.index(name)
