"""Facts of paths by the simulated path tests, and the advice that they make."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import pytest

from elephan import api
from elephan.advise.advice import advise
from elephan.advise.candidate import OPEN_WINDOW_BYTES, Candidate
from elephan.advise.candidates import candidates_of, ordinary
from elephan.advise.draws import drawn, middle
from elephan.advise.facts import PathFacts
from elephan.advise.harm import Limit, excess_of, harm_of
from elephan.advise.measure import facts_of_scenario, measured
from elephan.advise.plan import PACKETS_PER_S, Plan, plan_of
from elephan.advise.scenario import scenario_of
from elephan.advise.simulation import Horizon, Path, packets_of, simulate
from elephan.cli.main import call
from elephan.core import native
from elephan.errors import RunError
from evaluation.advice import cells

QUICK = Plan(Horizon(0.6, 2.5), candidates=10, first_draws=1, harm_draws=2, batch=5, finalists=2, draws=3)


def test_facts_of_a_lossy_idle_path(lossy: FilePath) -> None:
    facts = facts_of_scenario(lossy, 10**10)
    assert facts.rate_bps == pytest.approx(40e6, rel=0.02)
    assert facts.rtt_s == pytest.approx(0.04, rel=0.02)
    assert facts.loss == 3e-3 and "loss" not in facts.ranges
    assert facts.queue_bytes == pytest.approx(100_000, rel=0.15)
    assert facts.policer_rate_bps is None
    costs = [one["cost"] for one in facts.sources.values() if one["cost"]]
    assert sum(cost["seconds"] for cost in costs) <= 20
    assert sum(cost["bytes"] for cost in costs) <= 1e8


def test_a_small_copy_has_few_bytes_for_tests(lossy: FilePath) -> None:
    facts = facts_of_scenario(lossy, 80_000_000)
    spent = sum(one["cost"]["bytes"] for one in facts.sources.values() if one["cost"])
    assert spent <= 800_000
    assert facts.ranges["queue_bytes"][0] < facts.queue_bytes < facts.ranges["queue_bytes"][1]
    assert facts.sources["queue"]["refused"], "as many bytes as fill no queue"
    with pytest.raises(RunError, match="--for"):
        facts_of_scenario(lossy, 1_000_000)


def test_a_policer_is_found_beside_competing_flows() -> None:
    path = Path(100e6, 0.03, queue_bytes=375_000, policer_rate_bps=40e6, policer_burst_bytes=400_000)
    beside = replace(path, competitors=("cubic", "cubic"))
    for one in (path, beside):
        facts = cells.facts_of(cells.Cell(0, 5, one))
        assert facts.policer_rate_bps == pytest.approx(40e6, rel=0.25), one
    assert facts.competing_flows >= 1 and facts.competing_bps > 30e6


def test_a_dead_path_has_no_facts() -> None:
    refusal = {
        "estimates": [],
        "refused": "0 of 60 packets arrived",
        "notes": [],
        "cost": {"packets": 60, "bytes": 90_000, "seconds": 1.0},
    }
    with pytest.raises(RunError, match="0 of 60 packets arrived"):
        measured(lambda test, within_s: refusal, 10**10)


FACTS = PathFacts(40e6, 0.04, loss=3e-3, queue_bytes=100_000, ranges={"loss": (2e-3, 4e-3), "queue_bytes": (8e4, 1e5)})


def test_drawn_paths_are_in_the_ranges_and_the_first_is_the_middle() -> None:
    paths = drawn(FACTS, 9, 1)
    assert paths[0] == middle(FACTS) and paths == drawn(FACTS, 9, 1) != drawn(FACTS, 9, 2)
    assert all(1e-3 <= one.loss <= 5e-3 and 7e4 <= one.queue_bytes <= 1.1e5 for one in paths)
    losses = [one.loss for one in paths[1:]]
    assert min(losses) < 2.5e-3 and max(losses) > 3.5e-3, "of every part of the range"
    unseen = drawn(replace(FACTS, loss=0.0, ranges={"loss": (0.0, 1e-4)}), 9, 1)
    assert 0 < sum(one.loss > 0 for one in unseen) < 9


def test_harm_is_the_share_that_a_flow_loses() -> None:
    without, beside = [(100.0, 50.0), (100.0, 50.0)], [(50.0, 50.0), (70.0, 60.0)]
    assert harm_of(without, beside) == pytest.approx((0.4, -0.1))
    assert excess_of(Limit(0.3), without, without, beside)[0] == pytest.approx(0.1)
    # Four ordinary flows do as much as the candidate: nothing beyond.
    assert excess_of(Limit(), without, beside, beside)[0] == 0
    # They do no harm: the least limit counts.
    assert excess_of(Limit(), without, without, beside)[0] == pytest.approx(0.35)
    assert "4 ordinary flows" in Limit().text and "5%" in Limit(0.05).text


def test_advice_for_a_lossy_path_beats_four_streams_and_keeps_the_limit() -> None:
    advice = advise(FACTS, bytes_to_copy=10**10, plan=QUICK, workers=1)
    again = advise(FACTS, bytes_to_copy=10**10, plan=QUICK, workers=2)
    assert advice.candidate == again.candidate and advice.goodput_bps == again.goodput_bps
    assert advice.keeps_limit and advice.table == again.table
    low, mid, high = advice.goodput_bps
    assert 0 < low <= mid <= high <= 40e6
    four = next(row for row in advice.table if row["candidate"] == "4 streams of cubic")
    assert mid >= 0.95 * four["goodput_bps"]
    assert all(0 <= band[0] <= band[1] <= band[2] <= 1 for band in advice.harm.values())
    assert advice.reasons[0].startswith("The path carries 40.0 Mbit/s")
    assert not advice.simulated["is_late"]


def test_a_strict_limit_gives_a_politer_candidate() -> None:
    facts = PathFacts(40e6, 0.04, queue_bytes=200_000)
    strict = advise(facts, bytes_to_copy=10**10, harm_limit=0.05, plan=QUICK, workers=1)
    usual = advise(facts, bytes_to_copy=10**10, plan=QUICK, workers=1)
    assert max(band[1] for band in strict.harm.values()) < max(band[1] for band in usual.harm.values())
    assert strict.is_operators and not usual.is_operators
    if not strict.keeps_limit:
        assert any("least harm" in reason for reason in strict.reasons)


def test_a_machine_without_time_still_gives_an_answer() -> None:
    advice = advise(FACTS, bytes_to_copy=10**10, plan=QUICK, workers=1, budget_s=0.0)
    assert advice.simulated["is_late"] and advice.goodput_bps[1] > 0


def slow_simulate(spec: str, progress: Any = None, interval_s: float = 0.1, cores: int = 1) -> Any:
    """Simulate as a machine does on which each run takes seconds."""
    ends_s = time.monotonic() + 4.0
    while time.monotonic() < ends_s:
        if progress is not None and progress(0, 1):
            raise native.Stopped("the progress callback asked the run to stop")
        time.sleep(interval_s)
    return native.simulate(spec, progress, interval_s, cores)


@pytest.mark.parametrize("budget_s", [1.0, 10.0])
def test_the_time_of_an_advice_is_by_the_clock(
    budget_s: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: FilePath
) -> None:
    """A run that was under way went on, and the forecast's began without an end: 30 s took 3 min 20 s."""
    file = tmp_path / "path.toml"
    file.write_text('[run]\nduration = "5s"\n[path]\nbandwidth = "40Mbit/s"\nrtt = "40ms"\n[[flow]]\nstart = "4s"\n')
    monkeypatch.setattr("elephan.cli.advise._facts", lambda *_: FACTS)
    monkeypatch.setattr("elephan.advise.advice.BUDGET_S", budget_s)
    monkeypatch.setattr("elephan.control_process.simulate", slow_simulate)
    began_s = time.monotonic()
    assert call(["advise", str(file), "--for", "10GB"]) == 0
    took_s = time.monotonic() - began_s
    out, err = capsys.readouterr()
    assert took_s < budget_s + 3.0, out
    assert "the time ran out before all were made" in out and "goodput: " in out and "candidates on " in err


@pytest.mark.parametrize("is_measured", [False, True])
def test_a_queue_that_was_not_measured_is_an_assumption(
    is_measured: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    estimates = [{"quantity": "queue_bytes", "value": 2.89e6, "low": 2.8e6, "high": 3e6}] if is_measured else []
    queue = {"estimates": estimates, "refused": None if is_measured else "no time is left for it"}
    facts = replace(FACTS, queue_bytes=2.89e6, ranges={"queue_bytes": (0.72e6, 5.78e6)}, sources={"queue": queue})
    monkeypatch.setattr("elephan.cli.advise._facts", lambda *_: facts)
    monkeypatch.setattr("elephan.advise.advice.BUDGET_S", 0.5)
    assert call(["advise", "192.0.2.7"]) == 0
    out = capsys.readouterr().out
    assert ("has a queue of 2.89 MB" in out) == is_measured
    assumed = "Its queue was not measured: 2.89 MB are assumed (720 kB to 5.78 MB; the path holds 200 kB"
    assert (assumed in out) != is_measured


def test_candidates_fit_the_path() -> None:
    path = Path(1e9, 0.05, policer_rate_bps=1e8, policer_burst_bytes=1e6)
    found = candidates_of(path, 1e9)
    assert found[0] == ordinary(4) and len(found) == len(set(found))
    assert any(one.pacing_bps and 0.9e8 < one.pacing_bps < 1e8 for one in found)
    assert all(one.pacing_bps is None or one.pacing_bps < 1e8 for one in found)
    assert {one.control for one in candidates_of(path, 1e9, ["reno"])} == {"reno"}


def test_a_plan_fits_its_time() -> None:
    for rate, rtt in ((1e7, 0.005), (1e9, 0.05), (1e10, 0.2)):
        facts = PathFacts(rate, rtt, queue_bytes=rate * rtt / 8)
        plan = plan_of(facts, 1e12, 60)
        runs = plan.candidates * plan.first_draws + (2 + 2 * plan.batch) * plan.harm_draws
        runs += 2 * plan.finalists * plan.draws
        assert runs * packets_of(middle(facts), plan.horizon) <= 60 * PACKETS_PER_S * 1.25
        assert plan.horizon.copy_s >= 10 * rtt


def test_the_fitted_scenario_is_a_scenario(tmp_path: FilePath) -> None:
    candidate = Candidate("cubic", 3, 100_000)
    bursty = replace(FACTS, competing_flows=2.0, loss_burst=3.0)
    policed = replace(bursty, policer_rate_bps=2e7, policer_burst_bytes=1e5)
    for number, facts in enumerate((FACTS, policed, replace(FACTS, competing_bps=1e7))):
        file = tmp_path / f"{number}.toml"
        chosen = candidate if number else replace(candidate, window_bytes=OPEN_WINDOW_BYTES, pacing_bps=10**7)
        file.write_text(scenario_of(facts, chosen, 2.0), encoding="utf-8")
        (record,) = api.run(file, store="none")
        assert record.flows[-1]["goodput_bps"] > 0


def test_harm_needs_no_copy_and_a_copy_takes_from_others() -> None:
    path, horizon = Path(20e6, 0.02, queue_bytes=50_000), Horizon(1.0, 4.0)
    alone = simulate(path, None, horizon, 1, with_references=True)
    beside = simulate(path, ordinary(8), horizon, 1, with_references=True)
    assert alone.copy_bps == 0 and sum(alone.references_bps) == pytest.approx(19e6, rel=0.1)
    assert sum(beside.references_bps) + beside.copy_bps == pytest.approx(19e6, rel=0.1)
    assert max(harm_of([alone.references_bps], [beside.references_bps])) > 0.4


def test_cells_come_from_their_seed_alone() -> None:
    assert cells.drawn(7, 5) == cells.drawn(7, 9)[:5] != cells.drawn(8, 5)
    many = cells.drawn(random.randrange(1 << 30), 200)
    assert all(10e6 <= one.path.rate_bps <= 10e9 and 0.005 <= one.path.rtt_s <= 0.2 for one in many)
    assert {len(one.path.competitors) for one in many} == set(range(6))
