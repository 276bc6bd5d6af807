"""Initiators and targets behind gateways as the core takes them."""

from __future__ import annotations

from pathlib import Path

from elephan.run_spec.types import FcpWorkloadSpec
from elephan.scenario.document import Document
from elephan.scenario.fcp import Fcp
from elephan.scenario.spec.gateways import ends_of
from elephan.scenario.spec.volume import disk_spec, source_spec


def volumes_spec(document: Document, workload: Fcp, base: Path, group: int) -> FcpWorkloadSpec:
    """Return the pairs of a flow entry. Raises `Problem` for an end that is no gateway, or an unusable file."""
    ends_of(document, workload, group)
    where = ("flow", group, "workload")
    return {
        "kind": "fcp",
        "protocol": workload.protocol,
        "pairs": document.flow[group].connections if workload.pairs is None else workload.pairs,
        "frame_bytes": workload.frame,
        "max_burst_bytes": workload.max_burst,
        "queue_depth": workload.queue_depth,
        "write_acceleration": workload.write_acceleration,
        "disk": disk_spec(workload, base, (*where, "disk")),
        "source": source_spec(workload.source, base, (*where, "source")),
    }
