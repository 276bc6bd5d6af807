"""Bursts behind a policer: the command's goodput beside that of Linux 6.18.

The kernel's numbers are of `elephan run FILE --on kernel`, goodput over 15 s on a machine with other work; its own TCP
sent through the emulator, which cuts its packets. Each segment alone, the simulator had 80.2, 109.6, 144.2, 181.4 and
364.7 Mbit/s in these cells.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

POLICED = """
name = "policed"

[run]
duration = "15s"

[path]
bandwidth = "1Gbit/s"
rtt = "40ms"
queue = "1bdp"
policer = { rate = "100Mbit/s", burst = "16KiB" }

[[flow]]
name = "a"
congestion_control = "cubic"
"""
WINDOW = """
name = "window"

[run]
duration = "8s"

[path]
bandwidth = "1Gbit/s"
rtt = "10ms"
queue = "1bdp"

[[flow]]
name = "a"
congestion_control = "reno"
"""


def goodput_mbps(command: Run, *settings: str) -> float:
    """Run the scenario of the folder; return the flow's goodput."""
    words = [word for setting in settings for word in ("--set", setting)]
    code, out, err = command("run", "s.toml", "--json", "--no-report", *words)
    assert code == 0, err
    (flow,) = json.loads(out)[0]["flows"]
    return float(flow["goodput_bps"]) / 1e6


@pytest.mark.parametrize(
    ("rate", "control", "pacing", "kernel_mbps"),
    [
        ("100Mbit/s", "cubic", "true", 53.6),
        ("200Mbit/s", "cubic", "true", 63.0),
        ("400Mbit/s", "cubic", "true", 64.5),
        ("200Mbit/s", "bbr", "false", 119.4),
        ("400Mbit/s", "bbr", "false", 120.6),
    ],
)
def test_a_short_token_bucket_cuts_bursts_as_it_does_the_kernels(
    elephan: Run,
    folder: Path,
    rate: str,
    control: str,
    pacing: str,
    kernel_mbps: float,
) -> None:
    (folder / "s.toml").write_text(POLICED)
    settings = (f"path.policer.rate={rate}", f"flow.a.congestion_control={control}", f"flow.a.pacing={pacing}")
    assert goodput_mbps(elephan, *settings) == pytest.approx(kernel_mbps, rel=0.13)
    alone = goodput_mbps(elephan, *settings, "flow.a.tso_autosizing=false")
    assert alone > 1.3 * kernel_mbps


@pytest.mark.parametrize(
    ("window", "rtt", "kernel_mbps"),
    [("64KiB", "10ms", 50.9), ("256KiB", "10ms", 192.0), ("512KiB", "10ms", 373.3), ("256KiB", "30ms", 67.9)],
)
def test_a_window_is_used_as_the_kernel_uses_it(
    elephan: Run,
    folder: Path,
    window: str,
    rtt: str,
    kernel_mbps: float,
) -> None:
    (folder / "s.toml").write_text(WINDOW)
    found = goodput_mbps(elephan, f"flow.a.window={window}", f"path.rtt={rtt}")
    assert found == pytest.approx(kernel_mbps, rel=0.07)
