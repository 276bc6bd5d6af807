"""Forecasts of flows that a policer limits: its rate is not the goodput of a flow that its drops slow down."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from elephan.cli.main import call
from elephan.core import native
from elephan.diagnose.forecast import Policer, forecast
from elephan.diagnose.text import lines
from elephan.diagnose.watching import Watched
from elephan.kernel.maps import Loaded

CONTRACT_BPS = 50_000_000
RECORDED = Path(__file__).parents[2] / "crates/diagnosis/tests/recorded"


def policed(control: str, goodput_bps: float) -> dict[str, Any]:
    counters = {
        "min_rtt_us": 40_000.0,
        "srtt_us": [40_000.0, 40_500.0, 42_000.0],
        "mss_bytes": 1448,
        "in_flight_bytes": 90_000.0,
        "retransmitted": 0.01,
    }
    return {
        "counters": counters,
        "limit": "policer",
        "confidence": "clear",
        "because": "losses in bursts",
        "congestion_control": control,
        "goodput_bps": goodput_bps,
        "bytes": 1,
        "role": "sender",
        "local": "192.0.2.1:1",
        "remote": "192.0.2.2:2",
    }


def test_the_rate_of_the_line_is_not_the_policers() -> None:
    for line_rate_bps in (None, 6 * CONTRACT_BPS):
        found = forecast(policed("cubic", 15e6), line_rate_bps)
        assert found.outcomes == [] and found.none_because is not None
        assert "elephan measure policer" in found.none_because and "--policer" in found.none_because


def test_with_the_policers_rate_bbr_gets_nearly_all_of_it() -> None:
    burst_bytes = 65_536
    alone = forecast(policed("cubic", 15e6), 6 * CONTRACT_BPS, Policer(CONTRACT_BPS, burst_bytes)).as_it_is
    assert alone is not None and alone.goodput_bps < 0.8 * CONTRACT_BPS
    # The flow has what its model has.
    flow = policed("cubic", alone.goodput_bps)
    found = forecast(flow, 6 * CONTRACT_BPS, Policer(CONTRACT_BPS, burst_bytes))
    (bbr,) = [one for one in found.outcomes if one.change == "with bbr"]
    assert 0.8 * CONTRACT_BPS < bbr.goodput_bps < CONTRACT_BPS
    assert not found.is_own_rate and found.none_because is None
    text = lines(Watched([flow], 1, 0, 1, 0.0), [found])[1]
    assert "policer of 50.0 Mbit/s, burst 65.5 kB, on a path of 300 Mbit/s" in text


def test_other_controls_behind_a_bbrs_policer_need_its_burst() -> None:
    """BBR had 47 of 50 Mbit/s with a burst of 64 KiB, and CUBIC 12.7: 43.6 had been forecast from BBR's flow."""
    found = forecast(policed("bbr", 45e6))
    assert found.outcomes == [] and "has the policer's rate, 45.0 Mbit/s" in str(found.none_because)


def test_a_rate_that_is_the_flows_own_is_no_check_of_the_model() -> None:
    flow = {**policed("cubic", 45e6), "limit": "queue"}
    found = forecast(flow)
    assert found.is_own_rate and found.outcomes
    text = lines(Watched([flow], 1, 0, 1, 0.0), [found])[1]
    assert "path of 46.2 Mbit/s, the flow's own goodput with headers: nothing checks that" in text
    assert "simulated as it is" not in text


def lossy(goodput_bps: float, losses_at_a_time: float, retransmitted: float, episodes: int = 3) -> dict[str, Any]:
    flow = policed("cubic", goodput_bps)
    counts = {"losses_per_episode": losses_at_a_time, "loss_episodes": episodes, "retransmitted": retransmitted}
    return {**flow, "limit": "loss", "confidence": "likely", "counters": {**flow["counters"], **counts}}


def test_losses_that_a_policer_may_have_made_forecast_nothing() -> None:
    found = forecast(lossy(15e6, 4.2, 0.001), 2 * CONTRACT_BPS)
    assert found.outcomes == [] and "elephan measure policer" in str(found.none_because)
    # None at all while it was watched: their rate is not known, and is not 0 either.
    assert "watch longer" in str(forecast(lossy(15e6, 0.0, 0.0, 0), 2 * CONTRACT_BPS).none_because)


def test_a_model_that_is_not_the_path_forecasts_nothing() -> None:
    # CUBIC has about 1.054 (0.04 s / 1e-3)^0.75 = 16.8, or Reno's 38.5 segments a round trip: 11 Mbit/s.
    agrees = forecast(lossy(11.2e6, 1.0, 1e-3), 2 * CONTRACT_BPS)
    assert len(agrees.outcomes) == 3 and agrees.none_because is None
    flow = lossy(60e6, 1.0, 1e-3)
    found = forecast(flow, 2 * CONTRACT_BPS)
    assert found.outcomes == [] and found.as_it_is is not None
    text = lines(Watched([flow], 1, 0, 1, 0.0), [found])[1]
    assert text.startswith("    no forecast: simulated as it is it has ")
    assert "measured 60.0 Mbit/s: they disagree" in text
    assert "with bbr" not in text


def recorded(name: str, control: str) -> str:
    """Return samples of crates/diagnosis as the core has them of a flow."""
    rows = list(csv.reader((RECORDED / f"{name}.csv").read_text().splitlines()[1:]))
    samples = [
        {key: json.loads(value) for key, value in zip(rows[0], row, strict=True) if value} for row in rows[1:]
    ]
    flow = {"local": "192.0.2.1:50000", "remote": "192.0.2.2:5001", "congestion_control": control, "ended": False}
    return json.dumps({"flows": [{**flow, "samples": samples}], "looks": len(samples), "cost_ns": 1})


def command(name: str, control: str, capsys: Any, monkeypatch: Any, *options: str) -> str:
    monkeypatch.setattr(native, "watch_flows", lambda *_, **__: recorded(name, control))
    assert call(["diagnose", "--seconds", "0.1", *options]) == 0
    return str(capsys.readouterr().out)


def test_the_command_forecasts_nothing_beyond_a_policer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flow was recorded behind a policer below 18 Mbit/s: no other control gets more than that."""
    text = command("policer-cubic", "cubic", capsys, monkeypatch, "--line-rate", "300Mbit/s")
    assert "limited by a policer" in text and "with bbr" not in text
    assert "no forecast: its drops keep it below the policer's rate" in text and "elephan measure policer" in text


def test_a_policer_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for text, expected in (
        ("50Mbit/s", "--policer 50Mbit/s: a rate and a burst are needed, such as 50Mbit/s,64KiB"),
        ("50,64KiB", '--policer 50,64KiB: "50" is not a rate with a unit'),
        ("50Mbit/s,64", '--policer 50Mbit/s,64: "64" is not a size with a unit'),
        ("50Mbit/s,0B", "--policer 50Mbit/s,0B: more than nothing"),
    ):
        assert call(["diagnose", "--policer", text]) == 2
        err = capsys.readouterr().err
        assert expected in err and err.count("\n") == 1


def test_a_runs_control_has_its_algorithms_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elephan.kernel.names.loaded", lambda: [Loaded("elephan_k85d700", 1, True, "cubic=run 85d7")])
    text = command("loss-reno", "elephan_k85d700", capsys, monkeypatch, "--no-forecast")
    assert ", cubic: " in text and "elephan_k" not in text
