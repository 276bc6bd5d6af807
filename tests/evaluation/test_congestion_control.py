"""A quick part of `make cc`: the same cases, the same tolerances
(evaluation/congestion_control/congestion_controls.toml), fewer of them."""

from __future__ import annotations

import csv
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from elephan.congestion_control import congestion_controls
from elephan.loss_response import cycles
from elephan.store import Series
from evaluation.congestion_control import bic_states, cases, judge, measuring, models
from evaluation.runner import ROOT, Runner

REFERENCE = cases.load()
CCS = {cc["name"]: cc for cc in REFERENCE["congestion_control"]}
QUICK_LOSS = 1e-4
"""Least loss that is run here: each decade below it takes ten times as many packets."""


@pytest.mark.parametrize("name", [name for name, cc in CCS.items() if models.is_published(cc)])
def test_the_mean_window_is_the_published_one(name: str) -> None:
    cells = [
        cell
        for cell in cases.response_cells(REFERENCE, CCS[name])
        if cell.key[0] == "periodic" and cell.key[1] >= QUICK_LOSS
    ]
    points = judge.points(REFERENCE, CCS[name], cells, measuring.measured(Runner(None), cells))
    assert len(points) == 3
    assert all(point.holds for point in points), "\n".join(str(point) for point in points)


def test_the_models_give_their_sources_numbers() -> None:
    """RFC 3649 and RFC 9438, their tables of the response function; Kelly: 0.08 / p at the loss; Tan: 0.25 / p^0.8."""
    assert cycles.highspeed(1e-5, 0.1).mean == pytest.approx(1795, rel=0.01)
    assert cycles.highspeed(1e-7, 0.1).mean == pytest.approx(83_981, rel=0.01)
    for loss, window in ((1e-4, 187), (1e-5, 1054), (1e-6, 5926), (1e-7, 33_325)):
        assert cycles.cubic(loss, 0.1, 0.4, 0.7).mean == pytest.approx(window, rel=0.01)
    assert cycles.scalable(1e-4, 0.1, 0.01, 0.125, 16).peak == pytest.approx(800)
    assert cycles.scalable(1e-4, 0.1, 0.01, 0.125, 16).mean == pytest.approx(1e4 / 13.42, rel=1e-3)
    assert cycles.compound(1e-5, 0.1, 0.125, 0.5, 0.75).mean == pytest.approx(0.25 * 1e-5**-0.8, rel=0.03)
    assert cycles.aimd(1e-4, 0.1, 1.0, 0.5).mean == pytest.approx(122.5, rel=1e-3)


def test_a_sum_over_round_trips_is_the_closed_form_where_there_is_one() -> None:
    summed = cycles.summed(1e-6, 0.5, lambda window, rounds, peak: 1.0)
    closed = cycles.aimd(1e-6, 0.1, 1.0, 0.5)
    assert summed.mean == pytest.approx(closed.mean, rel=1e-3)
    assert summed.peak == pytest.approx(closed.peak, rel=1e-3)


@pytest.mark.parametrize("loss", [1e-3, 1e-4, 1e-5])
def test_the_bounds_of_bic_are_where_the_papers_equations_end_up(loss: float) -> None:
    (bound,) = (one for one in CCS["bic"]["tolerance"] if one["from"] == loss)
    least, most = bic_states.steady_states(loss)
    assert bound["low"] == pytest.approx(least, abs=0.006)
    assert most < bound["high"] <= REFERENCE["response"]["tolerance"][1]


def test_the_tables_beside_the_page_have_its_names() -> None:
    for table in ("independent", "sharing"):
        with (ROOT / f"docs/results/congestion-control-{table}.csv").open(encoding="utf-8") as file:
            names = [line[0] for line in csv.reader(file)][1:]
        assert set(names) <= set(CCS), table
        page = (ROOT / "docs/results/congestion-control.md").read_text(encoding="utf-8")
        assert all(f"\n| {name} | " in page for name in names), table


def test_rows_of_highspeed_are_those_of_the_rfcs_appendix() -> None:
    """RFC 3649, appendix B: windows 38, 118, 221, 347 and 495 have 1 to 5, and 347 gives up 0.38."""
    rows = cycles.highspeed_rows()
    assert rows[:5] == pytest.approx([38, 118, 221, 347, 495], abs=1)
    assert cycles.highspeed_reduction(rows[3]) == pytest.approx(0.38, abs=0.005)
    assert cycles.highspeed_of_linux(1e-4, 0.1, 1.0).mean > cycles.highspeed(1e-4, 0.1).mean


def test_linuxs_scalable_is_kellys_where_it_counts_segments() -> None:
    kelly = cycles.scalable(1e-5, 0.1, 0.01, 0.125, 16.0)
    assert cycles.scalable_of_linux(1e-5, 0.1, 100.0, 1.0, 0.125).mean == pytest.approx(kelly.mean, rel=0.01)
    # Below 100 segments it is never slower than Reno.
    assert cycles.scalable_of_linux(1e-3, 0.1, 100.0, 1.0, 0.125).mean > cycles.scalable(1e-3, 0.1, 0.01, 0.125, 0).mean


def series(rates: list[list[float]], step_s: float = 0.1) -> Series:
    """Return a series with the goodput of some flows, a sample every `step_s`."""
    flows, samples = len(rates), len(rates[0])
    columns = {
        "time_s": np.repeat((np.arange(samples) + 1) * step_s, flows),
        "flow": np.tile(np.arange(flows), samples),
        "goodput_bps": np.array(rates).T.flatten(),
    }
    return Series.from_columns(columns, {})


def test_a_newcomer_has_converged_when_shares_stay_equal() -> None:
    """It joins at 10 s, crosses the other's rate at 20 s for 5 s only, and stays at it from 40 s on."""
    record: Any = None
    newcomer = [0.0] * 100 + [1.0] * 100 + [9.0] * 50 + [1.0] * 150 + [9.0] * 400
    found = measuring.convergence(record, series([[9.0] * 800, newcomer]), join_s=10, window_s=2, hold_s=20, jain=0.95)
    assert found["seconds"] == pytest.approx(30 + 2, abs=1.5)
    never = measuring.convergence(record, series([[9.0] * 800, newcomer[:700] + [1.0] * 100]), 10, 2, 40, 0.95)
    assert never["seconds"] is None


def test_a_mean_window_is_packets_per_round_trip() -> None:
    """100 packets per 0.1 s step, RTT 0.2 s: a window of 200, whatever the cycle."""
    rate = 100 * 8 * measuring.PAYLOAD_BYTES / 0.1
    record: Any = SimpleNamespace(metrics={"timeouts": 0, "fast_retransmits": 1, "retransmitted_segments": 1})
    found = measuring.response(record, series([[rate] * 400]), period=1000, warmup=2, counted=30, rtt_ns=200_000_000)
    assert found["mean"] == pytest.approx(200)
    assert found["drift"] == pytest.approx(0, abs=1e-9)


def test_every_built_in_cc_is_measured() -> None:
    missing = {cc.name for cc in congestion_controls()} - {
        cc["congestion_control"] for cc in REFERENCE["congestion_control"]
    }
    assert not missing, (
        f"{', '.join(sorted(missing))}: say in evaluation/congestion_control/congestion_controls.toml what is "
        "published of it"
    )


def test_the_page_has_every_cc() -> None:
    page = ROOT / "docs" / "results" / "congestion-control.md"
    with page.with_name("congestion-control-independent.csv").open(encoding="utf-8", newline="") as file:
        independent = {row["congestion_control"] for row in csv.DictReader(file)}
    for name in CCS:
        assert page.read_text(encoding="utf-8").count(f"| {name} |") >= 2, f"{name}: run `make cc`"
        assert name in independent, f"{name}: run `make cc`"
