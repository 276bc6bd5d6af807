"""Estimates of what runs take: from known ones to unknown ones, with a spread; and progress that weighs by them."""

from __future__ import annotations

import io
import math
import random
from pathlib import Path

import pytest

from elephan.api import jobs_of, load
from elephan.scenario import Scenario
from elephan.sweep import progress
from elephan.sweep.costs import Costs
from elephan.sweep.progress import Bars

SWEEP = """
[run]
duration = "1s"
repetitions = {repetitions}
[path]
bandwidth = "20Mbit/s"
rtt = "20ms"
[[flow]]
name = "copy"
workload = {{ kind = "bulk", bytes = "1MB" }}
[sweep]
"flow.congestion_control" = ["reno", "cubic", "vegas"]
"flow.workload.bytes" = ["1MB", "10MB", "100MB", "1GB"]
"path.rtt" = {{ from = "1ms", to = "30ms", step = "1ms" }}
"""


def sweep(folder: Path, repetitions: int = 2) -> Scenario:
    """Return a sweep of three loops."""
    file = folder / "uneven.toml"
    file.write_text(SWEEP.format(repetitions=repetitions))
    return load(file)


def true_s(scenario: Scenario, number: int) -> float:
    """Return the time that a run is to take, s: a thousand times as much for the largest file as for the smallest."""
    combination = scenario.runs.run(number).combination
    cc, size, rtt = combination // 120, combination // 30 % 4, combination % 30
    return 0.01 * (1 + cc) * 10**size * (1 + rtt / 30)


def test_a_few_known_runs_tell_the_time_of_all(tmp_path: Path) -> None:
    scenario = sweep(tmp_path)
    costs, draw = Costs(scenario), random.Random(3)
    assert costs.total(range(len(costs))) is None
    for number in costs.sample(24):
        costs.learn(number, true_s(scenario, number) * math.exp(draw.gauss(0, 0.1)))
    whole = sum(true_s(scenario, number) for number in range(len(costs)))
    found = costs.total(range(len(costs)))
    assert found is not None
    assert found.least <= whole <= found.most
    assert found.seconds == pytest.approx(whole, rel=0.25)
    part = [number for number in range(len(costs)) if scenario.runs.run(number).combination // 30 % 4 == 3]
    of_large = costs.total(part)
    assert of_large is not None and of_large.seconds > 0.8 * found.seconds


def test_the_runs_to_try_meet_each_value_of_each_loop(tmp_path: Path) -> None:
    scenario = sweep(tmp_path)
    chosen = Costs(scenario).sample(24)
    assert len(chosen) <= 24
    combinations = [scenario.runs.run(number).combination for number in chosen]
    assert {one // 120 for one in combinations} == {0, 1, 2}
    assert {one // 30 % 4 for one in combinations} == {0, 1, 2, 3}


def test_known_runs_of_one_value_say_little_of_others_and_the_spread_is_wide(tmp_path: Path) -> None:
    scenario = sweep(tmp_path)
    costs = Costs(scenario)
    costs.learn(0, true_s(scenario, 0))
    one = costs.total(range(len(costs)))
    assert one is not None and one.most >= 2 * one.seconds


def test_a_combination_has_the_number_that_the_sweep_gives_it(tmp_path: Path) -> None:
    scenario = sweep(tmp_path)
    costs = Costs(scenario)
    values = scenario.runs.values(costs.combination([2, 1, 7]))
    assert values == {"flow.congestion_control": "vegas", "flow.workload.bytes": "10MB", "path.rtt": "8ms"}


def test_progress_weighs_runs_by_what_their_kind_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of the largest file take nearly all the time: when all others have ended, a tenth of the work is done."""
    scenario = sweep(tmp_path, repetitions=1)
    now_s = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s[0])
    jobs = jobs_of(scenario)
    bars = Bars(stream=io.StringIO())
    bars.expect(Costs(scenario))
    bars.start(len(jobs))
    large = [number for number in range(len(jobs)) if number // 30 % 4 == 3]
    small = [number for number in range(len(jobs)) if number // 30 % 4 != 3]
    ended = [*small, large[0]]
    for number in ended:
        bars.began(number, jobs[0])
        now_s[0] += true_s(scenario, number)
        bars.took(number, true_s(scenario, number))
        bars.ended(number)
    now_s[0] += progress.REFIT_S + 0.1
    whole_s = sum(true_s(scenario, number) for number in range(len(jobs)))
    done_s = sum(true_s(scenario, number) for number in ended)
    assert len(ended) > 0.7 * len(jobs) and done_s < 0.15 * whole_s
    assert bars.share() == pytest.approx(done_s / whole_s, rel=0.3)


def test_stored_runs_are_no_work_and_tell_what_others_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = sweep(tmp_path, repetitions=1)
    now_s = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s[0])
    jobs = jobs_of(scenario)
    bars = Bars(stream=io.StringIO())
    bars.expect(Costs(scenario))
    bars.start(len(jobs))
    for number in range(0, len(jobs) - 2):
        bars.found(number)
        bars.took(number, true_s(scenario, number))
    now_s[0] += 60
    bars.began(358, jobs[358])
    bars.began(359, jobs[359])
    bars.moved(358, 1, 2)
    now_s[0] += 15
    assert bars.share() == pytest.approx(0.25, abs=0.01)
    # The minute of looking up tells nothing of the runs.
    assert bars.line(now_s[0]).endswith("left") and "about 45" in bars.line(now_s[0])
