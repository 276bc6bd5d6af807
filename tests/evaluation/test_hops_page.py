"""Tables of docs/results/hops.md, from what was measured."""

from __future__ import annotations

from typing import Any

from elephan.path.report import Report
from evaluation.path_tests.hops import Cell, row_of

CORE = {"refused_packets": 0, "cpu_ns": 4e8, "elapsed_ns": 1e9, "waited_p99_ns": None, "stalls": 1, "precedence": True}
REPORT = Report(("forward", "reverse"), CORE | {"late_p99_ns": 300_000, "stalled_ns": 0, "failure": None}, 0, 0)


def estimate(quantity: str, value: float, low: float, high: float) -> dict[str, Any]:
    """Return an estimate as an outcome has it."""
    return {"quantity": quantity, "value": value, "low": low, "high": high}


def test_a_row_has_each_hops_error_and_whether_the_interval_holds_the_truth() -> None:
    found = [
        estimate("hop_1_capacity_bps", 101e6, 99e6, 105e6),
        estimate("hop_2_capacity_bps", 9e6, 8.9e6, 9.1e6),
        estimate("hop_1_delay_s", 1e-3, 1e-3, 1e-3),
        estimate("hop_3_delay_s", 3.3e-3, 2e-3, 4e-3),
    ]
    outcome = {"estimates": found, "cost": {"packets": 10, "bytes": 10_000, "seconds": 8.0}}
    row = row_of(Cell(10_000_000, 0.3), 24, [(outcome, REPORT)])
    assert row[:3] == ["10 Mbit/s", "30 %", "24"]
    assert row[3:9] == ["+1.0", "-10.0*", "refused", "+0.0", "refused", "+10.0"]
    assert row[9:] == ["8 s, 0.10 %", "1 of 1"]


def test_cross_traffic_is_on_for_the_load_in_the_mean() -> None:
    scenario = Cell(10_000_000, 0.6).scenario()
    # Two sources each way, each on for 5 of 16.667 ms: 30 % each.
    assert scenario.count('on = "5ms"\noff = "11667us"') == 4
    assert "background" not in Cell(10_000_000).scenario()
