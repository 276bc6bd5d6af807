"""The paper iscsi: figures 7 to 13 on runs of seconds, and what their numbers mean."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import elephan
from elephan.papers.catalogue import find, folder
from elephan.papers.evaluation import names_of
from elephan.papers.verdict import Verdict, judge
from evaluation.papers.iscsi import fairness
from evaluation.papers.iscsi.assumptions import AS_FIGURE, CHANGES, change_of
from evaluation.papers.iscsi.connections import best_at
from evaluation.papers.iscsi.fairness import SETTLED_S, Sharing
from evaluation.papers.iscsi.session import connections_of, curves, furthest_from_one, throughput


def test_best_counts_the_points_beyond_one_connection_within_one_percent() -> None:
    flat = dict.fromkeys(range(1, 11), 10.0)
    assert best_at({"htcp": flat, "reno": {**flat, 1: 11.0, 2: 10.05, 3: 10.2}}, "htcp") == 8


def test_the_ratio_that_is_furthest_from_one_may_be_below_it() -> None:
    assert furthest_from_one({5: 9.0, 6: 10.5}, {5: 10.0, 6: 10.0}, (5, 6)) == pytest.approx(0.9)


def test_a_lead_changes_when_the_larger_window_is_the_others() -> None:
    time_s = np.arange(1.0, 401.0)
    swinging = 100 + 50 * np.sign(np.sin((time_s - 60 - SETTLED_S) / 60 * np.pi))
    found = Sharing(None, time_s, swinging, np.full(400, 100.0), (60.0, 400.0))  # type: ignore[arg-type]
    # 300 s in halves of 60 s.
    assert found.changes == 4
    double = Sharing(None, time_s, np.full(400, 120.0), np.full(400, 60.0), (60.0, 400.0))  # type: ignore[arg-type]
    assert double.imbalance == 2


@pytest.mark.parametrize(("claim", "words"), [("iscsi.fig7", CHANGES), ("iscsi.fig11-13", fairness.CHANGES)])
def test_every_change_that_the_claim_names_has_its_words(claim: str, words: Mapping[str, str]) -> None:
    keys = [f"{key}=" for runs in find("iscsi").claim(claim).runs for key in list(runs.set)[:1]]
    assert all(any(key in known for known in words) for key in keys)


def test_a_sessions_throughput_is_that_of_both_ways() -> None:
    changes = {
        "run.duration": "6s",
        "path.queue": "1bdp",
        "flow.workload.queue_depth": 64,
        "flow.workload.source.size": "64KiB",
        "flow.workload.disk": "none",
        "flow.workload.disks": 1,
        "sweep.flow.congestion_control": '["reno"]',
        "sweep.flow.connections": "[1, 4]",
    }
    records = elephan.run(folder() / "iscsi" / "assumptions.toml", changes, store="none")
    assert all(change_of(record) != AS_FIGURE for record in records)
    carried = curves(list(records), connections_of, throughput)["reno"]
    # The line carries less than 12.5 MB/s in each direction.
    assert 12.5 < carried[1] < 25
    assert 12.5 < carried[4] < 25


def test_a_session_and_an_ftp_flow_have_their_windows_told_apart(tmp_path: Path) -> None:
    changes = {
        "run.duration": "4s",
        "flow.ftp.start": "1s",
        "flow.ftp.stop": "3s",
        "sweep.flow.*.congestion_control": '["reno"]',
    }
    results = elephan.run(folder() / "iscsi" / "fig11-13.toml", changes, store=str(tmp_path / "store.sqlite"))
    (record,) = results
    found = Sharing.of(record, results.series_of(record))
    assert found.both_s == (1.0, 3.0)
    assert found.session[found.time_s < 0.9].max() > 2
    assert found.ftp[found.time_s > 1.5].max() > 2


def test_the_verdict_on_fairness_wants_htcp_to_be_the_unfair_one() -> None:
    claim = find("iscsi").claim("iscsi.fig11-13")
    paper = {item.name: item.paper for item in claim.value}
    fair = {**paper, "bic_imbalance": 1.1, "reno_imbalance": 1.1}
    assert not names_of(claim, {**fair, "htcp_imbalance": 2.0})
    assert judge(claim, {**fair, "htcp_imbalance": 2.0}).verdict is Verdict.REPRODUCED
    assert judge(claim, {**fair, "htcp_imbalance": 1.05}).verdict is Verdict.DIFFERS
