"""A copy from Python: `copy` blocks until it is done, `dry_run` says what it would do.

    from elephan.copy.api import CopyRequest, Place, copy

    outcome = copy(CopyRequest([Place.parse("/data")], Place.parse("nyc:/backup")))
    assert outcome.exit_code == 0, outcome.faults
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from elephan.copy.request import CopyRequest, Place

Watch = Callable[[dict[str, Any]], None]
"""Takes what happens, in order, on the caller's thread. `event` is "attempt" {number, streams, ...}, "listening",
"connected", "scanned", "progress", "fault", "retry" (as crates/copy/src/event.rs), "lost" {text, wait_s} (another
attempt follows), "advice" {...}, "decision" {now_s, streams?, rate_bps?, reason}, "note" {text} or "done" {receipt}.
"""

WaitForTermination = Callable[[float | None], bool]
"""Wait for signals that end a program, at most so many seconds (elephan.signals); True once one came."""


@dataclass
class CopyOutcome:
    """End of a copy."""

    receipt: dict[str, Any]
    """See docs/howto/copy.md. `root`, `entries`, `files`, `bytes`, `seconds`, `goodput_bps`, `attempts`, ..."""
    exit_code: int
    """0: all is there; 1: some entries are not, see `faults`."""
    attempts: int
    """Attempts that it took."""
    faults: list[dict[str, Any]] = field(default_factory=list)
    """Entries that are not copied: {`path`, `kind`, `reason`}; the first 10,000."""


def copy(
    request: CopyRequest, watch: Watch | None = None, wait_for_termination: WaitForTermination | None = None
) -> CopyOutcome:
    """Copy, with as many attempts as `request.patience_s` allows; return when all that can be there is.

    What is durable at the destination stays whatever happens, and the same request goes on from there.

    Raises `InputError` for a wrong request, `RunError` when the last attempt has failed, `native.Stopped` once
    `wait_for_termination` has returned True.
    """
    raise NotImplementedError


def dry_run(request: CopyRequest) -> dict[str, Any]:
    """Return what `copy` would do, without data sent: `sources`, `destination`, `copy`, `files`, `bytes`, `settings`,
    `notes`, and `forecast` where one can be made. Raises `InputError` and `RunError`.
    """
    raise NotImplementedError


__all__ = ["CopyOutcome", "CopyRequest", "Place", "Watch", "copy", "dry_run"]
