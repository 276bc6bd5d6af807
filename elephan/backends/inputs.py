"""Files that a run reads: traces and a user's own congestion control, held by digest in the record."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from elephan import user_files
from elephan.errors import InputError
from elephan.record import InputFile
from elephan.run_spec.types import RunSpec


def paths_of(spec: RunSpec) -> Iterator[tuple[str, bool]]:
    """Yield each input's path, and whether its text is small enough and needed enough to be kept."""
    for flow in spec["flows"]:
        congestion = flow["transport"]["congestion_control"]
        if congestion.endswith(".c"):
            yield congestion, True
        workload = flow["workload"]
        if workload["kind"] == "replicate" and "trace" in workload:
            yield workload["trace"]["path"], False
        if workload["kind"] == "iscsi" or workload["kind"] == "fcp":
            if workload["source"]["kind"] == "trace":
                yield workload["source"]["trace"]["path"], False
            model = workload["disk"]["model"]
            if model is not None and Path(model).is_absolute():
                yield model, False


def read_inputs(spec: RunSpec) -> list[InputFile]:
    """Return the run's inputs, each once, in order of their first use. Raises `InputError`."""
    return [read_input(path, keep) for path, keep in dict.fromkeys(paths_of(spec))]


def read_input(path: str, keep: bool) -> InputFile:
    """Return one input, with its text where that is to be kept. Raises `InputError`."""
    return _read(path, keep, _stamp(path))


def _stamp(path: str) -> tuple[int, int]:
    """Return what changes with the file, so that a sweep of a thousand points reads its trace once."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=64)
def _read(path: str, keep: bool, _: tuple[int, int]) -> InputFile:
    try:
        if not keep:
            digest, size = user_files.sha256_of(path)
            return InputFile(path=path, sha256=digest, bytes=size, text=None)
        content = user_files.read_bytes(path, user_files.SOURCE)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    text = content.decode(errors="replace")
    return InputFile(path=path, sha256=hashlib.sha256(content).hexdigest(), bytes=len(content), text=text)
