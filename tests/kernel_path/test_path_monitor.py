"""`elephan monitor` over a path whose loss and delay change while it runs. Needs root."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from elephan.path import testbed

PROBLEM = testbed.missing()
pytestmark = [
    pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}"),
    pytest.mark.measures_time,
]

ELEPHAN = [sys.executable, "-c", "from elephan.cli import main; main()"]
CHANGE_S, END_S = 12, 68
LOSS = 0.1

PATH = f"""
[run]
duration = "120s"
[path]
bandwidth = "200Mbit/s"
rtt = "20ms"
queue = "500 packets"
[[flow]]
congestion_control = "reno"
[[event]]
at = "{CHANGE_S}s"
loss = {LOSS}
rtt = "26ms"
"""

MONITOR = """
name = "dr"
[[path]]
name = "vienna"
towards = "198.18.0.2:862"
line_rate = "200Mbit/s"
benchmark = { loss = 1e-5, rtt = "20ms" }
[[path.test]]
test = "stamp"
period = "100ms"
"""

INSIDE = """
set -u
date +%s > began
ip netns exec "$ELEPHAN_PATH_FAR_NETNS" "$@" measure reflect 2> reflector &
reflector=$!
"$@" monitor run dr.toml --store results.sqlite 2> said &
monitor=$!
sleep {end}
"$@" monitor status --store results.sqlite --json > status
kill $monitor $reflector
wait
"""


def test_loss_and_a_longer_round_trip_are_one_alert_each_in_their_time(tmp_path: Path) -> None:
    """Loss of 10 % where 1e-5 was agreed takes three to five loss events, each 10 packets and 3 s apart on the mean.

    That it takes a minute has a probability below 1e-5: it is that of two events in it, where 15 are expected.
    """
    (tmp_path / "path.toml").write_text(PATH)
    (tmp_path / "dr.toml").write_text(MONITOR)
    (tmp_path / "inside.sh").write_text(INSIDE.replace("{end}", str(END_S)))
    command = [*ELEPHAN, "path", "shell", "path.toml", "--", "bash", "inside.sh", *ELEPHAN]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = (tmp_path / "said").read_text()
    changed_s = float((tmp_path / "began").read_text()) + CHANGE_S
    (state,) = json.loads((tmp_path / "status").read_text())
    (path,) = state["paths"]
    assert path["state"] == "alert" and len(path["alerts"]) == 2, said
    store = str(tmp_path / "results.sqlite")
    shown = subprocess.run([*ELEPHAN, "monitor", "alerts", "--store", store, "--json"], capture_output=True, text=True,
                           check=True)  # fmt: skip
    alerts: dict[str, list[dict[str, Any]]] = {}
    for alert in json.loads(shown.stdout):
        if alert["kind"] != "step":
            alerts.setdefault(alert["quantity"], []).append(alert)
    assert {name: len(several) for name, several in alerts.items()} == {"loss": 1, "rtt_s": 1}, said
    (loss,), (rtt,) = alerts["loss"], alerts["rtt_s"]
    assert loss["ended_s"] is None and "; agreed: 1.0e-5" in loss["text"], loss
    # From a few losses: within a factor of four.
    assert LOSS / 4 < loss["evidence"]["after"] < 4 * LOSS, loss
    assert rtt["evidence"]["after"] == pytest.approx(0.026, rel=0.05)
    # In five bins of ten seconds, the last of which has to be over.
    assert changed_s - 1 < loss["since_s"] and changed_s + 1 < rtt["found_s"] < changed_s + 55
    lines = [line for line in said.splitlines() if line.startswith("vienna: ")]
    assert len([line for line in lines if "loss" in line]) == 1, said
