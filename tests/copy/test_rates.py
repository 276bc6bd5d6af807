"""The rate that the end of a copy names: of what was sent, while its ends were connected, with the control in use."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from elephan.units import rate
from tests.copy.conftest import Copy

LIMIT_BPS = 40e6
LARGE, SMALL = 6_000_000, 400_000


def test_what_was_there_before_counts_for_no_rate(copy_alone: Copy, tmp_path: Path) -> None:
    source, there, receipt = tmp_path / "source", tmp_path / "there", tmp_path / "receipt.json"
    source.mkdir()
    (source / "large").write_bytes(os.urandom(LARGE))
    assert copy_alone(f"{source}/", there).returncode == 0
    (source / "small").write_bytes(os.urandom(SMALL))
    done = copy_alone(f"{source}/", there, "--rate", "40Mbit/s", "--receipt", receipt)
    assert done.returncode == 0, done.stderr
    told = json.loads(receipt.read_text())
    assert SMALL <= told["sent_bytes"] < 2 * SMALL and told["bytes"] == LARGE + SMALL
    # Nothing is faster than the rate that was asked for; a burst may go at once.
    assert told["goodput_bps"] < 1.5 * LIMIT_BPS
    assert told["data_s"] <= told["seconds"]
    line = next(line for line in done.stdout.splitlines() if " sent in " in line)
    assert f"at {rate(told['goodput_bps'])} by " in line
    own = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    assert re.search(rf"by \d+ streams? of {own}\b", line), line
    # With nothing to send there is no rate.
    done = copy_alone(f"{source}/", there)
    assert " at " not in next(line for line in done.stdout.splitlines() if " sent" in line)
