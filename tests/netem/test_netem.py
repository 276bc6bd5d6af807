"""netem itself, where the kernel has it; elsewhere `make netem` runs these in a virtual machine whose kernel does."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import elephan
from elephan.path import netem, report, shell, testbed

PROBLEM = testbed.missing() or netem.missing()
if PROBLEM is not None:
    pytest.skip(f"{PROBLEM}; make netem has a kernel with it", allow_module_level=True)

SCENARIO = """\
[run]
duration = "10s"

[path]
bandwidth = "5Mbit/s"
rtt = "40ms"
queue = "30 packets"
{more}
emulator = "netem"

[[flow]]
congestion_control = "reno"
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Return a path without losses."""
    file = tmp_path / "netem.toml"
    file.write_text(SCENARIO.format(more=""))
    return file


def test_the_round_trip_time_is_the_paths(scenario: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, told = shell.run(scenario, ["sh", "-c", "ping -c 200 -i 0.02 $ELEPHAN_PATH_FAR"])
    out = capfd.readouterr().out
    times_ms = sorted(float(found) for found in re.findall(r"time=([\d.]+)", out))
    assert code == 0 and len(times_ms) == 200, out
    # The way there and back, and 84 B twice at 5 Mbit/s.
    assert times_ms[0] >= 40.26
    assert times_ms[100] < 44
    assert isinstance(told, report.NetemReport) and not told.faults()


def test_losses_are_as_frequent_as_asked_for_and_all_counted(scenario: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scenario.write_text(SCENARIO.format(more='loss = "5%"'))
    _, told = shell.run(scenario, ["sh", "-c", "ping -q -c 3000 -i 0.004 $ELEPHAN_PATH_FAR"])
    out = capfd.readouterr().out
    received = int(re.search(r"(\d+) received", out)[1])  # type: ignore[index]
    there, back = told.links
    assert 3000 - received == there["dropped_by_loss"] and back["dropped_by_loss"] == 0
    # 150, and five times the standard deviation of 3000 draws.
    assert 90 <= there["dropped_by_loss"] <= 210


def test_jitter_is_between_nothing_and_the_whole_of_it(scenario: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scenario.write_text(SCENARIO.format(more='jitter = "20ms"'))
    shell.run(scenario, ["sh", "-c", "ping -c 300 -i 0.05 $ELEPHAN_PATH_FAR"])
    times_ms = sorted(float(found) for found in re.findall(r"time=([\d.]+)", capfd.readouterr().out))
    assert len(times_ms) == 300
    # 20 ms each way: their sum is a triangle around 20, 19 of 20 below 33.7. (A virtual machine may be late.)
    assert 40.26 <= times_ms[0] < 50 and 57 < times_ms[150] < 64 and 70 < times_ms[285] < 79


def test_a_flow_fills_the_line_and_its_queue(scenario: Path) -> None:
    record = elephan.run(scenario, on="kernel", store="none").records[0]
    # 1448 of 1500 B, less the start.
    assert 4.2e6 < record.metrics["goodput_bps"] <= 5e6 * 1448 / 1500
    forward, reverse = record.links
    assert forward["dropped_by_queue"] > 0 and forward["dropped_by_loss"] == 0 and reverse["dropped_packets"] == 0
    assert not [note for note in record.notes if note.startswith("EMULATOR")]
    # 25,000 B in flight and 45,000 B in the queue: 112 ms.
    assert 0.04 < record.flows[0]["rtt_mean_s"] < 0.125


def test_a_change_while_it_runs_is_what_packets_meet(scenario: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ping = "ping -c 20 -i 0.02 $ELEPHAN_PATH_FAR"
    script = f'{ping}; "$@" path set $ELEPHAN_PATH_ID path.rtt=120ms; {ping}'
    elephan_ = [sys.executable, "-c", "from elephan.cli import main; main()"]
    code, told = shell.run(scenario, ["sh", "-c", script, "sh", *elephan_])
    out = capfd.readouterr().out
    times_ms = [float(found) for found in re.findall(r"time=([\d.]+)", out)]
    assert code == 0 and len(times_ms) == 40, out
    assert min(times_ms[:20]) < 60 and min(times_ms[20:]) >= 120
    assert "path.rtt=120ms" in told.text()
