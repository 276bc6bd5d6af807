"""Frames over gateways are compared by their latency and their payload."""

from __future__ import annotations

import pytest

from elephan.compare import compare
from evaluation.gateways.neighbours import CASES
from evaluation.gateways.section import FOLDER


def test_frames_over_gateways_rank_by_latency_and_deliver_what_was_offered() -> None:
    short = {"run.duration": "1500ms", "measure.warmup": "500ms", "run.repetitions": 1}
    found = compare(
        FOLDER / "neighbours.toml", "reno, cubic", CASES["one 1GFC port"] | short, by="latency", store="none"
    )
    assert found.by == "latency"
    for row in found.rows:
        assert row.numbers.mean(lambda run: run.latency_p99_s) == pytest.approx(0.0127, rel=0.02)
        # Without encapsulation: of TCP's bytes more arrive than frames offer.
        assert row.numbers.mean(lambda run: run.offered_share) == pytest.approx(1, abs=0.01)
