"""An unfinished copy given up: its parts and journals removed at both ends."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from elephan.copy import state
from elephan.copy.sides import host_of
from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.hosts.agent import connected

FORGET_S = 120.0
"""Time for an agent to remove parts, s."""


def forgotten(name: str) -> dict[str, Any]:
    """Remove what an unfinished copy has left, by the beginning of its name; return `copy` and `bytes`.

    Raises `InputError` for a name of none or of several, `RunError` for a host that cannot be asked.
    """
    known = [(path, about) for path, about in state.all_of(state.unfinished()) if path.stem.startswith(name)]
    if not name or len(known) != 1:
        names = ", ".join(path.stem[:12] for path, _ in state.all_of(state.unfinished())) or "none"
        fault = "no unfinished copy" if not known else "more than one unfinished copy"
        raise InputError(f"{name}: {fault} has a name that begins so; there is {names}")
    path, about = known[0]
    removed = 0
    for host, destination in about["ends"]:
        removed += _here(about["copy"], destination) if host is None else _there(host, about["copy"], destination)
    with suppress(OSError):
        path.unlink()
    return {"copy": about["copy"], "bytes": removed}


def _here(copy: str, destination: str | None) -> int:
    try:
        return native.copy_forget(copy, destination)
    except native.CopyFault as fault:
        raise RunError(f"this machine: {fault.text}") from fault


def _there(host: str, copy: str, destination: str | None) -> int:
    with connected(host_of(host), as_user=True) as agent:
        done = agent.ask("forget", FORGET_S, copy=copy, destination=destination)
    return int(done["bytes"])


