"""Requests and the disk behind a target, as the core takes them."""

from __future__ import annotations

from pathlib import Path

from elephan.errors import InputError
from elephan.run_spec.types import DiskSpec, SourceSpec
from elephan.scenario.problem import Location, Problem
from elephan.scenario.spec.trace import trace_spec
from elephan.scenario.volume import Mix, Postmark, TraceSource, Volume


def disk_spec(workload: Volume, base: Path, where: Location) -> DiskSpec:
    """Return the disk behind a target. Raises `Problem` for an unusable file."""
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


def source_spec(source: Mix | TraceSource | Postmark, base: Path, where: Location) -> SourceSpec:
    """Return a source of requests. Raises `Problem` for an unusable file."""
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
    return {
        "kind": "trace",
        "trace": trace_spec(base / source.trace, source, where, reads=True),
        "timed": source.pace == "timed",
        "device": source.device,
        "out_of_range": source.out_of_range,
    }
