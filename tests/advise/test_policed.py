"""A contract below the port's rate: a policer with a small bucket, next to nobody else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from elephan import api
from elephan.advise import advice
from elephan.advise.candidate import OPEN_WINDOW_BYTES, Candidate
from elephan.advise.draws import drawn
from elephan.advise.facts import PathFacts
from elephan.advise.measure import measured
from elephan.advise.plan import Plan
from elephan.advise.reasons import facts_text
from elephan.advise.scenario import scenario_of
from elephan.advise.simulation import Horizon, simulate
from elephan.advise.simulation import Path as SimulatedPath
from elephan.units import rate
from tests.hosts.conftest import Elephan

CONTRACT_BPS = 200e6
PAYLOAD = 1448 / 1500
SCENARIO = """\
[run]
duration = "20s"
[[node]]
name = "here"
[[node]]
name = "edge"
[[node]]
name = "far"
[[link]]
from = "here"
to = "edge"
bandwidth = "1Gbit/s"
delay = "1ms"
queue = "4MB"
policer = { rate = "200Mbit/s", burst = "64KiB" }
[[link]]
from = "edge"
to = "far"
bandwidth = "1Gbit/s"
delay = "19ms"
queue = "5MB"
[[flow]]
from = "here"
to = "far"
workload = { kind = "bulk", bytes = "1kB" }
"""


def test_a_host_that_sends_late_gives_a_wide_interval_of_the_policers_rate() -> None:
    """Behind a policer of 50 Mbit/s and 64 KiB a busy host found 14 to 31 Mbit/s, as a fact."""
    sent = {"loss, dense, 0.25 s": (0.6465, 5653, 5652), "loss, dense, 0.75 s": (0.8051, 16960, 14803)}
    dense = iter(sent.values())

    def tester(keys: Mapping[str, Any], _: float) -> dict[str, Any]:
        cost = {"bytes": 1000, "packets": 100, "seconds": 0.5}
        none = {"estimates": [], "refused": "the sender did not keep up", "notes": [], "cost": cost}
        if keys["test"] == "capacity":
            return {**none, "refused": None, "estimates": [estimate("capacity_bps", 301.5e6)]}
        if keys["test"] != "loss":
            return none
        if keys["share_ppm"] < 500_000:
            return {**none, "refused": None, "estimates": [estimate("rtt_min_s", 0.04), estimate("line_loss", 0.0)]}
        lost, packets, late = next(dense)
        notes = [f"{round(lost * packets)} of {packets} packets were lost", f"{late} packets left late"]
        return {"estimates": [estimate("line_loss", lost)], "refused": None, "notes": notes,
                "cost": {**cost, "packets": packets}}  # fmt: skip

    def estimate(quantity: str, value: float) -> dict[str, Any]:
        return {"quantity": quantity, "value": value, "low": value, "high": value}

    facts = measured(tester, 100e9)
    low, high = facts.ranges["policer_rate_bps"]
    assert low < 50e6 < high < 60e6 and facts.policer_rate_bps is not None
    assert abs(facts.policer_rate_bps - 50e6) < 0.2 * 50e6
    text = facts_text(facts)
    assert f"A policer lets {rate(facts.policer_rate_bps)} ({rate(low)} to {rate(high)}) through." in text
    assert any("this host is too busy" in note for note in facts.sources["policer"]["notes"])


def test_a_contract_next_to_nobody_gets_a_pace_below_it(
    elephan: Elephan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = Plan(Horizon(0.5, 2.0, 1.0), candidates=6, first_draws=1, harm_draws=2, batch=6, finalists=2, draws=2)
    monkeypatch.setattr(advice, "plan_of", lambda *arguments: quick)
    file, fitted = tmp_path / "policed.toml", tmp_path / "fitted.toml"
    file.write_text(SCENARIO)
    done = elephan("advise", file, "--for", "100GB", "--json", "--save", fitted)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["facts"]["policer_rate_bps"] == pytest.approx(CONTRACT_BPS, rel=0.05)
    # The difference from the port's rate is the policer's, and no others'.
    assert told["facts"]["competing_bps"] < 0.05 * 1e9 and told["facts"]["competing_flows"] == 0
    assert "Others take" not in told["reasons"][0]
    pace = told["candidate"]["pacing_bps"]
    assert 0.88 * CONTRACT_BPS * PAYLOAD < pace < CONTRACT_BPS * PAYLOAD
    assert told["goodput_bps"][1] > 0.88 * CONTRACT_BPS * PAYLOAD
    assert told["keeps_limit"]
    better = [row for row in told["table"] if row["keeps_limit"] and row["goodput_bps"] > 1.1 * told["goodput_bps"][1]]
    assert better == []
    # The true path gives the promised goodput, and its policer drops nothing.
    flow = f'connections = {told["candidate"]["streams"]}\nmax_pacing_rate = '
    flow += f'"{pace // told["candidate"]["streams"]}bit/s"\n'
    file.write_text(SCENARIO.replace('workload = { kind = "bulk", bytes = "1kB" }\n', flow))
    (record,) = api.run(file, store="none")
    (policed, *_) = record.links
    assert policed["dropped_by_policer"] == 0
    assert sum(flow["delivered_bytes"] for flow in record.flows) * 8 / 20 > 0.85 * CONTRACT_BPS * PAYLOAD
    assert "max_pacing_rate" in fitted.read_text()


def test_a_paced_candidate_is_simulated_as_the_copy_paces() -> None:
    """One stream: bulk data that the socket paces, and no application of a constant rate."""
    path = SimulatedPath(1e9, 0.04, queue_bytes=5e6, policer_rate_bps=CONTRACT_BPS, policer_burst_bytes=65_536)
    paced = Candidate("cubic", 1, OPEN_WINDOW_BYTES, pacing_bps=round(0.97 * CONTRACT_BPS * PAYLOAD))
    found = simulate(path, paced, Horizon(0.5, 6.0, 3.0), 1, with_references=False)
    assert found.copy_bps == pytest.approx(0.97 * CONTRACT_BPS * PAYLOAD, rel=0.01)
    text = scenario_of(PathFacts(1e9, 0.04, policer_rate_bps=CONTRACT_BPS), paced)
    assert f'max_pacing_rate = "{paced.pacing_bps}bit/s"' in text and "constant_rate" not in text


def test_a_policer_without_others_is_the_copys_own() -> None:
    facts = PathFacts(1e9, 0.04, queue_bytes=5e6, policer_rate_bps=CONTRACT_BPS, policer_burst_bytes=65_536)
    assert not any(path.policer_is_shared for path in drawn(facts, 10, 1))
    beside = PathFacts(1e9, 0.04, queue_bytes=5e6, policer_rate_bps=CONTRACT_BPS, competing_flows=2.0)
    assert any(path.policer_is_shared for path in drawn(beside, 10, 1))
