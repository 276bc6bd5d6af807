"""The report's section on a manager: its move log, the places of flows, and the page's steps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from elephan.record import Record
from elephan.report.html import write_report
from elephan.report.management import managed_of, stays_of
from elephan.store.series import Series

BEFORE = {"rate_before_bps": 90_000_000, "ip_load_before_bps": 98_000_000, "ip_wait_before_s": 0.02}
MOVED = {
    "at_s": 3.0,
    "flow": "backup",
    "lightpath": "lambda1",
    "reason": "elephant",
    "limit": "C",
    "forecast_cost_bytes": 125_000,
    "forecast_gain_bytes": 90_000_000,
    "forecast_lost_packets": 0,
    "cost_bytes": 4_000_000,
    "gain_bytes": 70_000_000,
    "offloaded_bytes": 80_000_000,
    "lost_packets": 12,
    "rate_after_bps": 200_000_000,
    "ip_load_after_bps": 30_000_000,
    "ip_wait_after_s": 0.001,
    "left_at_s": 7.0,
    **BEFORE,
}
REFUSED = {"at_s": 5.0, "flow": "<branch>", "lightpath": "lambda1", "reason": "refused", "limit": "D", **BEFORE}
BACK = {"at_s": 7.0, "flow": "backup", "lightpath": "lambda1", "reason": "slow", **BEFORE}


def manager() -> dict[str, Any]:
    count = 10
    return {
        "metrics": {
            "moves": 1,
            "wasted_moves": 0,
            "returns": 1,
            "preemptions": 0,
            "refusals": 1,
            "set_ups": 1,
            "wasted_set_ups": 0,
            "failures": 0,
            "offloaded_bytes": 80_000_000,
            "evictions": 0,
            "flows": 2,
        },
        "lightpaths": [{"name": "lambda1", "ip_load_idle_bps": 98_000_000, "ip_wait_idle_s": 0.02}],
        "move_log": [MOVED, REFUSED, BACK],
        "timeline": {
            "time_s": [float(second + 1) for second in range(count)],
            "lightpath": [0] * count,
            "state": [0, 1, 1, 2, 2, 2, 2, 2, 0, 0],
            "flows": [0, 0, 0, 1, 1, 1, 1, 0, 0, 0],
            "carried_bps": [0, 0, 0, *[200_000_000] * 4, 0, 0, 0],
            "ip_bps": [98_000_000] * 3 + [30_000_000] * 4 + [50_000_000] * 3,
            "ip_wait_s": [0.02] * 3 + [0.0] * 7,
            "ip_dropped_packets": [5] * count,
        },
    }


@pytest.fixture
def record(make_record: Callable[..., Record]) -> Record:
    plain = make_record()
    flows = [{**plain.flows[0], "name": "backup"}]
    spec = {**plain.spec, "manager": {"observation_window_ns": 2 * 10**9}}
    return plain.model_copy(update={"manager": manager(), "flows": flows, "spec": spec})


def test_a_stay_lasts_from_the_move_until_the_flow_leaves() -> None:
    stays = stays_of([MOVED, REFUSED, {**MOVED, "at_s": 9.0, "left_at_s": 9.5}], 10.0)
    assert stays == {"backup": [(3.0, 7.0, "lambda1"), (9.0, 9.5, "lambda1")], "<branch>": []}
    staying = {key: value for key, value in MOVED.items() if key != "left_at_s"}
    assert stays_of([staying], 10.0) == {"backup": [(3.0, 10.0, "lambda1")]}


def test_the_ledger_has_forecast_and_what_came_of_it(record: Record, make_series: Callable[..., Series]) -> None:
    (shown,) = managed_of([record], lambda _: make_series(count=1000))
    heads = [name for name, _ in shown.heads]
    moved = dict(zip(heads, shown.rows[0], strict=True))
    assert (moved["flow"], moved["what"], moved["limit"]) == ("backup", "to lambda1", "C")
    assert (moved["rate before"], moved["after"]) == ("90.0 Mbit/s", "200 Mbit/s")
    assert (moved["cost forecast"], moved["cost"]) == ("125 kB", "4.00 MB")
    assert moved["IP load"] == "98.0 Mbit/s → 30.0 Mbit/s"
    # The series' sawtooth: 67 to 97 ms; one more segment sent again every 7 s, none between 1 and 5 s.
    assert re.fullmatch(r"\d+(\.\d)? ms → \d+(\.\d)? ms", moved["RTT"])
    assert moved["sent again"] == "0 → 0"
    sampled = {
        **record.manager,
        "move_log": [{**MOVED, "rate_before_error_bps": 3_000_000, "cost_error_bytes": 500_000}],
    }
    (shown_sampled,) = managed_of([record.model_copy(update={"manager": sampled})], lambda _: None)
    moved = dict(zip(heads, shown_sampled.rows[0], strict=True))
    assert (moved["rate before"], moved["cost"]) == ("90.0 Mbit/s ± 3.00 Mbit/s", "4.00 MB ± 500 kB")
    refused = dict(zip(heads, shown.rows[1], strict=True))
    assert (refused["what"], refused["cost"], refused["RTT"]) == ("refused lambda1", "", "")
    assert shown.rows[2][2] == "back: slow"


def test_a_mitigation_stands_beside_what_it_did_where_the_manager_has_some(record: Record) -> None:
    held = {
        "mitigation": "hold_buffer",
        "mitigation_saves_bytes": 5_000_000,
        "forecast_hold_s": 0.04,
        "forecast_held_bytes": 5_000_000,
    }
    ledger = [{**MOVED, **held, "hold_s": 0.041, "held_bytes": 5_100_000}, {**REFUSED, "mitigation": "none"}, BACK]
    manager = {**record.spec["manager"], "mitigations": [{}]}
    mitigated = {"manager": {**record.manager, "move_log": ledger}, "spec": {**record.spec, "manager": manager}}
    (shown,) = managed_of([record.model_copy(update=mitigated)], lambda _: None)
    heads = [name for name, _ in shown.heads]
    moved, refused, _ = (dict(zip(heads, row, strict=True)) for row in shown.rows)
    assert moved["mitigation"] == "hold_buffer: saves 5.00 MB"
    assert (moved["kept back forecast"], moved["kept back"]) == ("5.00 MB, 40.0 ms", "5.10 MB, 41.0 ms")
    assert (refused["mitigation"], refused["kept back"]) == ("none", "")
    (plain,) = managed_of([record], lambda _: None)
    assert not {"mitigation", "kept back"} & {name for name, _ in plain.heads}


def test_the_page_shows_it_and_steps_through_it(
    record: Record, make_series: Callable[..., Series], tmp_path: Path
) -> None:
    page = write_report([record], lambda _: make_series(count=1000), tmp_path).html.read_text()
    section = page[page.index('<section class="managed">') :]
    svg = re.search(r"<svg .*?</svg>", section, re.DOTALL)
    assert svg is not None
    ElementTree.fromstring(svg[0])
    assert "&lt;branch&gt;" in svg[0] and "<branch>" not in svg[0]
    data = re.search(r'<script type="application/json" class="steps">(.*?)</script>', section, re.DOTALL)
    assert data is not None
    steps = json.loads(data[1])["steps"]
    assert [step["t"] for step in steps] == [float(second + 1) for second in range(10)]
    assert steps[1]["on"] == {"backup": "IP", "<branch>": "IP"}
    assert steps[2]["on"]["backup"] == "lambda1" and steps[2]["events"] == ["backup: to lambda1"]
    assert steps[6]["on"]["backup"] == "IP" and "up, 200 Mbit/s" in steps[6]["paths"][0]


def test_a_run_without_a_manager_has_no_section(
    make_record: Callable[..., Record], make_series: Callable[..., Series], tmp_path: Path
) -> None:
    page = write_report([make_record()], lambda _: make_series(count=100), tmp_path).html.read_text()
    assert "The manager at work" not in page and "<script" not in page
