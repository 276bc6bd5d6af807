"""Holds at the moving router, under the TCP of this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kernel_backend.conftest import Elephan

pytestmark = pytest.mark.usefixtures("host_stays_as_it_was")

# The sender's own line of 20 Mbit/s is the limit; the lightpath is 40 ms shorter, which are 67 packets of 1500 B. The
# window is 1.5 times the capacity of the old path, so that nothing is lost.
NETWORK = """
[run]
duration = "6s"

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
bandwidth = "20Mbit/s"
queue = "1MB"
[[link]]
from = "r1"
to = "r2"
bandwidth = "100Mbit/s"
delay = "25ms"
[[link]]
from = "r2"
to = "r3"
bandwidth = "100Mbit/s"
delay = "25ms"
[[link]]
name = "light"
from = "r1"
to = "r3"
bandwidth = "100Mbit/s"
delay = "10ms"
[[link]]
from = "r3"
to = "d"
bandwidth = "100Mbit/s"

[[flow]]
from = "s"
to = "d"
route = ["s", "r1", "r2", "r3", "d"]
congestion_control = "cubic"
window = "375kB"

[[event]]
at = "3s"
move = "flow1"
route = ["s", "r1", "r3", "d"]
"""


# The same with the receiver's line as the limit. A window of 205 packets is 38 more than the old path holds; the
# shorter one has room for 67 less, and r3's queue for 60 in all. The sender's line is faster only after slow start.
RECEIVER = (
    NETWORK.replace('to = "d"\nbandwidth = "100Mbit/s"', 'to = "d"\nbandwidth = "20Mbit/s"\nqueue = "60 packets"', 1)
    .replace('from = "s"\nto = "r1"', 'name = "access"\nfrom = "s"\nto = "r1"')
    .replace("375kB", "300kB")
    .replace("[[event]]", "[[event]]\nat = '2s'\nlink = 'access.forward'\nbandwidth = '100Mbit/s'\n[[event]]")
)


def metrics_of(elephan: Elephan, file: Path, more: str, network: str = NETWORK) -> dict[str, Any]:
    file.write_text(network + more, encoding="utf-8")
    done = elephan("run", file, "--on", "kernel", "--json")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    assert record["event_times_s"][-1] == 3.0
    metrics: dict[str, Any] = record["metrics"]
    return metrics


def test_a_hold_keeps_linux_from_sending_again_what_was_only_overtaken(elephan: Elephan, tmp_path: Path) -> None:
    plain = metrics_of(elephan, tmp_path / "plain.toml", "")
    assert plain["dropped_packets"] == 0 and plain["retransmitted_segments"] > 0
    # A busy machine may hand packets over late, but never before their time: 5 ms too long cost nothing here.
    held = metrics_of(
        elephan, tmp_path / "held.toml", 'mitigation = { kind = "hold_buffer", delay_difference = "45ms" }\n'
    )
    assert held["dropped_packets"] == 0 == held["retransmitted_segments"]
    assert held["held_packets"] > 40
    assert held["held_max_s"] == pytest.approx(0.045, abs=0.002)


def test_a_hold_at_the_receivers_rate_keeps_its_queue_from_dropping(elephan: Elephan, tmp_path: Path) -> None:
    plain = metrics_of(elephan, tmp_path / "plain.toml", "", RECEIVER)
    assert plain["dropped_packets"] > 10
    mitigation = 'mitigation = { kind = "hold_buffer", delay_difference = "45ms", release = "bottleneck" }\n'
    held = metrics_of(elephan, tmp_path / "held.toml", mitigation, RECEIVER)
    assert held["dropped_packets"] == 0 == held["retransmitted_segments"]
    # 40 ms at 20 Mbit/s are 100 kB; they stay there, since no window was cut.
    assert held["held_bytes_max"] > 80_000
    assert held["goodput_bps"] > 0.99 * plain["goodput_bps"]
