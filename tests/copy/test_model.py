"""The search of tests/copy/model: a fixed part of it holds, and it notices faults planted into the command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.copy.model import tracer

ROOT = Path(__file__).resolve().parents[2]
SEQUENCES = 18
"""Of a hundred steps: 45 s on a slow machine."""
FIRST = 38_000
"""The first seed."""
PLANTED_S = 60
"""Time in which a planted fault has to be found."""


def search(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the search; skips where it cannot."""
    if os.geteuid() != 0:
        pytest.skip("the model mounts file systems: it needs root")
    if (problem := tracer.missing()) is not None:
        pytest.skip(problem)
    words = [sys.executable, "-m", "tests.copy.model", *arguments]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
    if done.returncode == 2:
        pytest.skip(done.stderr.strip())
    return done


def test_copies_leave_what_the_manual_says_whatever_disturbs_them() -> None:
    done = search("--first", str(FIRST), "--sequences", str(SEQUENCES), "--fs", "tmpfs,ext4,xfs")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("fault", "kinds", "seen"),
    [
        ("length", '{"none": 1}', "size"),
        ("sync", '{"record": 1}', "gets its name before its content is synced"),
        ("mount", '{"none": 1}', "dst/|-device link"),
    ],
)
def test_a_planted_fault_is_found_within_a_minute(fault: str, kinds: str, seen: str) -> None:
    done = search(
        "--plant",
        fault,
        "--kinds",
        kinds,
        "--first",
        "1",
        "--minutes",
        str(PLANTED_S / 60),
        "--first-failure",
        "--no-shrink",
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(seen, done.stdout.splitlines()[0]), done.stdout
