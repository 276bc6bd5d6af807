"""A copy from Python: `copy` blocks until it is done, `dry_run` says what it would do.

    from elephan.copy.api import CopyRequest, Place, copy

    outcome = copy(CopyRequest([Place.parse("/data")], Place.parse("nyc:/backup")))
    assert outcome.exit_code == 0, outcome.faults
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from elephan.copy import control, receipt, state
from elephan.copy.attempt import Attempt
from elephan.copy.faults import AGAIN, CopyFailed
from elephan.copy.name import name_of
from elephan.copy.request import CopyRequest, Place
from elephan.copy.sides import Side, Sides, end_paths, host_of, opened
from elephan.core import native
from elephan.errors import ElephanError

Watch = Callable[[dict[str, Any]], None]
"""Takes what happens, in order, on the caller's thread. `event` is "attempt" {number, streams, control, by},
"connected", "scanned", "progress", "fault", "retry" (crates/copy/src/event.rs), "lost" {text, wait_s} (another attempt
follows), "advice", "decision" {now_s, streams, rate_bps, reason}, "note" {text} or "done" {receipt, file}.
"""

WaitForTermination = Callable[[float | None], bool]
"""Wait for signals that end a program, at most so many seconds (elephan.signals); True once one came."""

STREAMS = 4
"""Data streams where neither the user nor the advice says otherwise: the harm that `--harm` takes by default."""

BACKOFF_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Times between two attempts; the last one repeats."""

BUSY_S = 10.0
"""Time for the ends of a front that was killed to end, s: their sessions close with it."""


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
    file: str = ""
    """File of the receipt."""


def copy(
    request: CopyRequest, watch: Watch | None = None, wait_for_termination: WaitForTermination | None = None
) -> CopyOutcome:
    """Copy, with as many attempts as `request.patience_s` allows; return when all that can be there is.

    What is durable at the destination stays whatever happens, and the same request goes on from there.

    Raises `InputError` for a wrong request, `RunError` when the last attempt has failed, `native.Stopped` once
    `wait_for_termination` has returned True.
    """
    return _Copy(request, watch or (lambda _event: None), wait_for_termination or _never).run()


def _never(seconds: float | None) -> bool:
    time.sleep(seconds or 0)
    return False


def _listeners(request: CopyRequest, sides: Sides, last: str | None) -> list[Side]:
    """Return the sides that may listen, the best first; `last` is the role of the one that did before."""
    remote = [side for side in (sides.destination, sides.source) if side.agent is not None]
    local = [side for side in (sides.destination, sides.source) if side.agent is None]
    if request.over_ssh:
        return remote[:1]
    by_choice = {"auto": [*remote, *local], "remote": remote, "local": local}[request.listen]
    if request.is_local:
        by_choice = local[:1]
    return sorted(by_choice, key=lambda side: side.role != last) if last is not None else by_choice


class _Copy:
    """One call of `copy`."""

    def __init__(self, request: CopyRequest, watch: Watch, wait: WaitForTermination) -> None:
        request.check()
        control.check(request)
        for name in (request.source_host, request.destination.host):
            if name is not None:
                host_of(name)
        self.request = request
        self.wait = wait
        self.watch = watch
        self.name = name_of(request)
        self.attempts: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.decisions: list[dict[str, Any]] = []
        self.listener: str | None = None
        """Role of the side that was reached before."""
        self.has_connected = False
        self.durable_bytes = -1
        self.durable_s = time.monotonic()
        """Time at which `durable_bytes` grew."""
        self.waited_s = 0.0

    def run(self) -> CopyOutcome:
        """Make attempts until one is done. Raises as `copy` does."""
        began_s = self.durable_s = time.monotonic()
        file = state.unfinished() / f"{self.name}.json"
        about = {
            "copy": self.name,
            "sources": [str(place) for place in self.request.sources],
            "destination": str(self.request.destination),
            # Where `forget` finds what is left.
            "ends": [
                [self.request.source_host, None],
                [self.request.destination.host, end_paths(self.request)["destination"][0]],
            ],
            "began": receipt.now(),
        }
        with suppress(ElephanError):
            about["began"] = state.read(file)["began"]
        state.write(file, about)
        failed = 0
        while True:
            try:
                outcome = self._attempt(began_s)
            except CopyFailed as fault:
                wait_s = BACKOFF_S[min(failed, len(BACKOFF_S) - 1)]
                failed += 1
                if not self._may_try_again(fault, began_s, wait_s):
                    raise fault.as_final() from None
                self._tell({"event": "lost", "text": str(fault), "wait_s": wait_s, "attempt": len(self.attempts)})
                self.waited_s += wait_s
                if self.wait(wait_s):
                    raise native.Stopped("stopped") from None
            else:
                with suppress(OSError):
                    file.unlink()
                return outcome

    def _may_try_again(self, fault: CopyFailed, began_s: float, wait_s: float) -> bool:
        if fault.kind not in AGAIN:
            return False
        if fault.kind == "busy" and not self.has_connected:
            return time.monotonic() - began_s + wait_s < BUSY_S
        return self.has_connected and time.monotonic() - self.durable_s + wait_s < self.request.patience_s

    def _attempt(self, began_s: float) -> CopyOutcome:
        entry = {"began": receipt.now(), "seconds": 0.0, "sent_bytes": 0, "ended_by": "done"}
        self.attempts.append(entry)
        entry_began_s = time.monotonic()
        sent = {"bytes": 0}

        def tell(event: dict[str, Any]) -> None:
            if event["event"] == "progress":
                sent["bytes"] = event["sent_bytes"]
                if event["durable_bytes"] > self.durable_bytes:
                    self.durable_bytes, self.durable_s = event["durable_bytes"], time.monotonic()
            self._tell(event)

        try:
            with ExitStack() as stack:
                sides = stack.enter_context(opened(self.request))
                chosen = stack.enter_context(control.chosen(self.request, sides.source, secrets.token_hex(2)))
                for note in chosen.notes:
                    self._note(note)
                streams = self.request.streams or STREAMS
                attempt = Attempt(
                    self.request, sides, self.name, chosen.transport, streams, self.request.rate_bps, tell, self.wait
                )
                self._tell(
                    {
                        "event": "attempt",
                        "number": len(self.attempts),
                        "copy": self.name,
                        "streams": streams,
                        "transport": self.request.transport,
                        "control": chosen.control,
                        "by": chosen.by,
                    }
                )
                try:
                    self.listener = attempt.run(_listeners(self.request, sides, self.listener)).role
                finally:
                    self.has_connected |= attempt.has_connected
                entry["sent_bytes"] = attempt.reports["send"]["sent_bytes"]
                entry["seconds"] = time.monotonic() - entry_began_s
                used = {"streams": streams, "transport": chosen.transport, "control": chosen.control, "by": chosen.by}
                return self._done(attempt, used, began_s)
        except BaseException as fault:
            entry["seconds"] = time.monotonic() - entry_began_s
            entry["sent_bytes"] = sent["bytes"]
            entry["ended_by"] = str(fault)
            raise

    def _done(self, attempt: Attempt, used: dict[str, Any], began_s: float) -> CopyOutcome:
        hosts = {}
        for name, side in (("source", attempt.sides.source), ("destination", attempt.sides.destination)):
            try:
                hosts[name] = side.about()
            except ElephanError:
                # The copy is done; a session that has ended just now does not undo it.
                hosts[name] = {"name": side.name}
        # The source of a user's own control is in its file, not here.
        used["transport"] = {key: value for key, value in used["transport"].items() if key != "source"}
        whole = receipt.made(
            self.request,
            self.name,
            attempt.reports,
            self.attempts,
            path=attempt.path,
            used=used,
            decisions=self.decisions,
            advice=None,
            hosts=hosts,
            seconds=time.monotonic() - began_s,
            waited_s=self.waited_s,
            notes=self.notes,
        )
        file = receipt.keep(whole, self.request.receipt)
        if self.request.sign is not None:
            receipt.sign(file, self.request.sign)
        self._tell({"event": "done", "receipt": whole, "file": str(file)})
        exit_code = 1 if whole["faults"] or whole["faults_more"] else 0
        return CopyOutcome(whole, exit_code, len(self.attempts), whole["faults"], str(file))

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
            self._tell({"event": "note", "text": text})

    def _tell(self, event: dict[str, Any]) -> None:
        self.watch(event)


def dry_run(request: CopyRequest) -> dict[str, Any]:
    """Return what `copy` would do, without data sent: `sources`, `destination`, `copy`, `files`, `bytes`, `settings`,
    `notes`, and `forecast` where one can be made. Raises `InputError` and `RunError`.
    """
    raise NotImplementedError


__all__ = ["CopyOutcome", "CopyRequest", "Place", "Watch", "copy", "dry_run"]
