"""Windows of a measurement, window reductions, and congestion controls as data, from a scenario to record and table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elephan import api
from elephan.api import Results

TEXT = """\
[run]
duration = "6s"
[path]
bandwidth = "50Mbit/s"
rtt = "20ms"
[[flow]]
name = "backup"
congestion_control = { name = "storage_friendly", reduction = "1/8", congestion_avoidance = false }
connections = 2
[[flow]]
name = "copy"
congestion_control = "cubic"
[[event]]
at = "3s"
loss = 1e-2
[measure]
series = false
windows = [{ name = "before", from = "0s", to = "3s" }, { name = "after", event = 0, from = "0s", to = "3s" }]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    file = tmp_path_factory.mktemp("windows") / "windows.toml"
    file.write_text(TEXT)
    return api.run(file, store="none")


def test_a_record_has_its_windows_and_a_table_their_columns(results: Results) -> None:
    (record,) = results.records
    before, after = record.windows
    assert (before["from_s"], before["to_s"], after["from_s"], after["to_s"]) == (0, 3, 3, 6)
    assert [flow["name"] for flow in after["flows"]] == ["backup.1", "backup.2", "copy"]
    for name in ("delivered_bytes", "retransmitted_segments", "cwnd_reductions"):
        assert before["metrics"][name] + after["metrics"][name] == record.metrics[name]
        assert sum(flow[name] for flow in after["flows"]) == after["metrics"][name]
    assert after["metrics"]["cwnd_reductions"] > 3 and after["metrics"]["goodput_bps"] > 0
    table = results.table()
    titles = [column.title for column in table.columns]
    assert [title for title in titles if title.startswith("after: ")] == [
        "after: goodput",
        "after: retransmitted",
        "after: dropped",
        "after: time-outs",
        "after: window reductions",
        "after: mean window",
    ]
    row = {name: cell.value for name, cell in zip(titles, table.rows[1].cells, strict=True)}
    backup = after["flows"][:2]
    assert row["after: window reductions"] == sum(flow["cwnd_reductions"] for flow in backup)
    assert row["after: mean window"] == sum(flow["cwnd_mean_packets"] for flow in backup) / 2


def test_a_congestion_control_is_data_beside_its_text(results: Results) -> None:
    (record,) = results.records
    first, _, copy = json.loads(record.to_json())["flows"]
    assert first["congestion_control"] == "storage_friendly(congestion_avoidance=off, reduction=1/8)"
    assert first["control"] == {
        "name": "storage_friendly",
        "parameters": {"congestion_avoidance": False, "reduction": 0.125},
    }
    assert (copy["congestion_control"], copy["control"]) == ("cubic", {"name": "cubic", "parameters": {}})


def test_one_flow_is_fair_to_itself(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text('[run]\nduration = "1s"\n[path]\nbandwidth = "10Mbit/s"\nrtt = "5ms"\n[[flow]]\nname = "one"\n')
    (record,) = api.run(file, store="none").records
    assert record.metrics["jain_index"] == 1
    assert record.windows == [] and record.flows[0]["cwnd_reductions"] == record.metrics["cwnd_reductions"]
