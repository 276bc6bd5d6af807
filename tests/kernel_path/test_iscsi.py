"""Target and load at the two ends of a path, with a congestion control of their own. Needs root and /dev/net/tun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from elephan.path import testbed

PROBLEM = testbed.missing()
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}")

SCENARIO = """\
[run]
duration = "1s"

[path]
bandwidth = "100Mbit/s"
rtt = "20ms"
queue = "2bdp"

[[flow]]
congestion_control = "reno"
"""
BOTH = """\
ip netns exec $ELEPHAN_PATH_FAR_NETNS $ELEPHAN iscsi target --lun disk.img --portal $ELEPHAN_PATH_FAR 2>target.log &
until grep -q iscsi:// target.log; do sleep 0.1; done
$ELEPHAN iscsi bench iscsi://$ELEPHAN_PATH_FAR/iqn.2026-01.elephan:disk/0 --cc reno --connections 2 \\
    --reads 0 --overwrite --depth 16 --duration 1s --json
"""


def test_a_load_runs_over_a_path_to_a_target_at_its_far_end(tmp_path: Path) -> None:
    (tmp_path / "wan.toml").write_text(SCENARIO)
    (tmp_path / "both.sh").write_text(BOTH)
    (tmp_path / "disk.img").touch()
    os.truncate(tmp_path / "disk.img", 16 << 20)
    main = "from elephan.cli import main; main()"
    command = [sys.executable, "-c", main, "path", "shell", "wan.toml", "--", "sh", "both.sh"]
    elephan = Path(tmp_path, "elephan")
    elephan.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{main}' \"$@\"\n")
    elephan.chmod(0o755)
    root = str(Path(__file__).resolve().parents[2])
    environment = os.environ | {"ELEPHAN": str(elephan), "PYTHONPATH": root}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["points"]
    assert result["congestion_control"] == "reno"
    assert result["writes"]["done"] > 0
    # A command takes a round trip at least, and the line bounds the rate.
    assert result["writes"]["latency_p50_ns"] >= 20_000_000
    assert result["writes"]["bytes"] * 8 < 100e6 * result["elapsed_ns"] / 1e9
