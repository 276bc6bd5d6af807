"""The manager at work on this machine's own TCP, over the emulated network's counters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kernel_ground.conftest import Elephan
from tests.scenario.test_hybrid import MANAGER, NETWORK

pytestmark = pytest.mark.usefixtures("host_stays_as_it_was")

SLOW = NETWORK.replace("622Mbit/s", "80Mbit/s").replace("100Mbit/s", "20Mbit/s").replace('"10s"', '"7s"')
"""The core has 20 Mbit/s, everything else, the lightpath among it, 80."""

POLICY = MANAGER.replace('"20Mbit/s"', '"10Mbit/s"\nminimum_stay = "2s"\nwatch = "2s"')


def test_a_real_flow_is_moved_while_it_runs_and_is_faster_afterwards(elephan: Elephan, tmp_path: Path) -> None:
    file = tmp_path / "hybrid.toml"
    file.write_text(SLOW + POLICY, encoding="utf-8")
    done = elephan("run", file, "--on", "kernel", "--json")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    first = record["manager"]["ledger"][0]
    assert (first["flow"], first["lightpath"], first["reason"]) == ("backup", "lambda1", "elephant")
    assert 15e6 < first["rate_before_bps"] < 20.5e6
    # Nothing but the lightpath gives more than the core's 20 Mbit/s; a busy machine takes some of it away.
    assert first["rate_after_bps"] > 25e6, first
    carried = next(link["delivered_bytes"] for link in record["links"] if link["name"] == "lambda.forward")
    assert first["offloaded_bytes"] == pytest.approx(carried, rel=0.1)
    assert len(record["manager"]["timeline"]["time_s"]) >= 6


def test_short_flows_are_refused_before_anything_is_made(elephan: Elephan, tmp_path: Path) -> None:
    file = tmp_path / "hybrid.toml"
    web = '[[flow]]\nname = "web"\nfrom = "s"\nto = "d"\nworkload = { kind = "short_flows", arrivals = 5 }\n'
    file.write_text(SLOW + web, encoding="utf-8")
    done = elephan("check", file, "--on", "kernel")
    assert done.returncode == 2
    assert "flow web: workload short_flows is the simulator's alone" in done.stderr
