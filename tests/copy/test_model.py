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


@pytest.mark.search
def test_copies_leave_what_the_manual_says_whatever_disturbs_them() -> None:
    done = search("--first", str(FIRST), "--sequences", str(SEQUENCES), "--fs", "tmpfs,ext4,xfs", "--remote", "0")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.search
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


WRONG_ONCE = {
    "a full disk leaves no file without the chunks of its older version": [
        ["file", "src/f", 5, 1_000_001, ""],
        ["copy", {"sources": ["src/"], "destination": "dst"}, {}],
        ["rotate"],
        ["touch", "src/f", 77],
        ["copy", {"sources": ["src/"], "destination": "dst", "link_to": "old"}, {"full": 150_000}],
    ],
    "a folder on another mount has its time, though a name in it is taken": [
        ["create", "src/c", "folder", 1],
        ["file", "src/c/a", 2, 10, ""],
        ["create", "dst/c", "folder", 3],
        ["mount", "dst/c", "tmpfs"],
        ["create", "dst/c/a", "folder", 4],
        ["file", "dst/c/a/x", 5, 10, ""],
        ["copy", {"sources": ["src/"], "destination": "dst"}, {}],
    ],
    "a folder on another mount, of which a link has the name, is left by a mirror": [
        ["create", "src/d", "folder", 1],
        ["create", "src/d/a", "folder", 2],
        ["create", "dst/d", "folder", 3],
        ["mount", "dst/d", "bind"],
        ["copy", {"sources": ["src/"], "destination": "dst"}, {}],
        ["type", "src/d/a", "symlink", 4],
        ["copy", {"sources": ["src/"], "destination": "dst", "switches": ["mirror"]}, {}],
    ],
    "a new name of a file that size and time do not show to be changed is a link to it": [
        ["file", "src/a", 5, 3000, ""],
        ["copy", {"sources": ["src/"], "destination": "dst"}, {}],
        ["rotate"],
        ["rewrite", "src/a", 0, 100, 6, True],
        ["link", "src/a", "src/b"],
        ["copy", {"sources": ["src/"], "destination": "dst", "link_to": "old"}, {}],
    ],
    "an empty file of which an earlier attempt left a part is no reason to fail": [
        *(["file", f"src/{number:02}", 5 + number, 0, ""] for number in range(30)),
        ["file", "src/z", 5, 700_001, ""],
        [
            "copy",
            {"sources": ["src/"], "destination": "dst"},
            {"kill": [["renameat", 1]], "between": [["cut parts", "dst", 1]]},
        ],
    ],
    "the time of a folder on another mount is durable when the copy ends": [
        ["create", "src/d", "folder", 1],
        ["file", "src/d/f", 2, 5000, ""],
        ["create", "dst/d", "folder", 3],
        ["mount", "dst/d", "tmpfs"],
        ["copy", {"sources": ["src/"], "destination": "dst"}, {"record": True}],
    ],
    "a device has zeros where the source has none of its old bytes": [
        ["device", which, seed, at, seed % 2 == 0]
        for seed, (which, at) in enumerate([("to", None), ("to", 30), ("both", ["fdatasync", 2]), ("from", 20)])
    ],
}


@pytest.mark.parametrize("what", WRONG_ONCE)
def test_steps_that_went_wrong_once_go_well(what: str, tmp_path: Path) -> None:
    file = tmp_path / "steps.json"
    file.write_text(json.dumps({"steps": WRONG_ONCE[what]}))
    for _ in range(3):
        # Threads are not repeatable.
        done = search("--steps", str(file), "--no-shrink")
        assert done.returncode == 0, done.stdout + done.stderr


def test_an_entry_with_the_number_of_a_folder_that_was_removed_is_not_that_folder(tmp_path: Path) -> None:
    """ext4 gives the number of an inode that is free to the next file."""
    steps = [
        ["file", "src/a", 2377, 5190, "middle"],
        ["create", "src/d", "folder", 3702],
        ["create", "dst/d", "folder", 14209],
        ["type", "src/a", "fifo", 16873],
        ["file", "dst/d/f", 18494, 6837, "all"],
        ["swap", "src/a", "src/d"],
        ["copy", {"sources": ["src/"], "destination": "dst", "switches": ["mirror"]}, {"record": True}],
    ]
    file = tmp_path / "steps.json"
    file.write_text(json.dumps({"steps": steps}))
    done = search("--steps", str(file), "--no-shrink", "--fs", "ext4")
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
        "101",
        "--minutes",
        str(PLANTED_S / 60),
        "--remote",
        "0",
        "--first-failure",
        "--no-shrink",
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(seen, done.stdout.splitlines()[0]), done.stdout
