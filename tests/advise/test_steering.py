"""Steering in closed loop: a response to streams or rate, simulated or made, and what the policy does with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from elephan.advise.advice import Advice
from elephan.advise.candidate import OPEN_WINDOW_BYTES, Candidate
from elephan.advise.candidates import ordinary
from elephan.advise.simulation import Horizon, Path, simulate
from elephan.advise.steering import Decision, Limits, Steerer, limits_of

Response = Callable[[float, int, int | None], tuple[float, float | None, float | None]]
"""Goodput, bit/s, the probe's RTT, s, and its loss, of time, streams and rate."""


def advice_of(low: float, high: float, streams: int = 4, pacing_bps: int | None = None, limit: float = 0.5) -> Advice:
    return Advice(
        Candidate("cubic", streams, OPEN_WINDOW_BYTES, pacing_bps=pacing_bps),
        (low, (low + high) / 2, high),
        {"reno": (0.0, 0.1, 0.2), "cubic": (0.0, 0.1, 0.2)},
        limit=limit,
        limit_text="",
        is_operators=limit < 0.2,
        rtt_s=0.05,
        queue_s=0.04,
        loss=1e-4,
    )


def loop(steerer: Steerer, response: Response, seconds: int) -> list[Decision]:
    decisions = []
    for second in range(seconds):
        decisions += steerer.handle(float(second), *response(float(second), steerer.streams, steerer.rate_bps))
    for one in decisions:
        assert one.reason and (one.streams is None) != (one.rate_bps is None)
    return decisions


def test_a_transfer_as_forecast_is_left_alone() -> None:
    steerer = Steerer(advice_of(90e6, 110e6))
    assert not loop(steerer, lambda at, streams, rate: (100e6 + 9e6 * (at % 2), 0.07, 1e-4), 600)


def test_streams_grow_in_small_steps_while_that_gains_and_no_further_than_the_forecast() -> None:
    steerer = Steerer(advice_of(90e6, 110e6))
    decisions = loop(steerer, lambda at, streams, rate: (15e6 * streams, 0.055, 1e-4), 300)
    assert [one.streams for one in decisions] == [5, 6]
    assert all("below the forecast" in one.reason for one in decisions)


def test_streams_that_gain_nothing_are_taken_back_and_seldom_tried_again() -> None:
    steerer = Steerer(advice_of(90e6, 110e6))
    decisions = loop(steerer, lambda at, streams, rate: (50e6, 0.055, 1e-4), 1200)
    assert [one.streams for one in decisions[:2]] == [5, 4]
    assert "gained less than" in decisions[1].reason
    assert steerer.streams == 4 and len(decisions) <= 8
    waits = [after.at_s - before.at_s for before, after in zip(decisions[1::2], decisions[2::2], strict=False)]
    assert waits == sorted(waits) and waits[0] >= 120


@pytest.mark.parametrize(("rtt_s", "loss", "word"), [(0.3, 0.0, "round trip"), (0.06, 0.2, "loses")])
def test_it_backs_off_within_seconds_and_comes_back_after_calm(rtt_s: float, loss: float, word: str) -> None:
    def response(at: float, streams: int, rate: int | None) -> tuple[float, float | None, float | None]:
        return (100e6, rtt_s, loss) if 50 <= at < 60 else (100e6, 0.06, 0.0)

    steerer = Steerer(advice_of(20e6, 110e6, streams=8))
    decisions = loop(steerer, response, 300)
    assert decisions[0].at_s <= 53 and decisions[0].streams == 6 and word in decisions[0].reason
    assert decisions[-1].streams == 8 and "calm" in decisions[-1].reason
    assert steerer.streams == 8 and len(decisions) <= 6


def test_one_late_observation_changes_nothing() -> None:
    steerer = Steerer(advice_of(20e6, 110e6))
    assert not loop(steerer, lambda at, streams, rate: (100e6, 0.3 if at % 5 == 0 else 0.06, 0.0), 300)


def test_congestion_that_its_own_streams_cause_makes_no_oscillation() -> None:
    # Beyond 5 streams the probe's queue is too long: coming back is tried ever more seldom.
    steerer = Steerer(advice_of(20e6, 110e6, streams=8))
    decisions = loop(steerer, lambda at, streams, rate: (100e6, 0.3 if streams > 5 else 0.06, 0.0), 3600)
    assert steerer.streams <= 8 and len(decisions) < 40
    late = [one for one in decisions if one.at_s > 1800]
    assert len(late) <= 6, "at most a try each ten minutes"


def test_a_bounded_rate_is_lowered_in_place_of_streams_and_raised_no_higher_than_advised() -> None:
    def response(at: float, streams: int, rate: int | None) -> tuple[float, float | None, float | None]:
        return float(rate or 0), (0.2 if at < 40 else 0.055), None

    steerer = Steerer(advice_of(20e6, 110e6, pacing_bps=100_000_000, limit=0.05))
    decisions = loop(steerer, response, 600)
    assert all(one.rate_bps is not None for one in decisions)
    assert min(one.rate_bps or 0 for one in decisions) < 60_000_000
    assert steerer.rate_bps == 100_000_000 and steerer.streams == 4


def test_the_last_stream_is_bounded_by_rate_and_never_below_the_least() -> None:
    limits = Limits(rtt_max_s=0.1, rate_min_bps=5_000_000, rtt_empty_s=0.05)
    steerer = Steerer(advice_of(20e6, 110e6, streams=1), limits)
    loop(steerer, lambda at, streams, rate: (min(100e6, rate or 100e6), 0.3, 0.0), 600)
    assert steerer.streams == 1 and steerer.rate_bps == 5_000_000


def test_a_probe_without_answers_is_no_pressure() -> None:
    assert not loop(Steerer(advice_of(90e6, 110e6)), lambda at, streams, rate: (100e6, None, None), 200)


def test_an_operators_strict_limit_allows_a_quarter_of_the_queue() -> None:
    strict, usual = (limits_of(advice_of(1e6, 2e6, limit=limit)) for limit in (0.05, 0.6))
    assert strict.rtt_max_s == pytest.approx(0.06) and usual.rtt_max_s == pytest.approx(0.108)
    assert strict.loss_max < usual.loss_max and strict.streams_max == 8


def test_in_closed_loop_with_the_simulator_a_lossy_path_gets_the_streams_that_it_needs() -> None:
    path = Path(20e6, 0.06, loss=1e-2, queue_bytes=75_000)
    goodputs: dict[int, float] = {}

    def response(at: float, streams: int, rate: int | None) -> tuple[float, float | None, float | None]:
        if streams not in goodputs:
            found = simulate(path, ordinary(streams), Horizon(0.5, 5.0), 1, with_references=False)
            goodputs[streams] = found.copy_bps
        return goodputs[streams], 0.07, path.loss

    steerer = Steerer(advice_of(10e6, 18e6, streams=2), Limits(streams_max=16))
    decisions = loop(steerer, response, 600)
    assert goodputs[2] < 10e6 and goodputs[steerer.streams] >= 10e6
    steps = [one.streams for one in decisions]
    assert steps == sorted(step for step in steps if step is not None), "each step gained"
