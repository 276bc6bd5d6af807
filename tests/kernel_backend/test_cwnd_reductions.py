"""Senders of this machine's TCP that reduce their windows on command, beside the simulator's."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from elephan.backends import programs
from elephan.kernel import control, runs
from elephan.kernel.maps import hashes, loaded
from elephan.path import testbed
from tests.kernel_backend.conftest import Elephan, begun, left_of

pytestmark = pytest.mark.usefixtures("host_stays_as_it_was")

# The receiver's line of 20 Mbit/s is the limit. Of a window of 277 packets the old path holds 167 and the queue, which
# takes 150, the rest; the lightpath is 40 ms shorter: 67 packets, for which the queue has no room. Slow start needs
# half of the window there.
NETWORK = """
[run]
duration = "{duration}"

[[node]]
name = "s"
[[node]]
name = "r1"
[[node]]
name = "r2"
[[node]]
name = "r3"
[[node]]
name = "d"

[[link]]
from = "s"
to = "r1"
bandwidth = "200Mbit/s"
queue = "1MB"
[[link]]
from = "r1"
to = "r2"
bandwidth = "200Mbit/s"
delay = "25ms"
queue = "1MB"
[[link]]
from = "r2"
to = "r3"
bandwidth = "200Mbit/s"
delay = "25ms"
queue = "1MB"
[[link]]
name = "light"
from = "r1"
to = "r3"
bandwidth = "200Mbit/s"
delay = "10ms"
queue = "1MB"
[[link]]
from = "r3"
to = "d"
bandwidth = "20Mbit/s"
queue = "150 packets"

[[event]]
at = "1.5s"
move = {moved}
route = ["s", "r1", "r3", "d"]
mitigation = {mitigation}
"""
FLOW = """
[[flow]]
name = "{name}"
connections = {connections}
from = "s"
to = "d"
route = ["s", "r1", "r2", "r3", "d"]
congestion_control = "{cc}"
{more}
"""
BOTH = '["hold_buffer", "cwnd_reduction"]'


def write(folder: Path, *flows: str, moved: str = "moved", mitigation: str = BOTH, duration: str = "2.7s") -> Path:
    file = folder / "reduction.toml"
    text = NETWORK.format(duration=duration, moved=json.dumps(moved), mitigation=mitigation)
    file.write_text(text + "".join(flows), encoding="utf-8")
    return file


def flow(name: str, cc: str, window: str, connections: int = 1) -> str:
    return FLOW.format(name=name, cc=cc, connections=connections, more=f'window = "{window}"')


def records(elephan: Elephan, file: Path, on: str = "kernel") -> list[dict[str, Any]]:
    done = elephan("run", file, "--on", on, "--json", "--no-report")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_linux_sender_with_a_reduced_window_overflows_no_queue_and_keeps_what_the_simulators_keeps(
    elephan: Elephan, tmp_path: Path
) -> None:
    whole = flow("moved", "cubic", "400kB")
    (held,) = records(elephan, write(tmp_path, whole, mitigation='"hold_buffer"'))
    assert held["metrics"]["dropped_packets"] > 0 and held["cwnd_reductions"] == []
    sim, kernel = records(elephan, write(tmp_path, whole), "sim,kernel")
    assert sim["metrics"]["dropped_packets"] == kernel["metrics"]["dropped_packets"] == 0
    assert kernel["metrics"]["retransmitted_segments"] == 0
    (there,), (here,) = sim["cwnd_reductions"], kernel["cwnd_reductions"]
    # A busy machine hands packets over late, never early: the RTT may be longer and the part that is kept larger.
    assert 0.97 < here["kept_segments"] / there["kept_segments"] < 1.1
    assert (here["flow"], here["event"], here["at_s"]) == ("moved", 0, 1.5)
    part = 1 - 0.040 / here["srtt_s"]
    assert here["kept_segments"] == pytest.approx(part * here["window_segments"], abs=2)
    assert 0 <= here["told_after_s"] <= here["done_after_s"] < 1.25 * here["srtt_s"]


def test_only_those_that_move_are_told_and_a_window_comes_back(elephan: Elephan, tmp_path: Path) -> None:
    # Flows of one control and between the same hosts: what tells them apart is the port. A second control beside.
    flows = (
        flow("moved", "cubic", "60kB", connections=2),
        flow("stays", "cubic", "60kB"),
        flow("other", "reno", "60kB"),
    )
    mitigation = '["hold_buffer", { kind = "cwnd_reduction", cwnd_fraction = "50%", restore = "100ms" }]'
    (record,) = records(elephan, write(tmp_path, *flows, moved="moved", mitigation=mitigation, duration="2s"))
    assert [reduction["flow"] for reduction in record["cwnd_reductions"]] == ["moved.1", "moved.2"]
    for reduction in record["cwnd_reductions"]:
        assert reduction["kept_segments"] == reduction["window_segments"] // 2
        # With the next ACK after the order.
        assert 1.6 <= reduction["restored_s"] < 1.6 + 1.25 * reduction["srtt_s"]


def test_a_control_that_sets_the_window_itself_reduces_none_and_the_record_says_so(
    elephan: Elephan, tmp_path: Path
) -> None:
    for record in records(elephan, write(tmp_path, flow("moved", "bbr", "400kB"), duration="2s"), "sim,kernel"):
        (reduction,) = record["cwnd_reductions"]
        assert "kept_segments" not in reduction
        assert any("flow moved: its window was not reduced at 1.5 s" in note for note in record["notes"])


def test_a_programs_windows_are_reduced(elephan: Elephan, tmp_path: Path) -> None:
    lacking = programs.lacks("iperf3", programs.installed())
    if lacking:
        pytest.skip(lacking)
    workload = 'workload = { kind = "program", program = "iperf3" }\nwindow = "400kB"'
    file = write(tmp_path, FLOW.format(name="moved", cc="cubic", connections=1, more=workload))
    (record,) = records(elephan, file)
    kept = [reduction["kept_segments"] for reduction in record["cwnd_reductions"] if "kept_segments" in reduction]
    # More than an initial window (RFC 6928): that of the data. iperf3's control connection may be silent just then.
    assert kept and max(kept) > 10


def test_a_killed_run_leaves_its_control_and_no_more(kernel: None, tmp_path: Path) -> None:
    file = write(tmp_path, flow("moved", "cubic", "400kB"), duration="60s")
    with begun(file, 2) as (process, run):
        name = runs.name_of(run, 0)
        with hashes([name]) as found:
            assert found[name].keys() == {"cc_commands", "cc_answers"}
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        try:
            # Two namespaces, the lock and the control, to which the maps belong: no link, no pin, no object beside.
            assert len(left_of(run)) == 4
        finally:
            testbed.remove(run)
            control.unload(name)
        assert left_of(run) == [] and name not in {one.name for one in loaded() if one.registered}
