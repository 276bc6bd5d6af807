"""Service activation like ITU-T Y.1564 (2016): a configuration test in steps, then a performance test.

Unlike the Recommendation, one service is tested at a time, its frames carry no colour, and bursts (CBS, EBS) are not
tested. Rates of a service are information rates: bits of Ethernet frames, without preamble and gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from elephan.line.mix import Mix
from elephan.line.trial import DRAIN_NS, RAMP_NS, Clock, Outcome, Row, Trial, Verdict

Run = Callable[[Trial], Outcome]
OnTrial = Callable[[str, Trial, Outcome], None]
CIR_STEPS = (25, 50, 75, 100)
"""Per cent of the committed rate."""
POLICING_PER_CENT = 125
"""The policing step sends the committed rate and 125 % of the excess rate, or 125 % of both: see `policing_bps`."""
SMALL_EIR = 5
"""An excess rate below one such part of the committed rate: a quarter of it more is lost in the tolerance."""
CLEAR_PER_CENT = 101
"""The policing step sends at least this share of the most that it may let through: else it could not fail."""
SEVERE_LOSS = 0.5
"""A second with a larger share of frames lost is a severely errored one (ITU-T Y.1563)."""
UNAVAILABLE_S = 10
"""So many severely errored seconds in sequence begin unavailable time, so many others end it (ITU-T Y.1563)."""
SECOND_NS = 10**9


@dataclass(frozen=True)
class Service:
    """A service as its contract has it."""

    cir_bps: int
    """Committed information rate, bit/s of frames."""
    mix: Mix
    eir_bps: int = 0
    """Excess information rate, bit/s of frames."""
    name: str = "service"
    pcp: int | None = None
    loss_ratio: float = 0.0
    """Largest frame loss ratio (FLR) of committed traffic."""
    delay_ns: int | None = None
    """Largest mean frame transfer delay (FTD); None: none is agreed."""
    variation_ns: int | None = None
    """Largest frame delay variation (FDV): 99.9th percentile less minimum; None: none is agreed."""
    availability: float | None = None
    """Least share of available seconds; None: none is agreed."""
    tolerance: float = 0.01
    """Share by which a policer may let more through than the committed and the excess rate."""


@dataclass(frozen=True)
class Plan:
    """Durations, as long as the Recommendation has them by default."""

    step_ns: int = 60 * 10**9
    """Of each step of the configuration test: 1 s to 60 s."""
    performance_ns: int = 15 * 60 * 10**9
    """Of the performance test: 15 min, 2 h or 24 h."""
    payload: str = "crpat"
    ramp_ns: int = RAMP_NS
    drain_ns: int = DRAIN_NS
    line_bps: int | None = None
    """Rate of the line: the policing step is left out where it does not have the rate for it; None: any."""


@dataclass(frozen=True)
class Check:
    """One criterion."""

    name: str
    value: float | None
    bound: float
    passed: bool | None
    """None: it cannot be told."""
    is_least: bool = False
    """The bound is the least value, not the largest."""
    error: float = 0.0
    """Largest error of the value."""


@dataclass(frozen=True)
class Step:
    """One step with its criteria."""

    name: str
    sent_bps: int
    """Information rate as asked for."""
    received_bps: int
    outcome: Outcome
    checks: tuple[Check, ...]
    clock: Clock | None

    @property
    def passed(self) -> bool | None:
        """True if every criterion is met, False if one is not, None if that cannot be told."""
        results = [check.passed for check in self.checks]
        return False if False in results else None if None in results else True


def measure(run: Run, service: Service, plan: Plan, on_trial: OnTrial | None = None) -> Iterator[Step]:
    """Yield each step; the performance test only follows a configuration test without a failed step."""
    failed = False
    for name, rate_bps, committed_bps, most_bps in steps_of(service, plan.line_bps):
        trial = _trial(service, plan, rate_bps, plan.step_ns)
        outcome = _run(run, trial, name, on_trial)
        step = Step(
            name,
            rate_bps,
            outcome.frame_bps,
            outcome,
            tuple(_checks(service, outcome, rate_bps, committed_bps, most_bps)),
            outcome.clock,
        )
        failed |= step.passed is False
        yield step
    if failed:
        return
    trial = _trial(service, plan, service.cir_bps, plan.performance_ns, series_ns=SECOND_NS)
    outcome = _run(run, trial, "performance", on_trial)
    checks = [*_checks(service, outcome, service.cir_bps, service.cir_bps, None)]
    if service.availability is not None:
        share = availability(outcome.series)
        met = None if share is None else share >= service.availability
        checks.append(Check("availability", share, service.availability, met, is_least=True))
    yield Step("performance", service.cir_bps, outcome.frame_bps, outcome, tuple(checks), outcome.clock)


def steps_of(service: Service, line_bps: int | None = None) -> list[tuple[str, int, int, int | None]]:
    """Return the configuration test: names, rates sent, that must arrive, and at most may arrive (None: any)."""
    cir, eir = service.cir_bps, service.eir_bps
    steps: list[tuple[str, int, int, int | None]] = [
        (f"CIR {part} %", cir * part // 100, cir * part // 100, None) for part in CIR_STEPS
    ]
    if eir:
        steps.append(("CIR + EIR", cir + eir, cir, None))
    over = policing_bps(service, line_bps)
    if over is not None:
        steps.append(("policing", over, cir, cir + eir))
    return steps


def policing_bps(service: Service, line_bps: int | None = None) -> int | None:
    """Return the rate of the policing step; None: the line has no rate clearly above what may come through.

    The committed rate and 125 % of the excess rate; where that is not clear of the tolerance, 125 % of both.
    """
    cir, eir = service.cir_bps, service.eir_bps
    of_both, of_excess = (cir + eir) * POLICING_PER_CENT // 100, cir + eir * POLICING_PER_CENT // 100
    clear_bps = (cir + eir) * (1 + service.tolerance) * CLEAR_PER_CENT / 100
    for over in (of_both, of_excess) if eir * SMALL_EIR < cir else (of_excess, of_both):
        if over >= clear_bps and (line_bps is None or service.mix.line_bps(over) <= line_bps):
            return over
    return None


def _trial(service: Service, plan: Plan, frame_bps: int, duration_ns: int, series_ns: int | None = None) -> Trial:
    rate_bps = service.mix.line_bps(frame_bps)
    return Trial(
        service.mix,
        rate_bps,
        duration_ns,
        payload=plan.payload,
        ramp_ns=plan.ramp_ns,
        series_ns=series_ns,
        drain_ns=plan.drain_ns,
        pcp=service.pcp,
    )


def _checks(
    service: Service, outcome: Outcome, rate_bps: int, committed_bps: int, most_bps: int | None
) -> Iterator[Check]:
    """Yield the criteria of a step: all of them for committed traffic, the rate alone beyond it."""
    known = outcome.verdict in (Verdict.PASSED, Verdict.LOST) and not outcome.is_short
    if most_bps is not None:
        bound = most_bps * (1 + service.tolerance)
        # More than allowed has come through, whatever the ends left out.
        above = outcome.frame_bps > bound
        yield Check("rate at most", outcome.frame_bps, bound, False if above else True if known else None)
    if rate_bps > committed_bps:
        # A generator that is late by one frame does not make the service fail.
        bound = committed_bps * (1 - service.loss_ratio) - _rounding_bps(service, outcome)
        met = outcome.frame_bps >= bound
        yield Check("rate at least", outcome.frame_bps, bound, True if met else False if known else None, True)
        return
    ratio = outcome.loss_ratio
    # A load that was lower than asked for is no excuse for a loss.
    met_loss = False if ratio > service.loss_ratio else True if known else None
    yield Check("frame loss ratio", ratio, service.loss_ratio, met_loss)
    got = outcome.received
    latency = None if got is None else got.latency_ns
    if service.delay_ns is not None:
        error_ns = None if outcome.clock is None else outcome.clock.error_ns
        yield _delay_check(None if latency is None else latency.mean, service.delay_ns, error_ns)
    if service.variation_ns is not None:
        # A constant error of the clocks has no part in it.
        value = None if latency is None else latency.p999 - latency.min
        met_variation = None if value is None else value <= service.variation_ns
        yield Check("frame delay variation", value, service.variation_ns, met_variation)


def _delay_check(mean_ns: int | None, bound_ns: int, error_ns: int | None) -> Check:
    """Return the criterion of the delay: met or not only where the clocks' error does not decide."""
    if mean_ns is None or error_ns is None:
        return Check("frame transfer delay", mean_ns, bound_ns, None)
    passed = True if mean_ns + error_ns <= bound_ns else False if mean_ns - error_ns > bound_ns else None
    return Check("frame transfer delay", mean_ns, bound_ns, passed, error=error_ns)


def _rounding_bps(service: Service, outcome: Outcome) -> float:
    """Return the rate of one round of the mix in the time of a step: whole frames are counted."""
    return service.mix.frame_bytes * 8e9 / outcome.sent.span_ns if outcome.sent.span_ns else 0.0


def availability(rows: Sequence[Row]) -> float | None:
    """Return the share of seconds that are available by the rows of a series of 1 s; None without rows.

    Ten severely errored seconds in sequence are unavailable, all of them; ten that are not are available again, all of
    them (ITU-T Y.1563).
    """
    seconds = [row for row in rows if row.sent or row.no_carrier_frames]
    if not seconds:
        return None
    unavailable = 0
    is_available = True
    pending = 0
    for row in seconds:
        due, lost = row.sent + row.no_carrier_frames, row.lost + row.no_carrier_frames
        severe = not row.is_answered or lost > SEVERE_LOSS * due
        if severe == is_available:
            pending += 1
            if pending == UNAVAILABLE_S:
                # The seconds that led to the change are of the new state.
                unavailable += pending if is_available else 0
                is_available = not is_available
                pending = 0
        else:
            # Seconds that did not become a change are of the old state.
            unavailable += 0 if is_available else pending + 1
            pending = 0
    if not is_available:
        unavailable += pending
    return 1 - unavailable / len(seconds)


def _run(run: Run, trial: Trial, name: str, on_trial: OnTrial | None) -> Outcome:
    outcome = run(trial)
    if on_trial is not None:
        on_trial(name, trial, outcome)
    return outcome
