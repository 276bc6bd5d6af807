"""The paper dr: the order of the three congestion controls, on the points of its grid that take least."""

from __future__ import annotations

from pathlib import Path

import pytest

import elephan
from elephan import papers
from elephan.papers.catalogue import find, folder
from elephan.papers.verdict import Verdict, judge
from evaluation.papers.dr.congestion_controls import JUDGED, UNTUNED_BYTES, Point, goodputs_of, in_order

SEGMENTS = UNTUNED_BYTES // 1448


def test_in_order_means_at_least_within_a_hundredth() -> None:
    assert in_order({"reno": 2.0, "bic": 2.0, "fast": 2.0})
    assert in_order({"reno": 1.0, "bic": 2.0, "fast": 1.99})
    assert not in_order({"reno": 1.0, "bic": 2.0, "fast": 1.97})
    assert not in_order({"reno": 2.1, "bic": 2.0, "fast": 3.0})


def test_equal_without_loss_and_fast_then_bic_then_reno_with_loss(tmp_path: Path) -> None:
    changes = {
        "run.duration": "40s",
        "run.repetitions": 2,
        "sweep.flow.window": '["65535B"]',
        "sweep.path.loss": "[0, 0.01]",
        "sweep.flow.connections": "[1]",
    }
    results = elephan.run(folder() / "dr" / "fig4.toml", changes, store=str(tmp_path / "store.sqlite"))
    goodputs = goodputs_of(list(results))
    clean, lossy = goodputs[Point(UNTUNED_BYTES, 0.0, 1)], goodputs[Point(UNTUNED_BYTES, 0.01, 1)]
    # Window over RTT; a segment less where ACKs of two leave one over, and transmission on top of the 32 ms.
    assert all(value == pytest.approx(SEGMENTS * 1448 / 0.032 / 1e6, rel=0.04) for value in clean.values())
    assert in_order(clean)
    reno, bic, fast = (lossy[name] for name in JUDGED)
    assert 1.1 * reno < bic and 1.3 * bic < fast
    assert reno < 0.5 * clean["reno"]


def test_a_window_at_one_end_gains_nothing(tmp_path: Path) -> None:
    done = papers.run("dr", None, str(tmp_path / "store.sqlite"), claims=["dr.window"])
    assert done.judgements[0].verdict is Verdict.REPRODUCED
    measured = done.evaluation.measured["dr.window"]
    assert measured["product"] == pytest.approx(180_000)
    assert measured["both"] > 2.5 * measured["neither"]


def test_every_point_of_the_grid_is_counted() -> None:
    from elephan.scenario import load

    points = load(folder() / "dr" / "fig4.toml").points()
    claim = find("dr").claim("dr.fig4")
    congestion_controls, repetitions = 4, 3
    assert len(points) == claim.paper_value("points_in_order") * congestion_controls * repetitions


def test_a_point_out_of_order_leaves_ordering_holds_and_a_mean_out_of_order_differs() -> None:
    claim = find("dr").claim("dr.fig4")
    measured = {item.name: item.paper for item in claim.value}
    measured |= {name: 2.0 for order in claim.order for name in order.rising}
    assert judge(claim, measured).verdict is Verdict.REPRODUCED
    assert judge(claim, {**measured, "points_in_order": 59.0}).verdict is Verdict.ORDERING_HOLDS
    assert judge(claim, {**measured, claim.order[0].rising[2]: 1.9}).verdict is Verdict.DIFFERS
