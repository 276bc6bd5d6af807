"""elephan's detector on labelled series, drawn anew, and its interface."""

from __future__ import annotations

import json
import secrets
from typing import Any

import numpy as np
import pytest

from elephan.core import native
from evaluation.change_detection import loss
from evaluation.change_detection.methods import METHODS
from evaluation.change_detection.series import START_S, Label, Series
from evaluation.change_detection.trials import Trial, delays, run


def test_changes_of_a_path_are_found_and_few_that_are_none() -> None:
    """Fresh seeds, by the monitor's path. Measured: 95 % of the changes within 5 samples, 0.6 false alarms per month.

    A series goes wrong as a whole in fewer than 1 of 50. Half of the changes are missed only if 5 of 9 series do: fewer
    than 126 * 0.02^5 = 4e-7 of the runs. 40 false alarms in six path-months are 10 times the mean.
    """
    seed = secrets.randbelow(2**31)
    print("seed", seed)
    results = [one for number in range(3) for one in run(Trial(seed, number, 300, 0.02, ("elephan",)))]
    found = [delay for one in results for delay in one.delays]
    assert len(found) >= 100
    within = sum(1 for delay in found if delay is not None and delay <= 5) / len(found)
    assert within >= 0.5, (seed, within)
    assert sum(one.false_quiet for one in results) <= 40, seed


def test_a_thousand_times_the_agreed_loss_is_found_by_the_monitors_path() -> None:
    """Three to seven lost packets show it; that one of four takes three times the promise is below 1e-5."""
    seed = secrets.randbelow(2**31)
    results = [loss.rise((seed, number, 1000.0)) for number in range(4)]
    assert all(one.found_losses is not None and one.flaps == 0 for one in results), (seed, results)


def step_series(factor: float) -> Series:
    """Return 20 days of 5 min around 100 Mbit/s, with a step for the last two."""
    times = START_S + 300.0 * np.arange(20 * 288)
    noise = np.random.default_rng(1).normal(0, 0.02, len(times))
    start = 18 * 288
    values = 1e8 * (1 + noise) * np.where(np.arange(len(times)) >= start, factor, 1.0)
    return Series("available_bps", 300, 0.02, times, values, labels=[Label(start, len(times), factor)])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_half_of_the_bandwidth_gone_and_counts_from_the_first_sample(method: str) -> None:
    series = step_series(0.5)
    (delay,), others = delays(series, METHODS[method](series))
    most = 36 if "SLAC" in method else 5
    assert delay is not None and 1 <= delay <= most
    assert others == 0


def detector(**settings: Any) -> Any:
    """Return a detector with settings beside the least."""
    return native.ChangeDetector(json.dumps({"quantity": "rtt_s", "period_s": 1.0, **settings}))


def test_the_interface_is_json_and_goes_on_from_its_state() -> None:
    one = detector(agreed=0.032)
    for second in range(30):
        assert one.handle_sample(float(second), 0.032) is None
    again = native.ChangeDetector(json.dumps({"quantity": "rtt_s", "period_s": 1.0, "agreed": 0.032}), one.state())
    changes = [again.handle_sample(float(second), 0.048) for second in range(30, 40)]
    (change,) = [json.loads(text) for text in changes if text is not None]
    assert change["kind"] == "agreed_missed"
    assert change["since_s"] == 30.0 and change["found_s"] <= 34.0
    assert change["before"] == pytest.approx(0.032) and change["after"] == pytest.approx(0.048)
    assert change["worse"] is True and change["note"]
    assert again.benchmark(40.0) == pytest.approx((float("-inf"), 0.032, 0.0352))


def test_a_benchmark_that_is_not_known_is_none() -> None:
    one = detector()
    assert one.benchmark(0.0) is None
    assert [one.handle_sample(float(second), None) for second in range(4)] == [None] * 4
    assert json.loads(one.handle_sample(4.0, float("nan")))["kind"] == "silent"


@pytest.mark.parametrize(
    ("config", "state", "says"),
    [
        ("{}", None, "the detector: missing field `quantity`"),
        ('{"quantity": "rtt_s", "period_s": -1}', None, "period_s: -1 is not a number above 0"),
        ('{"quantity": "rtt_s", "period_s": 1, "perod": 1}', None, "unknown field `perod`"),
        ('{"quantity": "rtt_s", "period_s": 1}', "{}", "state: missing field"),
    ],
)
def test_bad_settings_and_states_are_named(config: str, state: str | None, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        native.ChangeDetector(config, state)


def test_a_likely_cause_is_json() -> None:
    evidence = {"changes": [{"quantity": "ttl", "before": 58, "after": 56}], "route_changed": True}
    verdict = json.loads(native.likely_cause(json.dumps(evidence)))
    assert verdict["cause"] == "route" and "58 to 56" in verdict["evidence"][0] and verdict["also"] == []
    with pytest.raises(ValueError, match="the evidence: missing field `changes`"):
        native.likely_cause("{}")
