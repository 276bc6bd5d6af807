"""A session as the core takes it: every connection has the whole of it."""

from __future__ import annotations

from pathlib import Path

from elephan.run_spec.types import IscsiWorkloadSpec
from elephan.scenario.iscsi import FIRST_BURST, Iscsi
from elephan.scenario.problem import Location
from elephan.scenario.spec.volume import disk_spec, source_spec


def session(workload: Iscsi, base: Path, where: Location) -> IscsiWorkloadSpec:
    """Return a session's specification. Raises `Problem` for unusable files."""
    first_burst = workload.first_burst
    return {
        "kind": "iscsi",
        "initial_r2t": workload.initial_r2t,
        "immediate_data": workload.immediate_data,
        "max_burst_bytes": workload.max_burst,
        "first_burst_bytes": min(FIRST_BURST, workload.max_burst) if first_burst is None else first_burst,
        "initiator_max_recv_bytes": workload.max_recv_segment_initiator,
        "target_max_recv_bytes": workload.max_recv_segment_target,
        "max_outstanding_r2t": workload.max_outstanding_r2t,
        "header_digest": workload.header_digest,
        "data_digest": workload.data_digest,
        "command_window": workload.command_window,
        "queue_depth": workload.queue_depth,
        "allegiance": workload.allegiance,
        "disk": disk_spec(workload, base, (*where, "disk")),
        "source": source_spec(workload.source, base, (*where, "source")),
    }
