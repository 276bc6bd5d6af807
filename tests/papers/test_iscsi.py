"""The paper iscsi: its introduction's equations, and its scenarios on a path small enough for seconds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import elephan
from elephan.papers.catalogue import find, folder
from elephan.papers.evaluation import path_packets
from elephan.papers.verdict import Verdict, judge
from evaluation.papers.iscsi.intro import growth
from evaluation.papers.iscsi.sawtooth import (
    Window,
    bottom_for_loss,
    constant,
    line_window,
    loss_for_window,
    rounds_to_recover,
)

SMALL = {"path.bandwidth": "12Mbit/s"}
"""100 packets of 1500 B in 100 ms, in place of the paper's 8333."""


def test_the_papers_numbers_follow_from_its_parameters_and_growth() -> None:
    window = path_packets(1e9, 0.1, 1500)
    assert window == pytest.approx(8333, abs=1)
    assert rounds_to_recover(window, 0.5) == pytest.approx(8333, abs=1)
    assert rounds_to_recover(window, 1) * 0.1 / 60 == pytest.approx(6.94, abs=0.01)
    assert loss_for_window(window) == pytest.approx(2.07e-8, rel=0.01)


def test_the_relations_constant_is_that_of_one_segment_per_round_trip() -> None:
    assert constant(1) == pytest.approx(1.2247, abs=1e-4)
    assert constant(0.5) == pytest.approx(0.8660, abs=1e-4)
    # A sawtooth from W to 2 W sends 1.5 W^2 packets.
    assert bottom_for_loss(1 / (1.5 * 100**2), 1) == pytest.approx(100)


def run(place: Path, file: str, changes: Mapping[str, Any]) -> list[tuple[elephan.Record, Window]]:
    results = elephan.run(folder() / "iscsi" / file, {**SMALL, **changes}, store=str(place / "store.sqlite"))
    found = []
    for record in results:
        series = results.series_of(record)
        assert series is not None
        found.append((record, Window.of(series)))
    return found


def test_delayed_acks_that_are_counted_take_twice_the_round_trips(tmp_path: Path) -> None:
    changes = {
        "flow.initial_ssthresh": 100,
        "flow.cwnd_clamp": 102,
        "path.loss": "{ packets = [3000] }",
        "measure.series": "100ms",
        "sweep.run.duration": '["30s", "30s", "30s"]',
    }
    rounds = {}
    for record, window in run(tmp_path, "recovery.toml", changes):
        transport = record.spec["flows"][0]["transport"]
        rounds[transport["congestion_control"].rsplit("/")[-1], transport["delayed_ack"]] = window.rounds(
            *window.regained()
        )
        assert rounds_to_recover(line_window(record), growth(record)) == pytest.approx(
            rounds["reno_per_ack.c", True] / 2 if growth(record) == 1 else 100, rel=0.06
        )
    assert rounds["reno_per_ack.c", True] == pytest.approx(100, rel=0.06)
    assert rounds["reno_per_ack.c", False] == pytest.approx(50, rel=0.06)
    assert rounds["reno", True] == pytest.approx(50, rel=0.06)


def test_the_mean_window_is_the_relations(tmp_path: Path) -> None:
    """One loss in 15,000 packets: a sawtooth from 100 to 200."""
    changes = {
        "sweep.path.loss.every": "[15000, 15000]",
        "sweep.flow.congestion_control": '["reno", "./reno_per_ack.c"]',
        "sweep.flow.initial_ssthresh": "[100, 71]",
        "sweep.run.duration": '["60s", "60s"]',
    }
    for record, window in run(tmp_path, "loss.toml", changes):
        start, end = window.periods(record.spec["flows"][0]["transport"]["initial_ssthresh"])
        assert window.mean(start, end) * (1 / 15000) ** 0.5 == pytest.approx(constant(growth(record)), rel=0.02)


def test_the_verdict_fails_what_the_papers_own_rule_does_not_give() -> None:
    claim = find("iscsi").claim("iscsi.intro")
    paper = {item.name: item.paper for item in claim.value}
    ordered = dict(zip(claim.order[0].rising, (0.1, 0.3, 1.0, 1.01), strict=True))
    assert judge(claim, {**ordered, **paper}).verdict is Verdict.REPRODUCED
    halved = {**ordered, **paper, "rounds_rule": 4167.0}
    assert judge(claim, halved).verdict is Verdict.ORDERING_HOLDS
