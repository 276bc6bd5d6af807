"""Files that a run's workloads read, sent to the host that sends: it keeps them in memory for the session."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from elephan import user_files
from elephan.errors import InputError
from elephan.hosts.agent import Agent
from elephan.run_spec.types import RunSpec

CHUNK_BYTES = 4 * 2**20
"""Bytes of one request: twice as many as hexadecimal digits, within a frame's 16 MiB."""

_held: WeakKeyDictionary[Agent, dict[tuple[str, int, int], str]] = WeakKeyDictionary()
"""By agent: path there of each file that it holds, by path here, time of change and size."""


def sent(agent: Agent, spec: RunSpec) -> RunSpec:
    """Return a specification whose traces have the paths that they have at the agent, which they are sent to.

    Raises `InputError` for a file that cannot be read, and what the agent raises.
    """
    found = copy.deepcopy(spec)
    for flow in found["flows"]:
        workload = flow["workload"]
        if workload["kind"] == "replicate" and "trace" in workload:
            workload["trace"]["path"] = _put(agent, Path(workload["trace"]["path"]))
    return found


def _put(agent: Agent, path: Path) -> str:
    try:
        status = path.stat()
        key = (str(path), status.st_mtime_ns, status.st_size)
        there = _held.setdefault(agent, {})
        if key not in there:
            answer: dict[str, Any] = {}
            with open(user_files.open_regular(path), "rb") as file:
                # At least once, so that an empty file is one there, too.
                chunk = file.read(CHUNK_BYTES)
                while chunk or not answer:
                    number = {"file": answer["file"]} if answer else {}
                    answer = agent.ask("put", timeout_s=120.0, data=chunk.hex(), **number)
                    chunk = file.read(CHUNK_BYTES)
            there[key] = answer["path"]
        return there[key]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
