"""The ports of a fabric, as its name server shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from elephan.fc.end import End, WaitForTermination, as_run_error, opened


@dataclass(frozen=True)
class Port:
    """A port; what the name server does not tell is None."""

    id: str
    port: str | None
    node: str | None
    roles: tuple[str, ...]
    """Parts in SCSI that it registered: "target", "initiator"."""
    is_own: bool
    """It is the one that asks."""


def ports(end: End, wait_for_termination: WaitForTermination, say: Callable[[str], None]) -> list[Port]:
    """Log in, and return the fabric's ports in order of addresses. Raises `RunError`, `native.Stopped`."""
    with opened(end, wait_for_termination, say) as port, as_run_error():
        own = port.id()
        return [Port(id_, name, node, tuple(roles), id_ == own) for id_, name, node, roles in port.ports(end.within_ns)]
