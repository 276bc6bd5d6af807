"""Reasons that a copy ended early, by what helps: another attempt, another way to connect, or the user."""

from __future__ import annotations

from elephan.errors import ElephanError, InputError, RunError

LOST = "lost"
"""Kind of a fault of the SSH session itself, beside the kinds of the agent's errors."""

STATE = "state"
"""Kind of a fault of the files that the user who typed the copy keeps: receipts, signatures, unfinished copies."""

AGAIN = frozenset({"peer", "port", "busy", LOST})
"""Kinds after which another attempt may help."""

FOLLOWS = ("peer", "stopped", LOST)
"""Kinds that may only follow from the other end's fault."""


class CopyFailed(RunError):
    """One attempt has ended early. `kind` is that of the agent's errors (docs/design/agent.md), `LOST` or `STATE`."""

    def __init__(self, kind: str, text: str) -> None:
        """Take the text as it is."""
        super().__init__(text)
        self.kind = kind

    def as_final(self) -> ElephanError:
        """Return the error for the user once there is no further attempt."""
        if self.kind in ("input", "rights"):
            return InputError(str(self))
        return RunError(str(self))


def telling(faults: list[CopyFailed]) -> CopyFailed:
    """Return the fault that tells most of those of both ends: one end's loss of the other follows from the other's own.
    """
    return next((fault for fault in faults if fault.kind not in FOLLOWS), faults[0])
