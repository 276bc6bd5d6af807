"""The trade figure of the paper dsan: every congestion control is in it, and its cells agree with the records."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import elephan
from elephan.congestion_control import congestion_controls
from elephan.papers import drawing
from evaluation.papers.dsan import trade

SCENARIO = Path(__file__).resolve().parents[2] / "evaluation" / "papers" / "dsan" / "trade.toml"


def test_every_cc_is_compared() -> None:
    swept = tomllib.loads(SCENARIO.read_text(encoding="utf-8"))["sweep"]["flow.copy.congestion_control"]
    named = {entry if isinstance(entry, str) else entry["name"] for entry in swept}
    assert named == {cc.name for cc in congestion_controls()}, "trade.toml has every built-in congestion control"


@pytest.fixture(scope="module")
def grid() -> trade.Grid:
    """Two paths and three congestion controls, some seconds of 50 Mbit/s."""
    changes = {
        "path.bandwidth": "50Mbit/s",
        "run.duration": "12s",
        "measure.warmup": "4s",
        "sweep": {
            "path.rtt": ["25ms", "67ms"],
            "path.loss": [1e-3],
            "flow.copy.congestion_control": [
                "reno",
                {"name": "storage_friendly", "reduction": "1/8", "congestion_avoidance": True},
                {"name": "storage_friendly", "reduction": "1/8", "congestion_avoidance": False},
            ],
        },
    }
    return trade.grid_of(list(elephan.run(SCENARIO, changes, store="none")))


def test_what_carries_more_stands_first_and_leaves_less(grid: trade.Grid) -> None:
    assert list(grid) == ["both", "1/8 reduction", "reno"]
    assert all(list(cells) == [(25, 1e-3), (67, 1e-3)] for cells in grid.values())
    both, reno = grid["both"][25, 1e-3], grid["reno"][25, 1e-3]
    assert both.goodput > 2 * reno.goodput
    assert both.sent_again > 5 * reno.sent_again
    assert both.neighbour < reno.neighbour
    assert 0 <= reno.wait_ms <= 25
    # Reno under 1e-3: sqrt(1.5 / p) segments of 1448 B per 25 ms, 2.2 MB/s, and as much for its neighbour.
    assert reno.goodput == pytest.approx(2.2, rel=0.3)
    assert reno.neighbour == pytest.approx(2.2, rel=0.3)


def test_the_figure_is_drawn(grid: trade.Grid) -> None:
    assert drawing.png(trade.figure(grid)).startswith(b"\x89PNG")
    text = drawing.svg(trade.figure(grid))
    assert all(name in text for name in grid)
