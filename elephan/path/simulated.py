"""Parts of a network that only the simulator has."""

from __future__ import annotations

from elephan.errors import InputError
from elephan.run_spec.types import RunSpec


def require_none(spec: RunSpec) -> None:
    """Raise `InputError` for a part that an emulated path cannot have."""
    for link in spec["links"]:
        if "batching" in link:
            node, _, key = link["name"].rpartition(".")
            raise InputError(
                f"node {node}: {key}: tso, gro and coalesce are the simulator's alone: this kernel cuts and joins "
                "packets itself; leave them out, or --on sim"
            )
