"""Locks, namespaces and their removal where something else comes in between. Needs root and /dev/net/tun."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from elephan import run_lock
from elephan.errors import RunError
from elephan.path import testbed

PROBLEM = testbed.missing()
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}")

HOSTS = [testbed.Host("198.18.0.1"), testbed.Host("198.18.0.2")]


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the locks of this test apart from those of runs that go on."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setattr(run_lock, "LOCKS", folder)
    return folder


def test_who_asks_whether_a_run_lives_is_not_taken_for_it(locks: Path) -> None:
    (locks / "abcdef").touch()
    asks = os.open(locks / "abcdef", os.O_RDWR)
    try:
        # As `lives` of another process holds it for a moment.
        fcntl.flock(asks, fcntl.LOCK_SH | fcntl.LOCK_NB)
        assert not run_lock.lives("abcdef")
    finally:
        os.close(asks)
    place = testbed.Site(HOSTS)
    try:
        assert run_lock.lives(place.id)
    finally:
        place.remove()
    assert not run_lock.lives(place.id) and list(locks.iterdir()) == [locks / "abcdef"]


def test_a_lock_that_cannot_be_made_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(run_lock, "LOCKS", tmp_path / "file" / "elephan")
    with pytest.raises(RunError, match="file/elephan: Not a directory: no lock, no path"):
        testbed.Site(HOSTS)


@pytest.mark.parametrize("written", [None, 3])
def test_a_lock_for_whose_text_there_is_no_room_does_not_stay(
    locks: Path, monkeypatch: pytest.MonkeyPatch, written: int | None
) -> None:
    def full(*_: object) -> int:
        if written is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(RunError, match="No space left on device"):
        testbed.Site(HOSTS)
    assert not list(locks.iterdir())


@pytest.fixture
def stuck() -> Iterator[str]:
    """Make the namespaces of a run, the first of which cannot be deleted; its id."""
    run = secrets.token_hex(3)
    place = testbed.NAMESPACES / f"elephan-{run}-0"
    testbed.ip("netns", "add", f"elephan-{run}-1")
    place.mkdir()
    yield run
    place.rmdir()
    for name in testbed.namespaces_of(run):
        testbed.ip("netns", "delete", name)


def test_a_namespace_that_stays_keeps_no_other_one(stuck: str) -> None:
    with pytest.raises(RunError, match=f"elephan-{stuck}-0"):
        testbed.remove(stuck)
    assert testbed.namespaces_of(stuck) == [f"elephan-{stuck}-0"]


def test_namespaces_that_another_one_removes_meanwhile_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    run = secrets.token_hex(3)
    testbed.ip("netns", "add", f"elephan-{run}-0")
    # Between the look and the removal.
    monkeypatch.setattr(testbed, "end", lambda names: [testbed.ip("netns", "delete", name) for name in names])
    assert testbed.remove(run) == 1 and not testbed.namespaces_of(run)


def test_a_namespace_that_has_gone_is_one_line() -> None:
    place = testbed.Site(HOSTS)
    try:
        place.make()
        testbed.ip("netns", "delete", place.names[1])
        with pytest.raises(RunError, match=f"{place.names[1]}: No such file"):
            place.set(1, "tcp_sack", "0")
    finally:
        place.remove()


def test_a_terminals_control_c_does_not_reach_ip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "ip"
    fake.write_text("#!/bin/sh\nps -o sid= -p $$\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert subprocess.run(["ps", "-V"], capture_output=True, check=False).returncode == 0
    assert int(testbed.ip()) != os.getsid(0)
