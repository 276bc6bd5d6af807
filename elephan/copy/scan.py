"""Sources of a copy, counted by their metadata alone, and the removals of a mirror, listed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from elephan.copy.asked import Wait, asked, here, there
from elephan.core import native
from elephan.hosts.agent import Agent


def scanned(host: str | None, spec: Mapping[str, Any], wait: Wait) -> dict[str, Any]:
    """Return what a `ScanSpec` counts (crates/copy-net, `Scanned`).

    Raises `InputError`, `RunError` and `native.Stopped`.
    """
    if host is not None:
        return there(host, "scan", spec, wait)
    return scanned_by(None, spec, wait)


def scanned_by(agent: Agent | None, spec: Mapping[str, Any], wait: Wait) -> dict[str, Any]:
    """See `scanned`; by an agent that is there already, or here."""
    if agent is not None:
        return asked(agent, "scan", spec, wait)
    # It reads no data, and ends with this process.
    return here(lambda: native.copy_scan(json.dumps(spec)), lambda: None, wait)


def removals(host: str | None, spec: Mapping[str, Any], wait: Wait) -> dict[str, Any]:
    """Check a destination as a copy does; return `count`, `paths`, `limit` and `notes` of a `RemovalsSpec`
    (crates/copy-net). Raises as `scanned`.
    """
    if host is not None:
        return there(host, "removals", spec, wait)
    return here(lambda: native.copy_removals(json.dumps(spec)), lambda: None, wait)
