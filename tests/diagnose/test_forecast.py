"""Forecasts of flows that a policer limits: its rate is not the goodput of a flow that its drops slow down."""

from __future__ import annotations

from typing import Any

from elephan.diagnose.forecast import forecast
from elephan.diagnose.text import lines
from elephan.diagnose.watching import Watched

CONTRACT_BPS = 50_000_000


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


def test_a_flow_that_drops_slow_down_does_not_show_the_policers_rate() -> None:
    found = forecast(policed("cubic", 15e6))
    assert found.outcomes == [] and found.none_because is not None
    assert "cannot be measured here" in found.none_because and "--line-rate" in found.none_because


def test_with_the_policers_rate_bbr_gets_nearly_all_of_it() -> None:
    found = forecast(policed("cubic", 15e6), CONTRACT_BPS)
    (bbr,) = [one for one in found.outcomes if one.change == "with bbr"]
    assert 0.8 * CONTRACT_BPS < bbr.goodput_bps < CONTRACT_BPS
    assert found.as_it_is is not None and found.as_it_is.goodput_bps < 0.8 * CONTRACT_BPS
    assert not found.is_own_rate and found.assumed == "--line-rate"


def test_a_rate_that_is_the_flows_own_is_no_check_of_the_model() -> None:
    flow = policed("bbr", 45e6)
    found = forecast(flow)
    assert found.is_own_rate and found.line_rate_bps is not None
    text = lines(Watched([flow], 1, 0, 1, 0.0), [found])[1]
    assert "checks nothing" in text and "simulated as it is: " not in text.split("checks nothing")[1]
