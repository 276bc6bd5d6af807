"""Advice before a copy, and steering while it runs: the path measured, candidates simulated, decisions with reasons."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from elephan import units
from elephan.advise import advice
from elephan.advise.advice import Advice
from elephan.advise.candidates import CONTROLS, text_of
from elephan.advise.facts import PathFacts
from elephan.advise.forecast import FileSet, forecast
from elephan.advise.measure import BUDGET_S, measured
from elephan.advise.steering import Steerer
from elephan.advise.text import NO_HARM, simulated
from elephan.copy import control, receipt
from elephan.copy.attempt import Steered
from elephan.copy.probe import Beside, beside, reflecting, tester
from elephan.copy.request import CopyRequest
from elephan.copy.sides import Sides
from elephan.errors import ElephanError

BYTES_MIN = 1_000_000_000
"""With less to send nothing is measured unless `--auto` says so: tests and simulation take up to 50 s, and the tests
1 % of the bytes."""

AUTO_BYTES_MIN = 100_000_000
"""With less to send nothing is measured with `--auto` either: 1 % of it is not enough for the tests of capacity and
loss, which send about 0.8 MB."""

COMPARE_S = 2.0
"""Time from the first connection after which the wanted bytes known so far count, and the rate of those that were sent,
s."""

ADVICE_S = BUDGET_S + advice.BUDGET_S
"""Time that tests and simulation take at most, s: what is sent in less at the rate so far is sent without."""

FRESH_S = 3600.0
"""Age up to which an interrupted copy uses its advice again, s: as long as `--retry-for` bridges by default. The
path's own rate and delay last longer; traffic of others changes from hour to hour."""

STEP_S = 1.0
"""Time between two looks of the steering, s."""

Tell = Callable[[dict[str, Any]], None]
Wait = Callable[[float | None], bool]


@dataclass
class Advised:
    """A request with advice."""

    request: CopyRequest
    """With what the user has left open."""
    changes: dict[str, Any]
    """Settings that the user has left open, as the advice sets them."""
    advice: Advice
    facts: PathFacts
    measured: str
    """Time of the measurement, UTC."""
    age_s: float | None = None
    """Age of the measurement where an earlier command has made it, s."""

    def as_dict(self) -> dict[str, Any]:
        """Return it for the receipt."""
        facts = dataclasses.asdict(self.facts)
        # The outcomes of the tests are long, and their estimates are in the facts.
        facts.pop("sources", None)
        advice = dataclasses.asdict(self.advice)
        advice.pop("table", None)
        return {"measured": self.measured, "age_s": self.age_s, "facts": facts, **advice}

    def lines(self) -> list[str]:
        """Return it for people."""
        if self.age_s is not None:
            return [
                f"advice of the interrupted copy: {text_of(self.advice.candidate)}: the path was measured "
                f"{units.duration(round(self.age_s))} ago and is not measured again within {units.duration(FRESH_S)}"
            ]
        one, (low, middle, high) = self.advice.candidate, self.advice.goodput_bps
        harm = ", ".join(f"{name} {units.share(band[1])}" for name, band in self.advice.harm.items()) or NO_HARM
        return [
            f"advice: {text_of(one)}: {units.rate(middle)} expected "
            f"({units.rate(low)} to {units.rate(high)}); others lose: {harm}; limit: {self.advice.limit_text}",
            *self.advice.reasons,
            simulated(self.advice),
        ]


CONDITIONS = ("transport", "congestion_control", "streams", "window_bytes", "rate_bps", "harm")
"""Settings of a request for which an advice was made: with others it is not used again."""


def _conditions(request: CopyRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in CONDITIONS}


def saved(found: Advised, request: CopyRequest) -> dict[str, Any]:
    """Return an advice for the state of an unfinished copy; `request` is the user's."""
    return {
        "measured": found.measured,
        "conditions": _conditions(request),
        "changes": found.changes,
        "advice": {**found.advice.as_dict(), "table": []},
        "facts": {**found.facts.as_dict(), "sources": {}},
    }


def reused(about: Mapping[str, Any] | None, request: CopyRequest, now: datetime) -> Advised | None:
    """Return the advice of an interrupted copy's state; None if it is older than `FRESH_S`, of other settings, or none
    that can be read.
    """
    try:
        age_s = (now - datetime.fromisoformat(about["measured"])).total_seconds() if about else -1.0
        if about is None or not 0 <= age_s <= FRESH_S:
            return None
        if about["conditions"] != _conditions(request):
            return None
        changes = dict(about["changes"])
        advice, facts = Advice.from_dict(about["advice"]), PathFacts(**about["facts"])
        changed = dataclasses.replace(request, **changes)
    except (KeyError, TypeError, ValueError):
        # Of another version, or no longer as it was written.
        return None
    return Advised(changed, changes, advice, facts, about["measured"], age_s)


def controls_of(request: CopyRequest, sides: Sides) -> tuple[str, ...]:
    """Return the controls that the sender can use: all of the advice's by QUIC, or where its user may load them, else
    its kernel's.
    """
    if request.transport == "quic" or control.may_load(sides.source):
        return CONTROLS
    names = control.names_at(sides.source)
    return tuple(name for name in CONTROLS if name in names) or CONTROLS[:1]


def advised(request: CopyRequest, sides: Sides, bytes_to_copy: int, wait: Wait, tell: Tell) -> Advised:
    """Measure the path and return the request with the advice. Raises `RunError`, `InputError` and `native.Stopped`."""
    address = sides.address(sides.destination)
    with reflecting(sides.destination, address) as reflector, tester(sides.source, reflector, wait) as test:
        tell({"event": "note", "text": "measuring the path: 20 s at most, 1 % of the data at most"})
        facts = measured(test, bytes_to_copy)
    measured_at = receipt.now()
    limit_s, began_s = advice.BUDGET_S, time.monotonic()
    what = f"simulating candidates on a path of {units.rate(facts.rate_bps)}: {limit_s:.0f} s at most"
    tell({"event": "note", "text": what})

    def progress(text: str) -> None:
        tell({"event": "note", "text": f"simulating, {time.monotonic() - began_s:.0f} of {limit_s:.0f} s: {text}"})

    controls = controls_of(request, sides) if request.congestion_control is None else (request.congestion_control,)
    found = advice.advise(
        facts, bytes_to_copy=bytes_to_copy, harm_limit=request.harm, controls=controls, on_progress=progress
    )
    one = found.candidate
    changes: dict[str, Any] = {}
    if request.congestion_control is None:
        changes["congestion_control"] = one.control
    if request.streams is None:
        changes["streams"] = one.streams
    if request.window_bytes is None and one.bound_bytes is not None:
        changes["window_bytes"] = one.bound_bytes
    if request.rate_bps is None and one.pacing_bps is not None:
        changes["rate_bps"] = one.pacing_bps
    return Advised(dataclasses.replace(request, **changes), changes, found, facts, measured_at)


def forecast_of(found: Advised, files: int, total: int) -> dict[str, Any]:
    """Return the forecast of a copy with the advised settings: `seconds` (low, middle, high), `goodput_bps`, `text`."""
    limit = found.request.rate_bps
    said = forecast(found.facts, found.advice.candidate, FileSet(files, total), rate_bps=limit)
    return {
        "seconds": [said.seconds_low, said.seconds, said.seconds_high],
        "goodput_bps": said.goodput_bps,
        "text": said.text(),
    }


@dataclass
class Steering:
    """The loop beside a copy: once a second what came is handed to the policy, and its decisions to the sender."""

    steerer: Steerer
    beside: Beside
    tell: Tell
    decisions: list[dict[str, Any]] = field(default_factory=list)
    _last: tuple[float, int] | None = None

    def look(self, event: dict[str, Any], steered: Steered) -> None:
        """Take an event `progress` of the sender."""
        now_s, sent = event["now_s"], event["sent_bytes"]
        if self._last is None or now_s < self._last[0]:
            self._last = (now_s, sent)
        if now_s - self._last[0] < STEP_S:
            return
        goodput_bps = (sent - self._last[1]) * 8 / (now_s - self._last[0])
        self._last = (now_s, sent)
        rtt_s, loss = self.beside.take()
        for decision in self.steerer.handle(now_s, goodput_bps, rtt_s, loss):
            change: dict[str, int] = {}
            if decision.streams is not None:
                change["streams"] = decision.streams
            if decision.rate_bps is not None:
                change["rate_bps"] = decision.rate_bps
            steered.steer(change)
            whole = {"now_s": now_s, **change, "reason": decision.reason, "rtt_s": rtt_s, "loss": loss}
            self.decisions.append({**whole, "goodput_bps": goodput_bps})
            self.tell({"event": "decision", **self.decisions[-1]})


@contextmanager
def steering(
    advice: Advice, sides: Sides, decisions: list[dict[str, Any]], tell: Tell, note: Callable[[str], None]
) -> Iterator[Steering | None]:
    """Give the loop for the time of an attempt, which adds to `decisions`; None, with a note, where no small packets
    pass.
    """
    with ExitStack() as stack:
        try:
            address = sides.address(sides.destination)
            reflector = stack.enter_context(reflecting(sides.destination, address))
            found = stack.enter_context(beside(sides, reflector))
        except ElephanError as error:
            note(f"no steering: {error}")
            yield None
            return
        yield Steering(Steerer(advice), found, tell, decisions)
