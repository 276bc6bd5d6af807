"""Sending the agent's file: packed where the host can unpack it, over slow ways, and named when it does not arrive."""

from __future__ import annotations

import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from elephan.errors import RunError
from elephan.hosts import Host, boot
from elephan.hosts.agent import Agent, connected
from elephan.hosts.agents import agent_files
from tests.hosts import testbed
from tests.hosts.conftest import Elephan

pytestmark = pytest.mark.usefixtures("nothing_stays")

PROXY = """\
import os, select, socket, sys, threading, time
host, port, rate, most = sys.argv[1], *map(int, sys.argv[2:])
far = socket.create_connection((host, port))
def back():
    while data := far.recv(65536):
        os.write(1, data)
    os._exit(0)
threading.Thread(target=back, daemon=True).start()
passed = 0
while passed < most and (data := os.read(0, 4096)):
    far.sendall(data)
    passed += len(data)
    time.sleep(len(data) / rate)
if passed >= most:
    gone = select.poll()
    gone.register(0, 0)
    gone.poll()
"""
"""The way to a host that takes so many bytes per second, and at most so many in all."""


@pytest.fixture
def through(hosts: testbed.Hosts, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, int], None]]:
    """Give a function that sets rate and bound of the way to the left host, which has no agent yet."""
    monkeypatch.setenv("PATH", hosts.environment["PATH"])
    shutil.rmtree(hosts.left.home() / ".cache" / "elephan", ignore_errors=True)
    config = hosts.folder / "ssh_config"
    before = config.read_text()
    proxy = hosts.folder / "proxy.py"
    proxy.write_text(PROXY)

    def slow(rate: int, most: int) -> None:
        config.write_text(f"Host left\n    ProxyCommand {sys.executable} {proxy} %h %p {rate} {most}\n{before}")

    yield slow
    config.write_text(before)
    proxy.unlink()


def slow_steps(monkeypatch: pytest.MonkeyPatch) -> float:
    """Make the time for a step, and pieces, small; return that time, s."""
    monkeypatch.setattr("elephan.hosts.ssh.BOOT_S", 8.0)
    monkeypatch.setattr("elephan.hosts.boot.PIECE", 2**16)
    return 8.0


def test_a_slow_way_has_time_for_each_piece(
    hosts: testbed.Hosts, through: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    step_s = slow_steps(monkeypatch)
    size = len(boot.packed(agent_files()[platform.machine()], boot.GZIP))
    # The whole takes longer than a step may.
    through(round(size / step_s / 1.2), 2**30)
    began_s = time.monotonic()
    with connected(Host("left", "root@left")) as agent:
        assert agent.deployed and time.monotonic() - began_s > step_s


def test_a_file_that_does_not_arrive_is_named(
    hosts: testbed.Hosts, through: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_steps(monkeypatch)
    through(2**30, 300_000)
    with pytest.raises(
        RunError, match=r"left .*: 65.5 kB of the agent's file \(.* MB\) did not arrive after .* within 8 s"
    ):
        Agent(Host("left", "root@left"))


def test_a_host_without_gzip_gets_the_file_as_it_is(hosts: testbed.Hosts, elephan: Elephan) -> None:
    agent = agent_files()[platform.machine()]
    assert elephan("hosts", "check", "bare-left").returncode == 0
    (file,) = (hosts.left.home(testbed.BARE) / ".cache" / "elephan").iterdir()
    assert file.read_bytes() == agent.path.read_bytes()
