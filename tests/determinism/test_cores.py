"""Cores of one run: their number changes no byte, and a run on several ends as one on one core does."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from elephan import _native
from evaluation.performance.dumbbell import Dumbbell, run_spec

FLOWS = 40
"""Enough for three cores, over a lookahead of more than a thousand packets."""


def spec(duration_s: float) -> str:
    bell = Dumbbell(
        rate_bps=1_000_000_000,
        rtt_ns=30_000_000,
        duration_ns=round(duration_s * 1e9),
        flows=FLOWS,
        loss_e12=100_000_000,
        series_ns=10_000_000,
    )
    return json.dumps(run_spec(bell))


def facts(result: _native.RunResult) -> list[Any]:
    """Return all that a run gives back, as far as it is comparable: series as bytes."""
    series = [*result.flow_series.items(), *result.link_series.items()]
    columns = [(name, column.tobytes()) for name, column in series]
    return [result.metrics, result.flows, result.links, result.notes, columns]


def test_the_number_of_cores_changes_no_byte() -> None:
    alone = facts(_native.simulate(spec(1.0)))
    assert alone == facts(_native.simulate(spec(1.0), None, 0.1, 2))
    assert alone == facts(_native.simulate(spec(1.0), None, 0.1, 3))


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_a_run_stops_when_progress_says_so(cores: int) -> None:
    """It would take some minutes."""
    before = threading.active_count()

    def progress(now_ns: int, end_ns: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _native.simulate(spec(2000.0), progress, 0.0, cores)
    assert threading.active_count() == before
