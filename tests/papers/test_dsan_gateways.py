"""The paper dsan through whole gateways: closed forms of window, encapsulation and load; credits against loss."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import elephan
from elephan.papers.evaluation import round_trip_s
from elephan.record import Record
from evaluation.papers.dsan import frames, gateways_window, runs
from evaluation.papers.dsan.loss import dropped_by_queue, sent_again
from evaluation.papers.dsan.variants import VARIANTS

FOLDER = Path(__file__).resolve().parents[2] / "evaluation" / "papers" / "dsan"
BOTH = {"name": "storage_friendly", "reduction": "1/8", "congestion_avoidance": False}
STANDARD = {"name": "storage_friendly", "reduction": "1/2", "congestion_avoidance": True}


def run(file: str, changes: dict[str, Any]) -> list[Record]:
    return list(elephan.run(FOLDER / file, changes, store="none"))


def test_tcp_carries_window_over_rtt_and_its_frames_the_encapsulations_share_less() -> None:
    sweep = {"link.delay": ["60ms", "100ms"]}
    for record in run("gateways-table1.toml", {"run.duration": "8s", "measure.warmup": "5.6s", "sweep": sweep}):
        rtt_s = round_trip_s(record)
        assert frames.stream(record) == pytest.approx(8 / rtt_s, rel=0.005)
        assert frames.payload(record) / frames.stream(record) == pytest.approx(2112 / 2176, rel=1e-3)
        assert frames.stalled_share(record) > 0.3, "the window is the limit, so that the port waits"


def test_a_pair_that_stalled_for_the_whole_time_carried_nothing_and_is_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    (record,) = run("gateways-table1.toml", {"run.duration": "1s", "measure.warmup": "0s", "sweep": {}})
    assert frames.payload(record) > 0
    for carried, wanted in ((0.0, 0.0), (None, math.nan)):
        monkeypatch.setitem(record.metrics, "fc_bytes_per_s", carried)
        assert frames.payload(record) == pytest.approx(wanted, nan_ok=True)
    for setup in runs.read()["setups"]:
        assert all(math.isfinite(value) for name in VARIANTS for value in setup[name]), setup


def test_the_readme_has_the_table_of_the_committed_runs() -> None:
    table = runs.lines()
    assert len(table) > 3 and "\n".join(table) in (FOLDER / "README.md").read_text(), f"{runs.COMMAND} --table has it"


def test_below_the_window_throughput_is_the_load() -> None:
    changes = {"run.duration": "5s", "measure.warmup": "3s", "link.delay": "20ms"}
    for record in run("gateways-fig9.toml", changes | {"sweep": {"flow.workload.load": ["10%", "90%"]}}):
        share = frames.workload(record)["load"]["rate_bps"] / (850e6 * 2112 / 2172)
        assert frames.offered(record) == pytest.approx(share * 850 / 8 * 2112 / 2172)
        assert frames.payload(record) == pytest.approx(frames.offered(record), rel=0.002)
        assert gateways_window.rule(record) == frames.offered(record)
        assert frames.pairs(record) == 1


def test_credits_keep_exponential_growth_from_the_queue() -> None:
    """Without gateways the same control drops thousands of packets a second on a line without loss."""
    changes = {"run.duration": "5s", "measure.warmup": "3s", "run.repetitions": 1}
    losses = {"link.loss": [0, 1e-3], "flow.congestion_control": [STANDARD, BOTH]}
    clean, clean_both, lossy, lossy_both = run("gateways-fig10.toml", changes | {"sweep": losses})
    for record in (clean, clean_both):
        assert frames.payload(record) == pytest.approx(frames.offered(record), rel=0.002)
        assert dropped_by_queue(record) == sent_again(record) == 0
    # Mathis: 1448 B / 25 ms x sqrt(1.5 / p), less the encapsulation; few losses in two seconds.
    assert frames.payload(lossy) == pytest.approx(2.2, rel=0.5)
    assert frames.payload(lossy_both) > 10 * frames.payload(lossy)
    assert dropped_by_queue(lossy_both) == 0
