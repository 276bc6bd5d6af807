"""RFC 2544's tests of a line: throughput, latency, frame loss, back-to-back frames, for each frame size.

The RFC is made for one device in a laboratory (RFC 6815); here both ends of the line are one's own, and nobody else is
on it. A trial that an end itself limited says nothing about the line: results then say "at least".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from elephan.line.mix import Mix
from elephan.line.trial import DRAIN_NS, RAMP_NS, Clock, Outcome, Trial, Verdict

Run = Callable[[Trial], Outcome]
"""Runs a trial to its end."""
OnTrial = Callable[[str, Trial, Outcome], None]
"""Takes each trial with the name of its test."""
PPM = 10**6
LOSS_STEPS = 10
"""Frame loss falls from 100 % of the line's rate in tenths, the largest step that the RFC allows (26.3)."""
TESTS = ("throughput", "latency", "loss", "back-to-back")


@dataclass(frozen=True)
class Plan:
    """Durations and repetitions; defaults are the RFC's."""

    line_bps: int
    """Rate of the line: the largest of all trials, bit/s."""
    payload: str = "crpat"
    duration_ns: int = 60 * 10**9
    """Of a trial for throughput or loss (24)."""
    resolution_ppm: int = 1000
    """Step between rates of the search, in millionths of the line's rate."""
    latency_ns: int = 120 * 10**9
    """Of a stream for latency (26.2)."""
    latency_repetitions: int = 20
    """(26.2)"""
    burst_ns: int = 2 * 10**9
    """Longest burst (26.4)."""
    burst_repetitions: int = 50
    """(26.4)"""
    ramp_ns: int = RAMP_NS
    drain_ns: int = DRAIN_NS
    pcp: int | None = None

    def trial(self, mix: Mix, rate_bps: int, duration_ns: int) -> Trial:
        """Return a trial of a duration."""
        return Trial(
            mix,
            rate_bps,
            duration_ns,
            payload=self.payload,
            ramp_ns=self.ramp_ns,
            drain_ns=self.drain_ns,
            pcp=self.pcp,
        )


@dataclass(frozen=True)
class Throughput:
    """Largest rate without loss (26.1)."""

    frame_bytes: int
    rate_bps: int
    """Rate of the line that passed, with preamble and gap; 0: none did."""
    frames_per_s: float
    frame_bps: int
    """Rate of the frames alone (layer 2)."""
    share: float
    """Of the line's rate."""
    limit: Verdict
    """Reason why no higher rate passed: `PASSED` where the line's whole rate did, `LOST` where the line lost frames at
    the next step; by `GENERATOR` or `RECEIVER` the line carries at least this much."""
    trials: int


@dataclass(frozen=True)
class LatencyAt:
    """Latency at the throughput (26.2)."""

    frame_bytes: int
    rate_bps: int
    mean_ns: float
    """Mean over the repetitions of their means."""
    min_ns: int
    p99_ns: int
    """Largest of the repetitions."""
    max_ns: int
    ipdv_ns: float | None
    repetitions: int
    clock: Clock | None
    """The largest error of all repetitions; None: clocks were not compared."""
    lost: int
    """Frames lost meanwhile: at this rate none was, before."""


@dataclass(frozen=True)
class Loss:
    """Share of frames lost at one rate (26.3)."""

    frame_bytes: int
    rate_bps: int
    share: float
    """Of the line's rate."""
    loss_ratio: float | None
    """None: an end limited the trial."""
    lost: int
    sent: int
    limit: Verdict


@dataclass(frozen=True)
class BackToBack:
    """Longest burst at the line's rate without loss (26.4)."""

    frame_bytes: int
    frames: float
    """Mean over the repetitions."""
    frames_min: int
    frames_max: int
    longest: int
    """Frames of the longest burst that was tried."""
    repetitions: int
    limit: Verdict
    """As in `Throughput`, of the repetition with the shortest burst."""


Result = Throughput | LatencyAt | Loss | BackToBack
RESULTS: dict[type[Result], str] = dict(zip((Throughput, LatencyAt, Loss, BackToBack), TESTS, strict=True))
"""Test of each kind of result."""


def measure(
    run: Run, sizes: Sequence[int], plan: Plan, tests: Sequence[str] = TESTS, on_trial: OnTrial | None = None
) -> Iterator[Result]:
    """Yield each result as soon as it is there: an interrupted test keeps those before."""
    for size in sizes:
        found: Throughput | None = None
        if "throughput" in tests or "latency" in tests:
            found = throughput(run, size, plan, on_trial)
            yield found
        if "latency" in tests and found is not None and found.rate_bps:
            yield latency(run, size, found.rate_bps, plan, on_trial)
        if "loss" in tests:
            yield from losses(run, size, plan, on_trial)
        if "back-to-back" in tests:
            yield back_to_back(run, size, plan, on_trial)


def throughput(run: Run, size: int, plan: Plan, on_trial: OnTrial | None = None) -> Throughput:
    """Search the largest rate at which no frame is lost, by halves (26.1)."""
    mix = Mix.of(size)
    steps = PPM // plan.resolution_ppm
    trials = 0

    def verdict(step: int) -> Verdict:
        nonlocal trials
        trials += 1
        return _run(
            run, plan.trial(mix, plan.line_bps * step // steps, plan.duration_ns), "throughput", on_trial
        ).verdict

    passed, limit = _search(verdict, steps)
    rate_bps = plan.line_bps * passed // steps
    return Throughput(
        size, rate_bps, mix.frames_per_s(rate_bps), mix.frame_bps(rate_bps), passed / steps, limit, trials
    )


def _search(verdict: Callable[[int], Verdict], most: int) -> tuple[int, Verdict]:
    """Return the largest of 0 to `most` that passes, and the verdict on the next one; `PASSED` where all pass.

    A value at which an end limited the trial bounds the search as a loss does, and is told apart from it.
    """
    first = verdict(most)
    if first is Verdict.PASSED:
        return most, first
    passed, failed, limit = 0, most, first
    while failed - passed > 1:
        middle = (passed + failed) // 2
        found = verdict(middle)
        if found is Verdict.PASSED:
            passed = middle
        else:
            failed, limit = middle, found
    return passed, limit


def latency(run: Run, size: int, rate_bps: int, plan: Plan, on_trial: OnTrial | None = None) -> LatencyAt:
    """Measure the latency of all frames at a rate (26.2, which has one tagged frame in each stream)."""
    trial = plan.trial(Mix.of(size), rate_bps, plan.latency_ns)
    outcomes = [_run(run, trial, "latency", on_trial) for _ in range(plan.latency_repetitions)]
    there = [one for one in outcomes if one.received is not None and one.received.latency_ns is not None]
    received = [one.received for one in there if one.received is not None]
    found = [got.latency_ns for got in received if got.latency_ns is not None]
    clocks = [one.clock for one in there]
    known = [clock for clock in clocks if clock is not None]
    variations = [got.ipdv_mean_ns for got in received if got.ipdv_mean_ns is not None]
    return LatencyAt(
        frame_bytes=size,
        rate_bps=rate_bps,
        mean_ns=sum(one.mean for one in found) / len(found) if found else 0.0,
        min_ns=min((one.min for one in found), default=0),
        p99_ns=max((one.p99 for one in found), default=0),
        max_ns=max((one.max for one in found), default=0),
        ipdv_ns=sum(variations) / len(variations) if variations else None,
        repetitions=len(found),
        clock=max(known, key=lambda clock: clock.error_ns) if known and len(known) == len(clocks) else None,
        lost=sum(one.lost for one in outcomes),
    )


def losses(run: Run, size: int, plan: Plan, on_trial: OnTrial | None = None) -> Iterator[Loss]:
    """Yield the loss from the line's rate downwards, until two rates in sequence lose nothing (26.3)."""
    clean = 0
    for step in range(LOSS_STEPS, 0, -1):
        rate_bps = plan.line_bps * step // LOSS_STEPS
        outcome = _run(run, plan.trial(Mix.of(size), rate_bps, plan.duration_ns), "loss", on_trial)
        limit = outcome.verdict
        is_known = limit in (Verdict.PASSED, Verdict.LOST)
        ratio = outcome.loss_ratio if is_known else None
        yield Loss(size, rate_bps, step / LOSS_STEPS, ratio, outcome.lost, outcome.due, limit)
        clean = clean + 1 if limit is Verdict.PASSED else 0
        if clean == 2:
            return


def back_to_back(run: Run, size: int, plan: Plan, on_trial: OnTrial | None = None) -> BackToBack:
    """Search the longest burst without loss, at the line's rate and by halves, and repeat that (26.4)."""
    mix = Mix.of(size)
    longest = max(1, mix.frames(plan.line_bps, plan.burst_ns))
    # A burst begins at once: it is the buffer that it fills.
    burst = replace(plan.trial(mix, plan.line_bps, 0), duration_ns=None, ramp_ns=0)

    def verdict(frames: int) -> Verdict:
        return _run(run, replace(burst, frames=frames), "back-to-back", on_trial).verdict

    found = [_search(verdict, longest) for _ in range(plan.burst_repetitions)]
    lengths = [frames for frames, _ in found]
    limit = min(found, key=lambda one: one[0])[1]
    return BackToBack(size, sum(lengths) / len(lengths), min(lengths), max(lengths), longest, len(lengths), limit)


def _run(run: Run, trial: Trial, test: str, on_trial: OnTrial | None) -> Outcome:
    outcome = run(trial)
    if on_trial is not None:
        on_trial(test, trial, outcome)
    return outcome


def span_ns(sizes: Sequence[int], plan: Plan, tests: Sequence[str], tries: int = 1) -> int:
    """Return the longest time that a test may take, ns: every search to its end, every rate of the loss tested.

    Each trial is repeated up to `tries` times in all.
    """
    steps = PPM // plan.resolution_ppm
    each = 0
    if "throughput" in tests or "latency" in tests:
        each += (steps.bit_length() + 1) * (plan.duration_ns + plan.ramp_ns + plan.drain_ns)
    if "latency" in tests:
        each += plan.latency_repetitions * (plan.latency_ns + plan.ramp_ns + plan.drain_ns)
    if "loss" in tests:
        each += LOSS_STEPS * (plan.duration_ns + plan.ramp_ns + plan.drain_ns)
    total = each * len(sizes)
    if "back-to-back" in tests:
        for size in sizes:
            trials = Mix.of(size).frames(plan.line_bps, plan.burst_ns).bit_length() + 1
            total += plan.burst_repetitions * trials * (plan.burst_ns + plan.drain_ns)
    return total * tries
