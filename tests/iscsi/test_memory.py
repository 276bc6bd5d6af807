"""The bound on a target's memory, by the kernel's value for the process, and the room left for others."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from elephan.cli.main import call
from evaluation.performance.iscsi_memory import BURDENS, Stopped, resident, standing
from tests.iscsi.conftest import Target
from tests.processes import until

MEMORY = 160 << 20
SLACK = 24 << 20
"""Threads' congestion controls and the allocator's reserve."""

SETTLED_S = 1.0
"""Time for which memory stays the same when all that stalled initiators may claim is claimed, s."""


class Settled:
    """A condition: the memory of a process has stayed the same for `SETTLED_S`."""

    def __init__(self, pid: int) -> None:
        self.pid, self.bytes, self.since_s = pid, -1, 0.0

    def __call__(self) -> bool:
        now, now_s = resident(self.pid), time.monotonic()
        if now != self.bytes:
            self.bytes, self.since_s = now, now_s
        return now_s - self.since_s >= SETTLED_S


@pytest.mark.parametrize("burden", BURDENS)
def test_initiators_that_stand_still_take_no_more_than_the_bound_and_hold_up_nobody(
    tmp_path: Path, burden: Callable[[Stopped], None], capsys: pytest.CaptureFixture[str]
) -> None:
    image = tmp_path / "lun.img"
    image.touch()
    os.truncate(image, 64 << 20)
    target = Target(image, "--memory", f"{MEMORY}B")
    try:
        before = resident(target.process.pid)
        with standing(target.url, burden, 8):
            until(Settled(target.process.pid), 60)
            load = ["--duration", "2s", "--size", "512KiB", "--depth", "32", "--connections", "1", "--json"]
            assert call(["iscsi", "bench", target.url, *load]) == 0
            taken = resident(target.process.pid) - before
        (result,) = json.loads(capsys.readouterr().out)["points"]
        assert result["lost"] == 0
        assert result["reads"]["done"] > 100
        assert result["reads"]["latency_max_ns"] < 5e9
        assert MEMORY / 10 < taken < MEMORY + SLACK
    finally:
        target.kill()


def test_less_memory_than_a_target_needs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = tmp_path / "lun.img"
    image.touch()
    os.truncate(image, 1 << 20)
    assert call(["iscsi", "target", "--lun", str(image), "--memory", "10MB"]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("error: --memory: 10000000 bytes; at least")
    assert "\n" not in error


def test_what_may_come_unasked_is_said_where_it_is_less_than_was_wanted(image: Path) -> None:
    target = Target(image, "--command-window", "4096")
    target.kill()
    assert any("FirstBurstLength is at most" in line for line in target.said)
