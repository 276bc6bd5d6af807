"""A front or an agent that is killed at any moment leaves nothing on either host, and nothing stored is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.hosts import testbed
from tests.hosts.conftest import Elephan, command, started
from tests.hosts.test_runs import scenario

pytestmark = pytest.mark.usefixtures("nothing_stays")

POINTS = int(os.environ.get("ELEPHAN_KILLS", "2"))
"""Kills of each victim; more of them on request."""

SPAN_S = 3.0
"""Time from a command's start in which it connects, deploys, runs and ends."""


def agents(end: testbed.End) -> list[int]:
    """Agents of a host."""
    return [pid for pid, words in end.processes().items() if "/.cache/elephan/agent-" in words]


def guards(end: testbed.End) -> list[int]:
    """Processes that undo what a killed agent has changed."""
    return [pid for pid, words in end.processes().items() if words.startswith("/proc/self/exe guard ")]


@pytest.fixture(scope="module")
def stored(hosts: testbed.Hosts, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Ids of runs that are in the store before anything is killed."""
    kept = scenario(tmp_path_factory.mktemp("kept"), cc="reno", duration="200ms")
    words = command("run", kept, "--on", "sim,hosts", "--hosts", "left,right", "--yes", "--json", "--no-report")
    done = subprocess.run(words, env=hosts.environment, capture_output=True, text=True, check=True)
    return {record["id"] for record in json.loads(done.stdout)}


@pytest.mark.parametrize("point", range(POINTS))
@pytest.mark.parametrize("victim", ["front", "left", "right"])
def test_nothing_stays_of_a_run_that_was_killed(
    hosts: testbed.Hosts, elephan: Elephan, stored: set[str], tmp_path: Path, victim: str, point: int
) -> None:
    arguments = ("--on", "hosts", "--hosts", "left,right", "--yes", "--no-report")
    file = scenario(tmp_path, duration="2s", more="frto = false")
    after_s = random.Random(f"{victim} {point}").uniform(0.3, SPAN_S)
    front = started(hosts, command("run", file, *arguments, "--again"))
    time.sleep(after_s)
    if victim == "front":
        front.kill()
    else:
        end = hosts.left if victim == "left" else hosts.right
        for pid in agents(end)[:1]:
            testbed.kill(pid)
    said = front.communicate(timeout=30)[1]
    if victim != "front" and front.returncode != 0:
        assert front.returncode == 1 and said.count("\n") == 1 and victim in said, said
    for end in hosts.ends:
        testbed.waited(lambda end=end: not end.processes(), lambda end=end: str(end.processes()))
    checked = elephan("results", "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert stored <= {record["id"] for record in json.loads(elephan("results", "export", "--format", "json").stdout)}


def test_clean_restores_what_a_killed_agent_and_its_guard_have_left(
    hosts: testbed.Hosts, elephan: Elephan, tmp_path: Path
) -> None:
    usual = hosts.left.sysctls()["net.ipv4.tcp_frto"]
    file = scenario(tmp_path, duration="20s", more="frto = false")
    words = command("run", file, "--on", "hosts", "--hosts", "left,right", "--yes", "--no-report")
    with started(hosts, words) as front:
        testbed.waited(lambda: hosts.left.sysctls()["net.ipv4.tcp_frto"] == "0" and guards(hosts.left))
        # All at once, so that the guard has no moment to do it.
        stopped = agents(hosts.left) + guards(hosts.left)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        for pid in stopped:
            testbed.kill(pid)
        front.communicate(timeout=30)
    assert hosts.left.sysctls()["net.ipv4.tcp_frto"] == "0"
    done = elephan("hosts", "clean", "left")
    assert done.returncode == 0 and "net.ipv4.tcp_frto" in done.stdout, done.stdout + done.stderr
    assert hosts.left.sysctls()["net.ipv4.tcp_frto"] == usual


def test_ctrl_c_ends_a_run_in_order_on_both_sides(hosts: testbed.Hosts, tmp_path: Path) -> None:
    file = scenario(tmp_path, duration="20s")
    words = command("run", file, "--on", "hosts", "--hosts", "left,right", "--yes", "--no-report")
    with started(hosts, words) as front:
        testbed.waited(lambda: "ESTAB" in hosts.right.run("ss", "-tnH", "src", hosts.right.data).stdout)
        front.send_signal(signal.SIGINT)
        said = front.communicate(timeout=15)[1]
    assert front.returncode == 130 and "stopped: 0 of 1 run" in said, said
