"""docs/howto/diagnose.md: the limit of a flow of iperf3, which the path or the socket was given."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.field.conftest import IPERF, WHOLE, whole
from tests.field.judging import black_hole
from tests.field.network import Field

WATCHED_S = 10.0 if WHOLE else 2.0

CASES = {
    # 40 Mbit/s x 20 ms are 100 kB: a window of some 30 kB is the limit.
    "receive_window": (["path.rtt=20ms"], ["-w", "32K", "-C", "cubic"]),
    "loss": (["path.loss=5e-3"], ["-C", "cubic"]),
    "policer": (["path.policer={ rate = '10Mbit/s', burst = '60kB' }"], ["-C", "cubic"]),
    "queue": (["path.bandwidth=15Mbit/s"], ["-C", "cubic"]),
    "pacing": (["path.rtt=20ms"], ["--fq-rate", "5M", "-C", "cubic"]),
}
LATER = ("queue", "pacing")
"""Cases for which a short run has no time."""


def diagnosed(field: Field, iperf3: Sequence[str], folder: Path, *options: str) -> dict[str, Any]:
    """Return the diagnosis of the flow of an iperf3 that sends meanwhile."""
    words = ["iperf3", "-c", field.b.address, "-p", str(IPERF), "-t", "60", *iperf3]
    with field.program(*words):
        # Behind its start.
        time.sleep(1.5)
        done = field.elephan("diagnose", "--port", str(IPERF), "--seconds", str(WATCHED_S), "--json", *options)
    assert done.returncode == 0, done.stderr
    flows = [flow for flow in json.loads(done.stdout)["flows"] if flow["remote"].endswith(f":{IPERF}")]
    found: dict[str, Any] = max(flows, key=lambda flow: flow["bytes"])
    return found


@pytest.mark.parametrize("limit", [pytest.param(limit, marks=whole if limit in LATER else ()) for limit in CASES])
def test_the_limit_is_named(field: Field, folder: Path, limit: str) -> None:
    settings, iperf3 = CASES[limit]
    field.set(*settings)
    found = diagnosed(field, iperf3, folder, "--no-forecast")
    assert found["limit"] == limit, found["because"]


def test_no_forecast_exceeds_a_policer(field: Field, folder: Path) -> None:
    """The line of 100 Mbit/s is not what a flow behind a policer of 10 Mbit/s could have."""
    settings, iperf3 = CASES["policer"]
    field.set(*settings)
    unknown = diagnosed(field, iperf3, folder, "--line-rate", "100Mbit/s")
    assert unknown["forecast"]["outcomes"] == [], unknown["because"]
    assert "elephan measure policer" in unknown["forecast"]["none_because"]
    known = diagnosed(field, iperf3, folder, "--line-rate", "100Mbit/s", "--policer", "10Mbit/s,60kB")["forecast"]
    assert known["as_it_is"]["goodput_bps"] < 10e6 and known["policer"] == {"rate_bps": 10**7, "burst_bytes": 60_000}
    assert all(outcome["goodput_bps"] < 10e6 for outcome in known["outcomes"]), known


def test_no_connection_is_exit_code_2(field: Field) -> None:
    done = field.elephan("diagnose", "--port", "9", "--seconds", "1")
    assert done.returncode == 2 and "no TCP connection" in done.stderr and done.stderr.count("\n") == 1


def test_a_black_hole_is_named_and_measure_mtu_finds_its_size(field: Field, folder: Path) -> None:
    """A flow behind an MTU black hole moves nothing: `measure mtu` has the size (test_measure.py)."""
    field.set("path.mtu=1380B")
    with black_hole(field):
        found = diagnosed(field, ["-C", "cubic"], folder, "--no-forecast")
    assert found["limit"] is None and "MTU black hole" in found["because"], found["because"]
