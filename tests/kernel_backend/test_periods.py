"""Exact periods over this machine's own TCP, the delays of other traffic, and the kernel's account of windows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kernel_backend.conftest import Elephan

pytestmark = pytest.mark.usefixtures("host_stays_as_it_was")

SCENARIO = """\
[run]
duration = "5900ms"

[path]
bandwidth = "50Mbit/s"
rtt = "20ms"

[[flow]]
name = "mirror"

[flow.workload]
kind = "replicate"
rate = "2MB/s"
size = "20kB"
header = "0B"
arrivals = "constant"
active = { on = "500ms", off = "1500ms" }

[[background]]
name = "calls"
rate = "1.6Mbit/s"
packet = "200B"
active = { on = "500ms", off = "1500ms" }

[measure]
windows = [
  { name = "first", from = "0s", to = "2s" },
  { name = "second", from = "2s", to = "4s" },
  { name = "third", from = "4s", to = "5900ms" },
]
"""


def test_each_period_carries_its_rate_times_its_time(kernel: None, elephan: Elephan, tmp_path: Path) -> None:
    file = tmp_path / "periods.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    done = elephan("run", file, "--on", "kernel", "--json", "--store", "none")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    # The preamble of a connection is not data; a window ends while nothing is under way.
    assert record["metrics"]["delivered_bytes"] == 3 * 1_000_000
    each = [window["metrics"]["delivered_bytes"] for window in record["windows"]]
    assert each == pytest.approx([1e6] * 3, rel=0.1)
    (calls,) = record["background"]
    assert calls["sent_packets"] == pytest.approx(3 * 500, rel=0.01)
    assert calls["delay_p50_s"] == pytest.approx(0.010, abs=0.003) and calls["voice_r"] > 80


def test_a_window_that_the_kernel_waited_for_is_the_limit(kernel: None, elephan: Elephan, tmp_path: Path) -> None:
    file = tmp_path / "window.toml"
    text = '[run]\nduration = "3s"\n[path]\nbandwidth = "50Mbit/s"\nrtt = "40ms"\n[[flow]]\nname = "copy"\n'
    file.write_text(text + 'window = "64KiB"\n', encoding="utf-8")
    done = elephan("run", file, "--on", "kernel", "--json", "--store", "none")
    assert done.returncode == 0, done.stderr
    (flow,) = json.loads(done.stdout)[0]["flows"]
    assert flow["limited_by_receive_window_s"] > 0.8 * flow["busy_s"] > 2
    assert flow["limited_by_send_buffer_s"] < 0.1 * flow["busy_s"]
