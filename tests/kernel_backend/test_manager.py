"""The manager at work on this machine's own TCP, over the emulated network's counters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kernel_backend.conftest import Elephan
from tests.kernel_backend.test_mitigations import NETWORK as SENDERS_LINE
from tests.scenario.test_hybrid import MANAGER, NETWORK

pytestmark = pytest.mark.usefixtures("host_stays_as_it_was")

SLOW = NETWORK.replace("622Mbit/s", "80Mbit/s").replace("100Mbit/s", "20Mbit/s").replace('"10s"', '"7s"')
"""The core has 20 Mbit/s, everything else, the lightpath among it, 80."""

POLICY = MANAGER.replace('"20Mbit/s"', '"10Mbit/s"\nmin_dwell_time = "2s"\nobservation_window = "2s"')


def test_a_real_flow_is_moved_while_it_runs_and_is_faster_afterwards(elephan: Elephan, tmp_path: Path) -> None:
    file = tmp_path / "hybrid.toml"
    file.write_text(SLOW + POLICY, encoding="utf-8")
    done = elephan("run", file, "--on", "kernel", "--json")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    first = record["manager"]["move_log"][0]
    assert (first["flow"], first["lightpath"], first["reason"]) == ("backup", "lambda1", "elephant")
    assert 15e6 < first["rate_before_bps"] < 20.5e6
    # Nothing but the lightpath gives more than the core's 20 Mbit/s; a busy machine takes some of it away.
    assert first["rate_after_bps"] > 25e6, first
    carried = next(link["delivered_bytes"] for link in record["links"] if link["name"] == "lambda.forward")
    assert first["offloaded_bytes"] == pytest.approx(carried, rel=0.1)
    assert len(record["manager"]["timeline"]["time_s"]) >= 6


LIMITED = SENDERS_LINE[: SENDERS_LINE.index("[[event]]")].replace('"6s"', '"5s"')
"""The sender's line of 20 Mbit/s, a lightpath that is 40 ms shorter."""

BRIEF = """
[manager]
rate = "10Mbit/s"
min_dwell_time = "10s"
observation_window = "2s"
{}
[[lightpath]]
name = "lambda1"
route = ["r1", "light", "r3"]
"""


def test_a_hold_keeps_linux_from_sending_again_what_the_managers_move_overtakes(
    elephan: Elephan, tmp_path: Path
) -> None:
    # A busy machine may hand packets over late, but never before their time: 5 ms too long cost nothing here.
    hold = 'mitigations = { kind = "hold_buffer", delay_difference = "45ms", buffer = "1MB" }\n'

    def run(mitigations: str) -> tuple[dict[str, Any], dict[str, Any]]:
        file = tmp_path / "hold.toml"
        file.write_text(LIMITED + BRIEF.format(mitigations), encoding="utf-8")
        done = elephan("run", file, "--on", "kernel", "--json")
        assert done.returncode == 0, done.stderr
        (record,) = json.loads(done.stdout)
        return record["metrics"], record["manager"]["move_log"][0]

    plain, moved = run("")
    assert (moved["reason"], moved["limit"]) == ("elephant", "B") and "mitigation" not in moved
    assert plain["dropped_packets"] == 0 and plain["retransmitted_segments"] > 0
    metrics, held = run(hold)
    assert (held["reason"], held["mitigation"]) == ("elephant", "hold_buffer")
    assert metrics["dropped_packets"] == 0 == metrics["retransmitted_segments"]
    assert held["hold_s"] == pytest.approx(0.045, abs=0.002)
    # 45 ms of 20 Mbit/s are 112 kB.
    assert 60_000 < held["held_bytes"] < 130_000 and held["held_packets"] == metrics["held_packets"] > 40


def test_what_is_kept_back_of_several_flows_is_let_go_in_turn_as_the_receivers_line_sends(
    elephan: Elephan, tmp_path: Path
) -> None:
    # As below, of four flows: each released at 20 Mbit/s by itself they bring more than the queue has room for.
    network = receivers_line("90kB").replace("[[flow]]\n", "[[flow]]\nconnections = 4\n")
    mitigations = 'mitigations = { kind = "hold_buffer", delay_difference = "45ms", release = "bottleneck" }'
    file = tmp_path / "several.toml"
    file.write_text(network + BRIEF.format(mitigations).replace('"10Mbit/s"', '"2Mbit/s"'), encoding="utf-8")
    done = elephan("run", file, "--on", "kernel", "--json")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    ledger = record["manager"]["move_log"]
    found = [(entry["reason"], entry["limit"], entry["mitigation"], entry["forecast_lost_packets"]) for entry in ledger]
    assert found == [("elephant", "D", "hold_buffer", 0)] * 4
    # Each waits for its turn with the others as long as no window shrinks.
    assert all(entry["held_packets"] > 500 for entry in ledger), ledger
    assert record["metrics"]["dropped_packets"] == 0 == record["metrics"]["retransmitted_segments"]


def receivers_line(window: str) -> str:
    """The receiver's line has 20 Mbit/s and a queue of 140 kB, the sender's is no limit."""
    network = LIMITED.replace('"20Mbit/s"\nqueue = "1MB"', '"100Mbit/s"').replace("375kB", window)
    return network.replace('to = "d"\nbandwidth = "100Mbit/s"', 'to = "d"\nbandwidth = "20Mbit/s"\nqueue = "140kB"')


@pytest.mark.measures_time
def test_linux_reduces_its_window_where_the_manager_finds_the_receivers_line_full(
    elephan: Elephan, tmp_path: Path
) -> None:
    # The receiver's line has 20 Mbit/s: 350 kB fill 100 ms of that and 45 ms of its queue, without room for 40 ms more:
    # a command that comes late on a busy machine drops packets there.
    file = tmp_path / "reduction.toml"
    mitigations = 'mitigations = [{ kind = "hold_buffer", delay_difference = "45ms" }, "cwnd_reduction"]'
    file.write_text(receivers_line("350kB") + BRIEF.format(mitigations), encoding="utf-8")
    done = elephan("run", file, "--on", "kernel", "--json")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    entry, (reduction,) = record["manager"]["move_log"][0], record["cwnd_reductions"]
    assert (entry["reason"], entry["limit"], entry["mitigation"]) == ("elephant", "D", "hold_buffer, cwnd_reduction")
    assert (reduction["entry"], reduction["flow"], "event" in reduction) == (0, "flow1", False)
    # By the smoothed RTT: 145 ms become 105.
    assert reduction["kept_segments"] / reduction["window_segments"] == pytest.approx(105 / 145, abs=0.05)
    assert record["metrics"]["dropped_packets"] == 0 == record["metrics"]["retransmitted_segments"]


def test_short_flows_are_refused_before_anything_is_made(elephan: Elephan, tmp_path: Path) -> None:
    file = tmp_path / "hybrid.toml"
    web = '[[flow]]\nname = "web"\nfrom = "s"\nto = "d"\nworkload = { kind = "short_flows", arrivals = 5 }\n'
    file.write_text(SLOW + web, encoding="utf-8")
    done = elephan("check", file, "--on", "kernel")
    assert done.returncode == 2
    assert "flow web: workload short_flows is the simulator's alone" in done.stderr
