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
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any

from elephan import units
from elephan.copy import control, receipt, state
from elephan.copy.attempt import Attempt
from elephan.copy.faults import AGAIN, LOST, STATE, CopyFailed
from elephan.copy.name import name_of
from elephan.copy.request import CopyRequest, Place
from elephan.copy.scan import removals, scanned
from elephan.copy.sides import Side, Sides, end_paths, host_of, opened
from elephan.core import native
from elephan.errors import ElephanError, InputError, RunError
from elephan.hosts.agent import AgentError
from elephan.units import pluralize

if TYPE_CHECKING:
    from elephan.copy.auto import Advised

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


def _check(request: CopyRequest) -> None:
    """Raise `InputError` for what can be seen to be wrong before any connection."""
    request.check()
    control.check(request)
    for name in (request.source_host, request.destination.host):
        if name is not None:
            host_of(name)
    end_paths(request)
    if request.sign is not None:
        receipt.check_key(request.sign)


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


class _EnoughToSend(Exception):
    """There is enough to send to measure the path for."""

    def __init__(self, wanted_bytes: int) -> None:
        super().__init__(f"{wanted_bytes} bytes to send")
        self.wanted_bytes = wanted_bytes


@dataclass
class _Comparison:
    """Bytes that a copy has to send, seen while its ends compare and send the first of them."""

    bytes_min: int
    """Bytes left to send from which on the path is measured."""
    compare_s: float
    """Time after which the rate of the first bytes counts, s."""
    advice_s: float
    """Time of an advice: a rest that takes less at the rate so far is sent without."""
    sent_bytes: int = 0
    short_rest: str | None = None
    """The rest that took less, in words, where one did."""
    _is_over: bool = False

    def look(self, event: dict[str, Any], _steered: object) -> None:
        """Take an event `progress` of the sender. Raises `_EnoughToSend`, once."""
        now_s, self.sent_bytes = event["now_s"], event["sent_bytes"]
        left = event["wanted_bytes"] - self.sent_bytes
        if self._is_over or left < self.bytes_min or now_s < self.compare_s:
            return
        if self.sent_bytes and (takes_s := left * now_s / self.sent_bytes) < self.advice_s:
            rate = units.rate(8 * self.sent_bytes / now_s)
            self.short_rest = f"{units.size(left)} took {units.duration(takes_s)} at {rate}"
            return
        self._is_over = True
        raise _EnoughToSend(left)


class _Copy:
    """One call of `copy`."""

    def __init__(self, request: CopyRequest, watch: Watch, wait: WaitForTermination) -> None:
        _check(request)
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
        self._file = state.unfinished() / f"{self.name}.json"
        self.advised: Advised | None = None
        self._is_advice_refused = False
        self._saved: dict[str, Any] | None = None
        """Advice of this command, or of an earlier one that was interrupted, as its state has it."""
        with suppress(ElephanError):
            self._saved = state.read(self._file).get("advice")

    def run(self) -> CopyOutcome:
        """Make attempts until one is done. Raises as `copy` does."""
        began_s = self.durable_s = time.monotonic()
        failed = 0
        while True:
            try:
                outcome = self._attempt(began_s)
            except ElephanError as error:
                fault = self._as_failed(error)
                wait_s = BACKOFF_S[min(failed, len(BACKOFF_S) - 1)]
                failed += 1
                if not self._may_try_again(fault, began_s, wait_s):
                    raise (fault.as_final() if fault is error else error) from None
                self._tell({"event": "lost", "text": str(fault), "wait_s": wait_s, "attempt": len(self.attempts)})
                self.waited_s += wait_s
                if self.wait(wait_s):
                    raise native.Stopped("stopped") from None
            else:
                return outcome

    def _note_unfinished(self) -> None:
        """Write where `list` and `forget` find this copy, from the time that something may be left of it."""
        about = {
            "copy": self.name,
            "sources": [str(place) for place in self.request.sources],
            "destination": str(self.request.destination),
            "ends": [
                [self.request.source_host, None],
                [self.request.destination.host, end_paths(self.request)["destination"][0]],
            ],
            "began": receipt.now(),
            "advice": self._saved,
        }
        with suppress(ElephanError):
            about["began"] = state.read(self._file)["began"]
        try:
            state.write(self._file, about)
        except RunError as error:
            raise CopyFailed(STATE, str(error)) from error

    def _as_failed(self, error: ElephanError) -> CopyFailed:
        """Return an error with its kind. Once the ends have met, a host that is not found is one that is away."""
        if isinstance(error, CopyFailed):
            return error
        if isinstance(error, AgentError):
            return CopyFailed(error.kind, str(error))
        is_away = self.has_connected or not isinstance(error, InputError)
        return CopyFailed(LOST if is_away else "input", str(error))

    def _may_try_again(self, fault: CopyFailed, began_s: float, wait_s: float) -> bool:
        if fault.kind not in AGAIN:
            return False
        if fault.kind == "busy" and not self.has_connected:
            return time.monotonic() - began_s + wait_s < BUSY_S
        return self.has_connected and time.monotonic() - self.durable_s + wait_s < self.request.patience_s

    def _attempt(self, began_s: float) -> CopyOutcome:
        entry = {"began": receipt.now(), "seconds": 0.0, "data_s": 0.0, "sent_bytes": 0, "ended_by": "done"}
        self.attempts.append(entry)
        entry_began_s = time.monotonic()
        try:
            with ExitStack() as stack:
                sides = stack.enter_context(opened(self.request))
                self._note_agents(sides)
                done = self._carried_with_advice(sides, entry)
                entry["seconds"] = time.monotonic() - entry_began_s
                return self._done(*done, began_s)
        except BaseException as fault:
            entry["seconds"] = time.monotonic() - entry_began_s
            entry["ended_by"] = str(fault)
            raise

    def _note_agents(self, sides: Sides) -> None:
        """Name the agents that had to be sent first: that time is none of the data's."""
        for agent in sides.agents():
            if agent.deployed:
                took = f"{units.size(agent.session.sent_bytes)} in {units.duration(agent.session.sent_s)}"
                self._note(f"{agent.host.name}: the agent was sent there first, {took}")

    def _carried_with_advice(
        self, sides: Sides, entry: dict[str, Any]
    ) -> tuple[Attempt, dict[str, Any]]:
        """Make the attempt; where advice is open, the first one ends once there is enough to send to measure the path
        for.
        """
        if not self._may_be_advised():
            return self._carried(sides, entry, self._request())
        auto = self._auto()
        self.advised = auto.reused(self._saved, self.request, datetime.now(UTC))
        if self.advised is not None:
            self._tell_advice()
            return self._carried(sides, entry, self.advised.request)
        bytes_min = auto.AUTO_BYTES_MIN if self.request.auto else auto.BYTES_MIN
        comparison = _Comparison(bytes_min, auto.COMPARE_S, auto.ADVICE_S)
        try:
            done = self._carried(sides, entry, self.request, comparison)
        except _EnoughToSend as enough:
            self._advise(sides, enough.wanted_bytes)
            return self._carried(sides, entry, self._request())
        if comparison.short_rest is not None:
            advice = f"an advice takes up to {units.duration(auto.ADVICE_S)}"
            self._note(f"the path was not measured: the last {comparison.short_rest}, and {advice}")
        elif self.request.auto:
            # A copy that was asked for advice says why it has none.
            less = f"less than {units.size(auto.AUTO_BYTES_MIN)} were left to send after the comparison"
            self._note(f"the path was not measured: {less if comparison.sent_bytes else 'there was nothing to send'}")
        return done

    def _carried(
        self, sides: Sides, entry: dict[str, Any], request: CopyRequest, comparison: _Comparison | None = None
    ) -> tuple[Attempt, dict[str, Any]]:
        """Bring both ends together until the copy is done; return the attempt, and what it used. Raises
        `_EnoughToSend` from `comparison`, and as `copy` does.
        """
        before = {"sent_bytes": entry["sent_bytes"], "data_s": entry["data_s"]}
        sent = {"bytes": 0}
        connected_s: list[float] = []

        def count() -> None:
            entry["sent_bytes"] = before["sent_bytes"] + sent["bytes"]
            # Before the ends have met, an agent may be sent and the path measured: no time of the data.
            entry["data_s"] = before["data_s"] + (time.monotonic() - connected_s[0] if connected_s else 0.0)

        def tell(event: dict[str, Any]) -> None:
            if event["event"] == "connected":
                connected_s.append(time.monotonic())
                self._note_unfinished()
                if before["data_s"] > 0:
                    event = {**event, "after_comparison": True}
            if event["event"] == "note":
                self._note(event["text"])
                return
            if event["event"] == "refused":
                refused = pluralize(event["connections"], "connection")
                self._note(f"refused at the port of the copy: {refused} without its token")
                return
            if event["event"] == "progress":
                sent["bytes"] = event["sent_bytes"]
                if event["durable_bytes"] > self.durable_bytes:
                    self.durable_bytes, self.durable_s = event["durable_bytes"], time.monotonic()
            self._tell(event)

        with ExitStack() as stack:
            chosen = stack.enter_context(control.chosen(request, sides.source, secrets.token_hex(2)))
            for note in chosen.notes:
                self._note(note)
            streams = request.streams or STREAMS
            attempt = Attempt(request, sides, self.name, chosen.transport, streams, request.rate_bps, tell, self.wait)
            if comparison is not None:
                attempt.on_progress = comparison.look
            elif self.advised is not None:
                loop = stack.enter_context(
                    self._auto().steering(self.advised.advice, sides, self.decisions, self._tell, self._note)
                )
                if loop is not None:
                    attempt.on_progress = loop.look
            self._tell(
                {
                    "event": "attempt",
                    "number": len(self.attempts),
                    "copy": self.name,
                    "streams": streams,
                    "transport": request.transport,
                    "control": chosen.control,
                    "by": chosen.by,
                }
            )
            try:
                self.listener = attempt.run(_listeners(request, sides, self.listener)).role
                sent["bytes"] = attempt.reports["send"]["sent_bytes"]
            finally:
                count()
                self.has_connected |= attempt.has_connected
            used = {"streams": streams, "transport": chosen.transport, "control": chosen.control, "by": chosen.by}
            return attempt, used

    def _may_be_advised(self) -> bool:
        """Return True if advice is wanted, and neither there nor refused yet."""
        request = self.request
        is_open = request.streams is None or request.congestion_control is None
        is_wanted = request.auto is not False and (is_open or request.auto is True)
        is_done = self.advised is not None or self._is_advice_refused
        return is_wanted and not (is_done or request.is_local or request.over_ssh)

    def _request(self) -> CopyRequest:
        """Return the request with what the advice sets."""
        return self.request if self.advised is None else self.advised.request

    def _advise(self, sides: Sides, bytes_to_copy: int) -> None:
        """Measure the path and take the advice; a refusal is noted, and the copy does without."""
        self._note(f"{units.size(bytes_to_copy)} to send at least, as far as the sources are compared")
        try:
            self.advised = self._auto().advised(self.request, sides, bytes_to_copy, self.wait, self._tell)
        except ElephanError as error:
            if isinstance(error, InputError):
                raise
            self._is_advice_refused = True
            self._note(f"no advice: {error}: the copy goes on with {STREAMS} streams and the kernel's own control")
            return
        self._saved = self._auto().saved(self.advised, self.request)
        self._note_unfinished()
        self._tell_advice()

    def _tell_advice(self) -> None:
        assert self.advised is not None, "there is an advice"
        self._tell({"event": "advice", "lines": self.advised.lines(), **self.advised.as_dict()})

    @staticmethod
    def _auto() -> ModuleType:
        # The simulator and what it needs are loaded for a copy that asks for advice.
        from elephan.copy import auto

        return auto

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
            advice=None if self.advised is None else self.advised.as_dict(),
            hosts=hosts,
            seconds=time.monotonic() - began_s,
            waited_s=self.waited_s,
            notes=self.notes,
        )
        with suppress(OSError):
            self._file.unlink()
        try:
            file = receipt.keep(whole, self.request.receipt)
            if self.request.sign is not None:
                receipt.sign(file, self.request.sign)
        except ElephanError as error:
            # Another attempt would not help.
            raise CopyFailed(STATE, f"all is copied, but the receipt is not: {error}") from error
        self._tell({"event": "done", "receipt": whole, "file": str(file)})
        exit_code = 1 if whole["faults"] or whole["faults_more"] else 0
        return CopyOutcome(whole, exit_code, len(self.attempts), whole["faults"], str(file))

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
            self._tell({"event": "note", "text": text})

    def _tell(self, event: dict[str, Any]) -> None:
        self.watch(event)


def dry_run(request: CopyRequest, wait_for_termination: WaitForTermination | None = None) -> dict[str, Any]:
    """Return what `copy` would do, without data sent: `copy`, `sources`, `destination`, `entries`, `files`, `bytes`,
    `faults`, `faults_more`, `settings`, `notes`, with `mirror` the `removals` {`count`, `paths`, `limit`}, and with
    `request.auto` a `forecast`, for which the path is measured.

    The destination is checked, and nothing is made there. Raises as `copy` does.
    """
    _check(request)
    spec = {"sources": end_paths(request)["source"], "options": dict(request.options)}
    wait = wait_for_termination or _never
    is_mirror = bool(request.options.get("mirror"))
    found = scanned(request.source_host, {**spec, "paths": is_mirror}, wait)
    (destination,) = end_paths(request)["destination"]
    check: dict[str, Any] = {"destination": destination, "options": spec["options"], "shape": found.pop("shape")}
    if (paths := found.pop("paths", None)) is not None:
        check["paths"] = paths
    if request.source_host == request.destination.host:
        check["sources"] = spec["sources"]
    removed = removals(request.destination.host, check, wait)
    if is_mirror:
        found["removals"] = removed
    forecast, notes = _forecast(request, found, wait)
    return {
        "copy": name_of(request),
        "sources": [str(place) for place in request.sources],
        "destination": str(request.destination),
        **found,
        "settings": receipt.settings_of(request),
        "forecast": forecast,
        "notes": [*found["notes"], *notes],
    }


def _forecast(
    request: CopyRequest, found: dict[str, Any], wait: WaitForTermination
) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the forecast where the path may be measured (`auto`), and what the advice says."""
    if not request.auto or request.is_local or request.over_ssh or not found["files"]:
        return None, []
    from elephan.copy import auto

    try:
        with opened(request) as sides:
            advised = auto.advised(request, sides, found["bytes"], wait, lambda _event: None)
    except ElephanError as error:
        return None, [f"no forecast: {error}"]
    return auto.forecast_of(advised, found["files"], found["bytes"]), advised.lines()


__all__ = ["CopyOutcome", "CopyRequest", "Place", "Watch", "copy", "dry_run"]
