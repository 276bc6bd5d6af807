"""Sessions in the simulator from the scenario file to the record and the table."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

import elephan
from elephan.report.figures import Colours, panels_of
from elephan.report.metrics import CATALOGUE
from elephan.report.point_table import table_of
from elephan.report.points import points_of
from elephan.report.table import print_table

SCENARIO = """
[run]
duration = "6s"
[path]
bandwidth = "100Mbit/s"
rtt = "20ms"
[[flow]]
name = "volume"
connections = 2
[flow.workload]
kind = "iscsi"
disk = "nvme"
queue_depth = 4
source = { kind = "mix", reads = "50%", size = "8KiB" }
[[flow]]
name = "backup"
[measure]
series = "100ms"
warmup = "1s"
"""


def test_a_record_tells_what_requests_came_to_and_where_their_time_went(tmp_path: Path) -> None:
    file = tmp_path / "session.toml"
    file.write_text(SCENARIO)
    (record,) = elephan.run(str(file), store="none")
    metrics = record.metrics
    assert set(metrics) <= CATALOGUE.keys()
    kinds = [(metrics["reads"], "read"), (metrics["writes"], "write")]
    assert metrics["requests"] == sum(done for done, _ in kinds) > 50
    assert metrics["requests_failed"] == 0
    # 8 KiB ride on the command, so that either takes at least a round trip.
    assert all(0.02 < metrics[f"{kind}_latency_p50_s"] < 0.2 for _, kind in kinds)
    layers = sum(metrics[f"{layer}_mean_s"] for layer in ("queue", "network", "disk"))
    total = sum(done * metrics[f"{kind}_latency_mean_s"] for done, kind in kinds) / metrics["requests"]
    assert abs(layers / total - 1) < 1e-9
    assert metrics["write_disk_mean_s"] > metrics["read_disk_mean_s"] > 50e-6
    assert abs(metrics["io_bytes_per_s"] / (8192 * metrics["iops"]) - 1) < 1e-9
    volume, backup = record.flows[:2], record.flows[2]
    assert sum(flow["requests"] for flow in volume) == metrics["requests"]
    assert all(flow["workload"] == "iscsi" and flow["reverse_delivered_bytes"] > 0 for flow in volume)
    assert backup.get("requests") is None and backup.get("reverse_goodput_bps") is None
    assert backup["goodput_bps"] > 50e6


def test_the_report_draws_both_ends_of_a_session_and_one_of_a_transfer(tmp_path: Path) -> None:
    file = tmp_path / "session.toml"
    file.write_text(SCENARIO)
    results = elephan.run(str(file), store="none")
    points = points_of(list(results))
    (panel,) = panels_of(points, results.series_of, Colours())
    curves = {figure.key: [curve.label for curve in figure.curves] for figure in panel.figures}
    assert len(curves["goodput"]) == 2 and len(curves["goodput-back"]) == 1
    assert len(curves["cwnd-back"]) == 1 and "volume" in curves["cwnd-back"][0]


def test_the_table_shows_throughput_and_the_parts_of_the_time(tmp_path: Path) -> None:
    file = tmp_path / "session.toml"
    file.write_text(SCENARIO)
    records = elephan.run(str(file), {"sweep.flow.volume.workload.initial_r2t": [True, False]}, store="none")
    stream = io.StringIO()
    print_table(table_of(records), Console(file=stream, width=300))
    text = stream.getvalue()
    assert all(title in text for title in ("throughput", "IOPS", "read p99", "network", "disk", "goodput back"))
    assert "MB/s" in text or "kB/s" in text


def test_a_record_says_when_the_command_window_and_not_the_queue_depth_was_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "session.toml"
    file.write_text(SCENARIO.replace("queue_depth = 4", "command_window = 8"))
    records = elephan.run(str(file), {"sweep.flow.volume.workload.queue_depth": [8, 9, 64]}, store="none")
    told = [[note for note in record.notes if "command window" in note] for record in records]
    assert [len(notes) for notes in told] == [0, 1, 1]
    assert "flow volume: the command window of 8, not the queue depth of 64, was the limit" in told[2][0]
