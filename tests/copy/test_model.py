"""The search of tests/copy/model: a fixed part of it holds, and it notices faults planted into the command."""

from __future__ import annotations

import json
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
    done = search("--first", str(FIRST), "--sequences", str(SEQUENCES), "--fs", "tmpfs,ext4,xfs", "--remote", "0")
    assert done.returncode == 0, done.stdout + done.stderr


def test_copies_between_two_hosts_leave_the_same() -> None:
    done = search("--first", str(FIRST), "--sequences", "3", "--fs", "tmpfs,ext4,xfs", "--remote", "1")
    between(done)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9]\d* kills at the second host", done.stdout), done.stdout


def between(done: subprocess.CompletedProcess[str]) -> None:
    """Skip, with the reason, where there was no second host."""
    if (found := re.search("no copies between hosts: .*", done.stderr)) is not None:
        pytest.skip(found[0])


def test_a_fault_planted_at_the_second_host_is_found() -> None:
    words = ["--plant", "length", "--kinds", '{"none": 1}', "--first", "1", "--minutes", str(PLANTED_S / 60)]
    # --verify=read finds the fault itself.
    words += ["--without", "verify_read"]
    done = search(*words, "--remote", "1", "--first-failure", "--no-shrink")
    between(done)
    assert done.returncode == 1, done.stdout + done.stderr
    failed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('  ["copy"')][-1]
    assert "size" in done.stdout.splitlines()[0] and failed[1].get("ends"), done.stdout


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
        "--remote",
        "0",
        "--first-failure",
        "--no-shrink",
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(seen, done.stdout.splitlines()[0]), done.stdout
