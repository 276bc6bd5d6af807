"""A session as the core takes it: every connection has the whole of it."""

from __future__ import annotations

from pathlib import Path

from elephan.errors import InputError
from elephan.run_spec.types import DiskSpec, IscsiWorkloadSpec, SourceSpec
from elephan.scenario.iscsi import FIRST_BURST, Iscsi, Mix, Postmark, TraceSource
from elephan.scenario.problem import Location, Problem
from elephan.scenario.spec.trace import check_trace


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
        "disk": _disk(workload, base, (*where, "disk")),
        "source": _source(workload.source, base, (*where, "source")),
    }


def _disk(workload: Iscsi, base: Path, where: Location) -> DiskSpec:
    from elephan import disks

    model, drive = None, None
    if workload.disk != "none":
        model, drive = _model(workload.disk, base)
        try:
            disks.describe(model if drive is None else f"{model}:{drive}")
        except InputError as error:
            expected = f'"none", one of {", ".join(disks.names())}, or a .parv or .diskspecs file of DiskSim'
            raise Problem(where, f"{expected}; {error}") from None
    return {
        "model": model,
        "drive": drive,
        "scheduler": workload.scheduler,
        "count": workload.disks,
        "stripe_bytes": workload.stripe,
        "size_bytes": workload.size,
    }


def _model(text: str, base: Path) -> tuple[str, str | None]:
    """A built-in disk's name, or a file's absolute path; and which drive of the file."""
    from elephan import disks

    if text in disks.names():
        return text, None
    path, drive = base / text, None
    if not path.exists() and ":" in text:
        file, _, drive = text.rpartition(":")
        path = base / file
    return str(path.resolve()), drive


def _source(source: Mix | TraceSource | Postmark, base: Path, where: Location) -> SourceSpec:
    if isinstance(source, Mix):
        return {
            "kind": "mix",
            "reads_e6": source.reads,
            "request_bytes": source.size,
            "random": source.order == "random",
            "think_ns": source.think,
            "requests": source.requests,
            "span_bytes": source.span,
        }
    if isinstance(source, Postmark):
        return {
            "kind": "postmark",
            "files": source.files,
            "smallest_bytes": source.smallest,
            "largest_bytes": source.largest,
            "transactions": source.transactions,
        }
    path, form = check_trace(base / source.trace, source.format, source.loop, (*where, "trace"), reads=True)
    return {
        "kind": "trace",
        "trace": {
            "path": str(path),
            "format": form,
            "time_scale_e6": max(1, round(source.time_scale * 10**6)),
            "looped": source.loop,
            "header_bytes": 0,
        },
        "timed": source.pace == "timed",
        "device": source.device,
        "out_of_range": source.out_of_range,
    }
