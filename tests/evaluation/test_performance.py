"""The bench's own parts: its workloads run, its page agrees with the history."""

from __future__ import annotations

import dataclasses
import json
import sys

import pytest

from elephan import _native
from evaluation.performance import engines, page
from evaluation.performance.__main__ import HISTORY, Workload, load_workloads
from evaluation.performance.dumbbell import run_spec

WORKLOADS = load_workloads()


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_a_workload_begins(workload: Workload) -> None:
    bell = dataclasses.replace(workload.bell, duration_ns=5 * workload.bell.rtt_ns, stagger_ns=0)
    metrics = _native.simulate(json.dumps(run_spec(bell)), None, 1.0).metrics
    assert metrics["delivered_packets"] > 10 * bell.flows


def test_the_page_is_that_of_the_last_run() -> None:
    text = page.filled(page.page([json.loads(line) for line in HISTORY.read_text(encoding="utf-8").splitlines()]))
    assert page.PAGE.read_text(encoding="utf-8") == text, "write it with `python -m evaluation.performance --page`"


def test_a_goal_that_is_missed_is_named() -> None:
    ours = {"engine": "elephan", "packets_per_cpu_s": 1e6, "events": 5_000_000, "cpu_s": 1.0, "delivered_packets": 1}
    entry = {"name": "W2", "what": "", "results": [ours], "over_ns-2": 62.0, "over_ns-3": 1200.0, "over_real_time": 1.0}
    missed = [text for text, reached in page.goals([entry]) if not reached]
    assert len(missed) == 1 and "2,500 times the rate of ns-3" in missed[0]
    assert "62" not in page.goals_text([entry])


def test_a_peer_that_tells_nothing_for_long_is_ended() -> None:
    mark = {"simulated_s": 0.2, "delivered_packets": 1, "cpu_s": 0.01, "cwnd_packets": 1}
    code = f"print({json.dumps(json.dumps(mark))}, flush=True)\nwhile True: pass"
    command = [sys.executable, "-c", code]
    assert list(engines.marks_of(command, 0.1)) == [mark]
    found = engines.run_peer("ns-3", command, "W4", WORKLOADS[0].bell, 0.1)
    assert found.packets_per_cpu_s == 0.0 and page.rate(found.as_dict()) == "-"
