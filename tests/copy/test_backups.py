"""Backups between two hosts by real ssh: versions at the far end, what of them goes, a restore, a kill."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elephan.backup.ledger import Ledger
from tests.hosts import testbed
from tests.hosts.conftest import Said, here
from tests.processes import quick, until

Backup = Callable[..., Said]

FILE = """name = "dr"
[retry]
wait = "100ms"
[[job]]
name = "records"
kind = "incremental"
sources = ["left:{left}/data/"]
destination = "right:{right}/copies"
every = "1h"
keep = 1
{lines}
"""


@pytest.fixture
def file(hosts: testbed.Hosts, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a backup between the two hosts, and give its file; its store is the test's own."""
    for name in ("PATH", "ELEPHAN_HOSTS"):
        monkeypatch.setenv(name, hosts.environment[name])
    monkeypatch.setenv("ELEPHAN_STORE", str(tmp_path / "store.sqlite"))
    for end in hosts.ends:
        (end.home() / tmp_path.name).mkdir()
    found = tmp_path / "dr.toml"
    write(found, hosts, tmp_path.name)
    return found


def write(file: Path, hosts: testbed.Hosts, name: str, lines: str = "") -> None:
    left, right = (str(end.home() / name) for end in hosts.ends)
    file.write_text(FILE.format(left=left, right=right, lines=lines))


def rows(file: Path) -> list[dict[str, Any]]:
    """Runs of the job, oldest first."""
    ledger = Ledger(os.environ["ELEPHAN_STORE"], "dr")
    try:
        return ledger.runs("records")[::-1]
    finally:
        ledger.close()


def is_durable(file: Path) -> bool:
    """Return True once a part of the data is on the far disk for good."""
    told = [json.loads(row["progress"]) for row in rows(file) if row["progress"]]
    return any(one["durable_bytes"] > 10**6 for one in told)


def test_versions_are_kept_and_removed_at_the_far_host_and_come_back(
    hosts: testbed.Hosts, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = here(capsys)
    data, copies = hosts.left.home() / tmp_path.name / "data", hosts.right.home() / tmp_path.name / "copies"
    (data / "sub").mkdir(parents=True)
    (data / "sub/kept").write_text("kept")
    (data / "a").write_text("first")
    done = run("backup", file, "run", "records", "--once")
    assert done.returncode == 0, done.stderr
    (first,) = copies.glob("version-*")
    inode = (first / "sub/kept").stat().st_ino
    (data / "a").write_text("second")
    done = run("backup", file, "run", "records", "--once")
    assert done.returncode == 0, done.stderr
    (second,) = copies.glob("version-*")
    assert not first.exists() and second.name > first.name and os.readlink(copies / "latest") == second.name
    assert (second / "sub/kept").stat().st_ino == inode and (second / "a").read_text() == "second"
    assert [row["removed"] is None for row in rows(file)] == [False, True]
    (data / "a").unlink()
    done = run("backup", file, "restore", "records")
    assert done.returncode == 0 and (data / "a").read_text() == "second", done.stderr
    assert json.loads(rows(file)[2]["receipt"])["hosts"]["source"]["name"] == "right"


def test_small_runs_tell_no_rate_of_the_path(
    hosts: testbed.Hosts, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = here(capsys)
    data = hosts.left.home() / tmp_path.name / "data"
    data.mkdir()
    (data / "big").write_bytes(random.Random(3).randbytes(20_000_000))
    for number in range(3):
        (data / "a").write_text(f"twelve byte{number}")
        done = run("backup", file, "run", "records", "--once")
        assert done.returncode == 0, done.stderr
    (found,) = json.loads(run("backup", file, "forecast", "--json").stdout)
    first_s, *small_s = [row["seconds"] for row in rows(file)]
    assert min(small_s) / 2 < found["run"]["seconds"] < 2 * max(small_s)
    assert first_s / 2 < found["restore"]["seconds"] < 2 * first_s
    back = f"left:{hosts.left.home() / tmp_path.name / 'back'}"
    done = run("backup", file, "restore", "records", "--to", back)
    assert done.returncode == 0 and rows(file)[3]["kind"] == "restore", done.stderr
    assert found["restore"]["seconds_low"] / 2 < rows(file)[3]["seconds"] < 2 * found["restore"]["seconds_high"]


def test_a_daemon_that_is_killed_goes_on_between_hosts(hosts: testbed.Hosts, file: Path, tmp_path: Path) -> None:
    data, copies = hosts.left.home() / tmp_path.name / "data", hosts.right.home() / tmp_path.name / "copies"
    data.mkdir()
    (data / "big").write_bytes(random.Random(2).randbytes(12_000_000))
    write(file, hosts, tmp_path.name, 'rate = "16Mbit/s"')
    words = [sys.executable, "-c", "from elephan.cli import main; main()", "backup", str(file), "run"]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=quick())

    first = start()
    try:
        until(lambda: is_durable(file), 90)
        first.send_signal(signal.SIGKILL)
        first.wait()
        write(file, hosts, tmp_path.name)
        second = start()
        try:
            until(lambda: rows(file)[0]["state"] == "done", 90)
        finally:
            second.send_signal(signal.SIGTERM)
            second.wait()
    finally:
        first.kill()
        first.wait()
    (version,) = copies.glob("version-*")
    assert (version / "big").read_bytes() == (data / "big").read_bytes()
    (row,) = rows(file)
    assert json.loads(row["receipt"])["sent_bytes"] < 12_000_000


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_file_system_below_a_far_source_that_is_not_mounted_fails_the_run(
    hosts: testbed.Hosts, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = here(capsys)
    data, copies = hosts.left.home() / tmp_path.name / "data", hosts.right.home() / tmp_path.name / "copies"
    disk = data / "sub" / "disk"
    disk.mkdir(parents=True)
    # The hosts have mounts of their own.
    there = ["nsenter", f"--target={hosts.left.sshd.pid}", "--mount"]
    subprocess.run([*there, "mount", "-t", "tmpfs", "none", disk], check=True)
    try:
        subprocess.run([*there, "sh", "-c", f"printf first > {disk}/a"], check=True)
        done = run("backup", file, "run", "records", "--once")
        assert done.returncode == 0, done.stderr
    finally:
        subprocess.run([*there, "umount", disk], check=True)
    (version,) = copies.glob("version-*")
    done = run("backup", file, "run", "records", "--once")
    text = f"left:{disk}: was a file system of its own in {version.name}, and is empty now: mount the disk"
    assert done.returncode == 1 and text in done.stderr, done.stderr
    assert [path.read_text() for path in copies.glob("version-*/sub/disk/a")] == ["first"]
    disk.rmdir()
    assert run("backup", file, "run", "records", "--once").returncode == 0
