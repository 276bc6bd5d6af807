"""Runs on this machine's own TCP: each workload, beside the simulator, and the record's content."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from elephan import api
from tests.kernel_backend.conftest import Elephan

pytestmark = pytest.mark.usefixtures("host_stays_as_it_was")

SCENARIO = """\
[run]
duration = "3s"
{run}

[path]
bandwidth = "40Mbit/s"
rtt = "20ms"
{path}

[[flow]]
congestion_control = "reno"
{flow}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "one.toml"


def write(file: Path, flow: str = "", path: str = "", run: str = "") -> Path:
    file.write_text(SCENARIO.format(flow=flow, path=path, run=run), encoding="utf-8")
    return file


def records(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def beside(elephan: Elephan, file: Path, least: float, most: float) -> list[dict[str, Any]]:
    """Run on both backends until the ratio of their goodput is within bounds, three times at most.

    A machine that is busy with other things stops the sender for a while now and then; it never makes it faster.
    """
    for _ in range(3):
        found = records(elephan("run", file, "--on", "sim,kernel", "--json", "--again"))
        sim, kernel = (record["metrics"]["goodput_bps"] for record in found)
        assert kernel / sim < most
        if kernel / sim > least:
            break
    assert kernel / sim > least
    return found


def test_bulk_fills_the_line_and_the_record_has_the_simulators_form(elephan: Elephan, file: Path) -> None:
    sim, kernel = beside(elephan, write(file), 0.9, 1.03)
    assert (sim["backend"], kernel["backend"]) == ("sim", "kernel") and sim["id"] != kernel["id"]
    assert sim.keys() == kernel.keys() and sim["spec"] == kernel["spec"]
    # 1448 B of payload in 1500 B; the start takes its part.
    assert 0.8 < kernel["metrics"]["line_share"] <= 0.9654
    assert kernel["metrics"]["emulator_own_drops"] == 0 and kernel["metrics"]["emulator_cpu_share"] > 0
    assert "emulator_own_drops" not in sim["metrics"]
    assert kernel["series"]["flow_rows"] > 20 and kernel["series"]["link_rows"] > 20
    assert kernel["host"]["kernel"].startswith("Linux ")


def test_a_window_limits_both_backends_alike(elephan: Elephan, file: Path) -> None:
    # 64 kB in flight at 20 ms are 25.6 Mbit/s of the line's 40.
    _, kernel = beside(elephan, write(file, 'window = "64kB"'), 0.92, 1.03)
    assert kernel["metrics"]["goodput_bps"] < 26e6


def test_losses_by_number_are_the_same_on_both(elephan: Elephan, file: Path) -> None:
    done = elephan("run", write(file, path="loss = { packets = [500, 1500, 2500] }"), "--on", "sim,kernel", "--json")
    for record in records(done):
        assert record["links"][0]["dropped_by_loss"] == 3
        assert record["metrics"]["retransmitted_segments"] >= 3


def test_a_finite_workload_ends_the_run(elephan: Elephan, file: Path) -> None:
    flow = 'workload = { kind = "bulk", bytes = "2MB" }'
    (record,) = records(elephan("run", write(file, flow), "--on", "kernel", "--json"))
    assert record["metrics"]["delivered_bytes"] == 2_000_000
    # 0.4 s of line and the start, in which the window grows.
    assert 0.4 < record["flows"][0]["completion_s"] < 2


def test_offered_load_has_latencies(elephan: Elephan, file: Path) -> None:
    flow = 'workload = { kind = "constant_rate", load = "50%", frame = "2kB" }'
    (record,) = records(elephan("run", write(file, flow), "--on", "kernel", "--json"))
    metrics = record["metrics"]
    # Half of the RTT is the least that a frame takes.
    assert 0.010 < metrics["latency_p50_s"] < 0.1 and metrics["messages"] > 1000
    assert 0.45 < metrics["goodput_bps"] / 40e6 < 0.52


def test_replication_of_a_trace_has_a_lag(elephan: Elephan, file: Path, tmp_path: Path) -> None:
    # MQSim's ASCII form: arrival in ns, device, first sector, sectors of 512 B, 0 for a write.
    lines = [f"{number * 10_000_000} 0 {number * 64} 64 0" for number in range(200)]
    (tmp_path / "writes.trace").write_text("\n".join(lines) + "\n", encoding="utf-8")
    flow = 'workload = { kind = "replicate", trace = "writes.trace", format = "mqsim" }'
    (record,) = records(elephan("run", write(file, flow), "--on", "kernel", "--json"))
    metrics = record["metrics"]
    assert metrics["messages"] == 200 and 0.010 < metrics["lag_p50_s"] < 0.1
    assert metrics["drain_s"] < 1


def test_drawn_writes_are_the_same_on_both_backends(elephan: Elephan, file: Path) -> None:
    flow = 'workload = { kind = "replicate", rate = "2MB/s", size = { mix = { "4KiB" = 3, "32KiB" = 1 } } }'
    sim, kernel = records(elephan("run", write(file, flow), "--on", "sim,kernel", "--json"))
    # The kernel's clock ends the run when its thread reads it.
    for name, least in (("messages", 400), ("offered_bytes", 4_000_000)):
        here, there = sim["metrics"][name], kernel["metrics"][name]
        assert least < here <= there < 1.02 * here
    assert 0.010 < kernel["metrics"]["lag_p50_s"] < 0.1


def test_connections_share_a_load_on_both_backends_alike(elephan: Elephan, file: Path, tmp_path: Path) -> None:
    lines = [f"{number * 10_000_000} 0 {number * 64} 64 0" for number in range(200)]
    (tmp_path / "writes.trace").write_text("\n".join(lines) + "\n", encoding="utf-8")
    flow = 'name = "mirror"\nconnections = 3\n'
    flow += 'workload = { kind = "replicate", trace = "writes.trace", format = "mqsim" }'
    sim, kernel = records(elephan("run", write(file, flow), "--on", "sim,kernel", "--json"))
    assert sim["flow_groups"][0].keys() == kernel["flow_groups"][0].keys()
    for record in (sim, kernel):
        (entry,) = record["flow_groups"]
        assert record["metrics"]["messages"] == 200 == sum(flow["messages"] for flow in record["flows"])
        # In turn, since none has a backlog that the others have not.
        assert all(40 < flow["messages"] < 100 for flow in record["flows"])
        assert (entry["name"], entry["connections"]) == ("mirror", 3) and 0.010 < entry["lag_p50_s"] < 0.1
        assert entry["drain_s"] == record["metrics"]["drain_s"] < 1


def test_a_copy_of_files_takes_as_long_on_both_backends(elephan: Elephan, file: Path) -> None:
    flow = "connections = 3\n"
    flow += (
        'workload = { kind = "copy", files = 50, size = "10kB", max = "30kB", more = [{ size = "1MB" }], begin = 4, '
        'write = "30Mbit/s" }'
    )
    sim, kernel = records(elephan("run", write(file, flow), "--on", "sim,kernel", "--json"))
    assert sim["flow_groups"][0].keys() == kernel["flow_groups"][0].keys()
    for name in ("files", "file_bytes", "delivered_bytes"):
        assert sim["metrics"][name] == kernel["metrics"][name]
    taken = sim["metrics"]["completion_s"]
    # 2 MB at 30 Mbit/s, and round trips of 20 ms. A busy machine is slower.
    assert 0.6 < taken < 0.8 and 0.9 * taken < kernel["metrics"]["completion_s"] < 3.0


def test_two_flows_over_one_line_share_it(elephan: Elephan, file: Path) -> None:
    done = elephan("run", write(file, 'connections = 2\nwindow = "1MB"'), "--on", "kernel", "--json")
    (record,) = records(done)
    assert len(record["flows"]) == 2 and record["metrics"]["jain_index"] > 0.5
    total = sum(flow["goodput_bps"] for flow in record["flows"])
    assert abs(total - record["metrics"]["goodput_bps"]) < 0.01 * total


def test_the_table_has_both_columns_and_the_report_both_curves(elephan: Elephan, file: Path, tmp_path: Path) -> None:
    done = elephan("run", write(file), "--on", "sim,kernel", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    head = done.stdout.splitlines()[0].split()
    assert head == ["congestion", "control", "metric", "sim", "kernel", "kernel/sim"]
    assert "reno, kernel" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "out" / "cwnd.png").stat().st_size > 10_000


def test_what_is_stored_is_not_run_again_and_cannot_be_repeated_to_the_byte(elephan: Elephan, file: Path) -> None:
    (first,) = records(elephan("run", write(file, run="stop_when_done = true"), "--on", "kernel", "--json"))
    (second,) = records(elephan("run", file, "--on", "kernel", "--json"))
    assert first["created"] == second["created"] and first["metrics"] == second["metrics"]
    again = elephan("results", "rerun", first["id"])
    assert again.returncode == 2 and "in real time" in again.stderr, again.stderr
    listed = elephan("results", "list")
    assert "kernel" in listed.stdout


def test_a_file_of_ones_own_runs_too(elephan: Elephan, file: Path, tmp_path: Path) -> None:
    made = elephan("cc", "new", str(tmp_path / "mine.c"))
    assert made.returncode == 0, made.stderr
    text = SCENARIO.replace('congestion_control = "reno"', 'congestion_control = "./mine.c"').format(
        run="", path="", flow=""
    )
    file.write_text(text, encoding="utf-8")
    (record,) = records(elephan("run", file, "--on", "kernel", "--json"))
    assert record["flows"][0]["congestion_control"] == "mine.c" and record["metrics"]["goodput_bps"] > 10e6


def test_captures_are_the_simulators(elephan: Elephan, file: Path, tmp_path: Path) -> None:
    done = elephan("run", write(file), "--on", "kernel", "--pcap", tmp_path / "one.pcapng")
    assert done.returncode == 2 and "tcpdump" in done.stderr and done.stderr.count("\n") == 1


def test_processor_time_is_that_of_the_run_and_not_of_what_goes_on_beside_it(kernel: None, file: Path) -> None:
    took_s, over = [], threading.Event()

    def work() -> None:
        began_s = time.thread_time()
        while not over.is_set():
            hash(bytes(100_000))
        took_s.append(time.thread_time() - began_s)

    beside = threading.Thread(target=work)
    beside.start()
    try:
        (record,) = api.run(write(file), ["path.bandwidth=4Mbit/s"], on="kernel", store="none").records
    finally:
        over.set()
        beside.join()
    assert 0 < record.metrics["cpu_s"] < took_s[0]
