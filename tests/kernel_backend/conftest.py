"""Runs on this machine's own TCP: their requirements, and a check that they leave nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from elephan import run_lock
from elephan.backends.kernel import missing
from elephan.kernel.maps import loaded
from elephan.kernel.runs import NAME
from elephan.path import testbed
from tests.host_state import network

Elephan = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def kernel() -> None:
    """Skip, with the reason, where this machine cannot run the backend."""
    problem = missing()
    if problem is not None:
        pytest.skip(f"the backend kernel: {problem}")


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of elephan with this interpreter."""
    return [sys.executable, "-c", "from elephan.cli import main; main()", *map(str, arguments)]


@contextmanager
def begun(
    file: Path, namespaces: int, sends: Callable[[str], bool] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Begin the run of a scenario and wait until it sends between so many namespaces; its process and its id.

    `sends` says of a run's id whether it does; without it, a connection at the last host is enough.
    """
    process = subprocess.Popen(
        command("run", file, "--on", "kernel", "--store", "none", "--no-report"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, sending(file, namespaces, sends or connected)
    finally:
        # Not by a kill, after which its loaded objects would stay.
        process.terminate()
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def sending(file: Path, namespaces: int, sends: Callable[[str], bool]) -> str:
    """Wait until the run of a scenario sends, and return its id."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        for run, facts in run_lock.living().items():
            if facts.get("of") == str(file) and len(testbed.namespaces_of(run)) == namespaces and sends(run):
                return run
        time.sleep(0.1)
    raise AssertionError("the run does not begin")


def connected(run: str) -> bool:
    """Return True if the last host of a run has a connection."""
    return "ESTAB" in sockets(testbed.namespaces_of(run)[-1], "-tn")


def sockets(namespace: str, *options: str) -> str:
    """Return what ss(8) shows in a namespace, without its head."""
    words = ["ip", "netns", "exec", namespace, "ss", "-H", *options]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def left_of(run: str) -> list[str]:
    """Return what there is on this machine of a run: namespaces, lock file, congestion controls, processes."""
    found = testbed.namespaces_of(run) + [path.name for path in run_lock.LOCKS.glob(run)]
    for one in loaded():
        match = NAME.fullmatch(one.name)
        if match and match[1] == run[:4] and one.registered:
            found.append(one.name)
    return found


@pytest.fixture
def elephan(kernel: None, tmp_path: Path) -> Elephan:
    """Run elephan to its end, with a store of its own."""

    def run(*arguments: str | Path, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"ELEPHAN_STORE": str(tmp_path / "results.sqlite")}
        return subprocess.run(
            command(*arguments), capture_output=True, text=True, timeout=timeout_s, check=False, env=environment
        )

    return run


@pytest.fixture
def host_stays_as_it_was(kernel: None) -> Iterator[None]:
    """Compare the host's links, routes and addresses before and after."""

    def seen() -> tuple[str, ...]:
        sysctls = Path("/proc/sys/net/ipv4")
        values = [f"{path.name} {path.read_text()}" for path in sorted(sysctls.glob("tcp_*")) if readable(path)]
        return *network(), "".join(values)

    before = seen()
    yield
    assert seen() == before


def readable(path: Path) -> bool:
    """Return True if a sysctl can be read and does not change by itself."""
    # The first lists controls that others load in the meantime; the key of TCP Fast Open needs its own rights.
    return "congestion_control" not in path.name and "key" not in path.name
