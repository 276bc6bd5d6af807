"""Fixtures for tests of the kernel: a network namespace to try things in, and a check that nothing of theirs stays."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from elephan.congestion_control import verify
from elephan.kernel import loaded, runs
from elephan.kernel.maps import remove

ROOT = Path(__file__).parents[2]
LOCK = Path(tempfile.gettempdir()) / "elephan-kernel-tests.lock"
"""Files of tests run beside each other: held together by those that load, alone by one that removes everything."""

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def locked(how: int) -> Iterator[None]:
    """Hold the lock."""
    handle = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)


def lacking() -> str:
    """Return the missing requirement of tests in this machine's kernel; "" if there is none."""
    tools = [name for name in ("unshare", "nsenter", "setpriv", "ss", "ip") if shutil.which(name) is None]
    return verify.lacks() or (f"there is no {', '.join(tools)}" if tools else "")


def without_traces() -> Iterator[None]:
    """Remove a test's objects; those that were there before stay, and those of a run beside the tests."""
    before = {one.map_id for one in loaded()}
    yield
    for one in loaded():
        if one.map_id not in before and one.registered and not runs.lives(one.name):
            remove(one)


@pytest.fixture
def kernel() -> Iterator[None]:
    """A kernel that takes congestion controls, beside other tests."""
    if missing := lacking():
        pytest.skip(missing)
    for _ in locked(fcntl.LOCK_SH):
        yield from without_traces()


@pytest.fixture
def kernel_alone() -> Iterator[set[int]]:
    """The same for commands that remove all of elephan's: no other test has anything loaded meanwhile. Gives the maps
    of the controls loaded on this machine before, which a test must spare.

    Gives the maps of what was loaded on this machine before, which a test must spare.
    """
    if missing := lacking():
        pytest.skip(missing)
    for _ in locked(fcntl.LOCK_EX):
        before = {one.map_id for one in loaded() if one.registered}
        for _ in without_traces():
            yield before


@pytest.fixture
def in_namespace() -> Callable[..., str]:
    """Run Python code in a network namespace of its own and return its output."""

    def run(code: str, *arguments: str, options: tuple[str, ...] = ()) -> str:
        command = ["unshare", "--net", *options, sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def elephan() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `elephan kernel ...` as a user does."""

    def run(*arguments: str, prefix: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
        code = "from elephan.cli import main; main()"
        command = [*prefix, sys.executable, "-c", code, "kernel", *arguments]
        around = ENVIRONMENT | environment
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env=around, check=False)

    return run
