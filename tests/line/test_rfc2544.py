"""RFC 2544's tests against a line in closed form."""

from __future__ import annotations

import pytest

from elephan.line.methods import rfc2544
from elephan.line.methods.rfc2544 import BackToBack, LatencyAt, Loss, Plan, Throughput
from elephan.line.mix import Mix
from elephan.line.trial import Verdict
from tests.line.model import Line

GIGABIT = 10**9
PLAN = Plan(GIGABIT, duration_ns=10**9, latency_ns=10**9, latency_repetitions=3, burst_repetitions=2)


@pytest.mark.parametrize("size", [64, 512, 1518])
@pytest.mark.parametrize("capacity_bps", [1_500_000, 123_456_789, 999_000_000])
def test_the_throughput_is_the_capacity_to_the_resolution(size: int, capacity_bps: int) -> None:
    found = rfc2544.throughput(Line(GIGABIT, capacity_bps).run, size, PLAN)
    step_bps = GIGABIT // 1000
    assert found.rate_bps <= capacity_bps < found.rate_bps + 2 * step_bps and found.limit is Verdict.LOST
    assert found.frame_bps == Mix.of(size).frame_bps(found.rate_bps)
    # The first trial, and one for each half of a thousand steps.
    assert found.trials <= 11


def test_a_line_that_takes_its_whole_rate_needs_one_trial() -> None:
    found = rfc2544.throughput(Line(GIGABIT).run, 64, PLAN)
    assert (found.rate_bps, found.share, found.limit, found.trials) == (GIGABIT, 1.0, Verdict.PASSED, 1)
    assert found.frames_per_s == pytest.approx(1_488_095.24)


def test_a_line_that_loses_at_every_rate_has_no_throughput() -> None:
    found = rfc2544.throughput(Line(GIGABIT, lose_every=10).run, 64, PLAN)
    assert (found.rate_bps, found.frames_per_s, found.limit) == (0, 0.0, Verdict.LOST)
    # Without a throughput there is no rate to measure latency at.
    kinds = [type(one) for one in rfc2544.measure(Line(GIGABIT, lose_every=10).run, [64], PLAN, ["latency"])]
    assert kinds == [Throughput]


def test_the_generators_limit_is_no_limit_of_the_line() -> None:
    found = rfc2544.throughput(Line(GIGABIT, generator_bps=300_000_000).run, 64, PLAN)
    assert found.limit is Verdict.GENERATOR and found.rate_bps == 300_000_000
    # Below it the line's own loss is found.
    found = rfc2544.throughput(Line(GIGABIT, 200_500_000, generator_bps=300_000_000).run, 64, PLAN)
    assert found.limit is Verdict.LOST and found.rate_bps == 200_000_000


def test_the_receivers_limit_is_no_limit_of_the_line() -> None:
    found = rfc2544.throughput(Line(GIGABIT, receiver_frames_per_s=744_048).run, 64, PLAN)
    assert found.limit is Verdict.RECEIVER and found.share == pytest.approx(0.5, abs=0.001)


def test_latency_has_the_clocks_error() -> None:
    line = Line(GIGABIT, latency_ns=8_600_000)
    found = [one for one in rfc2544.measure(line.run, [1518], PLAN, ["latency"]) if isinstance(one, LatencyAt)]
    assert [one.rate_bps for one in found] == [GIGABIT]
    assert found[0].mean_ns == 8_600_000 and found[0].repetitions == 3 and found[0].clock == line.clock
    assert [trial.duration_ns for trial in line.trials[1:]] == [PLAN.latency_ns] * 3


def test_frame_loss_ends_after_two_rates_without_loss() -> None:
    found = list(rfc2544.losses(Line(GIGABIT, 750_000_000).run, 1518, PLAN))
    assert [one.share for one in found] == [1.0, 0.9, 0.8, 0.7, 0.6]
    assert [one.loss_ratio for one in found] == pytest.approx([1 / 4, 1 / 6, 1 / 16, 0, 0], abs=1e-4)
    assert [one.limit for one in found] == [Verdict.LOST] * 3 + [Verdict.PASSED] * 2


def test_a_rate_that_the_generator_does_not_reach_has_no_loss_ratio() -> None:
    found = list(rfc2544.losses(Line(GIGABIT, generator_bps=850_000_000).run, 1518, PLAN))
    assert [(one.share, one.loss_ratio) for one in found] == [(1.0, None), (0.9, None), (0.8, 0), (0.7, 0)]


@pytest.mark.parametrize("buffer_frames", [1, 37, 5000])
def test_the_longest_burst_fills_the_buffer(buffer_frames: int) -> None:
    """At half the line's rate the buffer takes one of two frames: 2 B, and the last that is on its way."""
    line = Line(GIGABIT, GIGABIT // 2, buffer_frames)
    found = rfc2544.back_to_back(line.run, 512, PLAN)
    assert isinstance(found, BackToBack) and found.limit is Verdict.LOST
    assert 2 * buffer_frames - 1 <= found.frames_min == found.frames_max <= 2 * buffer_frames + 1
    assert all(trial.ramp_ns == 0 for trial in line.trials)


def test_a_line_that_takes_every_burst_says_how_long_the_longest_was() -> None:
    found = rfc2544.back_to_back(Line(GIGABIT).run, 1518, PLAN)
    assert found.frames == found.longest == Mix.of(1518).frames(GIGABIT, 2 * 10**9)
    assert found.limit is Verdict.PASSED


def test_results_come_one_by_one_in_the_order_of_the_sizes() -> None:
    line = Line(GIGABIT)
    results = rfc2544.measure(line.run, [64, 1518], PLAN)
    first = next(results)
    assert isinstance(first, Throughput) and len(line.trials) == 1
    rest = list(results)
    assert [type(one) for one in [first, *rest]] == [Throughput, LatencyAt, Loss, Loss, BackToBack] * 2
    assert [one.frame_bytes for one in rest[-4:]] == [1518] * 4


def test_trials_are_told_and_take_no_longer_than_said() -> None:
    told: list[str] = []
    plan = Plan(GIGABIT)
    line = Line(GIGABIT, 123_456_789, buffer_frames=10)
    list(rfc2544.measure(line.run, [64], plan, on_trial=lambda test, trial, outcome: told.append(test)))
    assert len(told) == len(line.trials) and set(told) == set(rfc2544.TESTS)
    spent_ns = sum(
        (trial.duration_ns or 10**9 * (trial.frames or 0) // 1_488_095) + trial.ramp_ns + trial.drain_ns
        for trial in line.trials
    )
    assert spent_ns <= rfc2544.span_ns([64], plan, rfc2544.TESTS)
    # RFC 2544's own durations, one size.
    assert (plan.duration_ns, plan.latency_ns, plan.burst_ns) == (60 * 10**9, 120 * 10**9, 2 * 10**9)
    assert (plan.latency_repetitions, plan.burst_repetitions) == (20, 50)


def test_the_longest_time_has_every_repetition() -> None:
    once = rfc2544.span_ns([64, 1518], PLAN, rfc2544.TESTS)
    assert rfc2544.span_ns([64, 1518], PLAN, rfc2544.TESTS, tries=3) == 3 * once
