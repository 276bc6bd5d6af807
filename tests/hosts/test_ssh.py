"""Reaching a host: the agent is deployed once and ends with its channel; each fault is one line."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from elephan.errors import InputError, RunError
from elephan.hosts import Host
from elephan.hosts.agent import Agent
from elephan.hosts.agents import agent_files
from elephan.hosts.ssh import Session
from tests.hosts import testbed
from tests.hosts.conftest import Elephan, Said

pytestmark = pytest.mark.usefixtures("nothing_stays")


def test_a_host_tells_what_it_is(hosts: testbed.Hosts, elephan: Elephan) -> None:
    done = elephan("hosts", "check", "left", "--towards", "right", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["address"] == hosts.left.data and told["capabilities"]["net_admin"]
    assert told["limits"]["tcp_rmem"] == [int(word) for word in hosts.left.sysctls()["net.ipv4.tcp_rmem"].split()]
    # One machine has both clocks.
    assert abs(told["clock_offset_s"]) <= told["clock_offset_error_s"] + 0.001
    (way,) = told["routes"]
    assert (way["interface"], way["mtu_bytes"]) == ("path", 1500)
    lines = elephan("hosts", "check", "left").stdout.splitlines()
    assert any(line.startswith("rights") and "any congestion control" in line for line in lines), lines


def test_a_user_without_rights_sees_what_an_administrator_would_type(hosts: testbed.Hosts, elephan: Elephan) -> None:
    done = elephan("hosts", "check", "user-left")
    assert done.returncode == 0, done.stderr
    assert "sudo sysctl -w net.ipv4.tcp_rmem" in done.stdout and "elephan kernel load" in done.stdout


def test_a_user_whom_sudo_asks_no_password_has_all_rights(elephan: Elephan) -> None:
    done = elephan("hosts", "check", "sudo-left", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["uid"] == 0 and told["capabilities"]["bpf"]


def test_a_user_whom_sudo_lets_run_something_else_has_no_rights(hosts: testbed.Hosts, elephan: Elephan) -> None:
    done = elephan("hosts", "check", "limited-left", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["uid"] == testbed.USERS[testbed.LIMITED] and not told["capabilities"]["net_admin"]


def test_the_agent_is_sent_once_and_again_when_its_file_was_changed(hosts: testbed.Hosts, elephan: Elephan) -> None:
    assert elephan("hosts", "check", "left").returncode == 0
    (file,) = (hosts.left.home() / ".cache" / "elephan").iterdir()
    sent = file.stat().st_mtime_ns
    assert elephan("hosts", "check", "left").returncode == 0
    assert file.stat().st_mtime_ns == sent
    good = file.read_bytes()
    file.write_bytes(good[:-1] + b"!")
    (file.parent / "agent-0.0.1-0123456789abcdef").write_text("an older one")
    assert elephan("hosts", "check", "left").returncode == 0
    assert file.read_bytes() == good
    assert list(file.parent.iterdir()) == [file]


@pytest.fixture
def prints(hosts: testbed.Hosts) -> Iterator[Callable[[str], None]]:
    """Give a function by which the left host's shell runs something at its start."""
    # A file of ssh's that is run before each command, as a .bashrc is by bash.
    rc = hosts.left.home() / ".ssh" / "rc"
    rc.parent.mkdir()

    def at_start(text: str) -> None:
        rc.write_text(text)

    yield at_start
    rc.unlink()
    rc.parent.rmdir()


def test_what_a_shell_prints_at_its_start_does_no_harm(prints: Callable[[str], None], elephan: Elephan) -> None:
    prints("echo Welcome to left; echo elephan; printf '\\377\\n'")
    assert elephan("hosts", "check", "left").returncode == 0


def test_a_shell_that_prints_without_end_is_named(prints: Callable[[str], None], elephan: Elephan) -> None:
    prints("yes Welcome")
    one_line(elephan("hosts", "check", "left"), 1, "its shell prints more than 65536 bytes at its start")


@pytest.fixture
def changed(hosts: testbed.Hosts) -> Iterator[testbed.Hosts]:
    """Put the front's files of ssh back after a test that changes them."""
    files = [hosts.folder / name for name in ("ssh_config", "known_hosts", "hosts.toml")]
    before = [file.read_text() for file in files]
    yield hosts
    for file, text in zip(files, before, strict=True):
        file.write_text(text)


def one_line(done: Said, code: int, pattern: str) -> None:
    """Hold that a command failed with one line that fits."""
    assert done.returncode == code and done.stderr.count("\n") == 1, (done.returncode, done.stderr)
    assert re.search(pattern, done.stderr), done.stderr


def test_an_unknown_host_is_named(changed: testbed.Hosts, elephan: Elephan) -> None:
    book = changed.folder / "hosts.toml"
    book.write_text(book.read_text() + '[gone]\nssh = "root@gone.invalid"\n')
    one_line(elephan("hosts", "check", "gone"), 2, r"gone \(root@gone.invalid\): ssh finds no host gone.invalid")


def test_a_changed_host_key_is_told_from_an_unknown_one(changed: testbed.Hosts, elephan: Elephan) -> None:
    known = changed.folder / "known_hosts"
    other = (changed.folder / "key-other.pub").read_text().split()[:2]
    known.write_text(f"[{changed.left.management}]:2222 {' '.join(other)}\n")
    one_line(elephan("hosts", "check", "left"), 2, r"host key has changed \(known: .*known_hosts:1\)")
    known.write_text("")
    one_line(elephan("hosts", "check", "left"), 2, "host key is not known yet")
    assert known.read_text() == ""


def test_a_key_that_the_host_does_not_take_is_named(changed: testbed.Hosts, elephan: Elephan) -> None:
    config = changed.folder / "ssh_config"
    config.write_text(config.read_text().replace("key-user", "key-other"))
    one_line(elephan("hosts", "check", "left"), 2, r"permission denied \(publickey\)")


def test_a_port_without_sshd_is_named(changed: testbed.Hosts, elephan: Elephan) -> None:
    config = changed.folder / "ssh_config"
    config.write_text(config.read_text().replace("Port 2222", "Port 2223"))
    one_line(elephan("hosts", "check", "left"), 1, "cannot be reached: .*port 2223: Connection refused")


def test_a_full_disk_is_named_and_nothing_stays_of_the_file(hosts: testbed.Hosts, elephan: Elephan) -> None:
    home = hosts.right.home(testbed.USER)
    there = ["nsenter", f"--mount=/proc/{hosts.right.sshd.pid}/ns/mnt"]
    options = f"size=100k,mode=755,uid={testbed.USERS[testbed.USER]}"
    subprocess.run([*there, "mount", "-t", "tmpfs", "-o", options, "full", str(home)], check=True)
    try:
        one_line(elephan("hosts", "check", "user-right"), 1, "no space on its disk")
        listed = subprocess.run(
            [*there, "find", str(home), "-type", "f"], capture_output=True, text=True, check=True
        ).stdout
        assert listed == ""
    finally:
        subprocess.run([*there, "umount", "-l", str(home)], check=True)


def test_a_home_without_programs_is_named(hosts: testbed.Hosts, elephan: Elephan) -> None:
    home = hosts.right.home(testbed.USER)
    there = ["nsenter", f"--mount=/proc/{hosts.right.sshd.pid}/ns/mnt"]
    options = f"noexec,size=50M,mode=755,uid={testbed.USERS[testbed.USER]}"
    subprocess.run([*there, "mount", "-t", "tmpfs", "-o", options, "noexec", str(home)], check=True)
    try:
        one_line(elephan("hosts", "check", "user-right"), 1, "may not run a program from ~/.cache/elephan")
    finally:
        subprocess.run([*there, "umount", "-l", str(home)], check=True)


HOLDS = """\
from elephan.hosts import Book
from elephan.hosts.agent import connected
with connected(Book.read().find("left")):
    print("there", flush=True)
    input()
"""
"""A front that keeps its agent until it is told otherwise."""


def test_the_agent_ends_with_a_killed_front(hosts: testbed.Hosts) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS], env=hosts.environment, stdout=subprocess.PIPE, stdin=subprocess.PIPE
    ) as front:
        assert front.stdout is not None and front.stdout.readline() == b"there\n"
        assert any(".cache/elephan/agent" in words for words in hosts.left.processes().values())
        front.kill()
        began_s = time.monotonic()
        testbed.waited(lambda: not hosts.left.processes(), lambda: str(hosts.left.processes()))
        assert time.monotonic() - began_s < 15


def test_an_agent_ends_when_its_front_is_silent(hosts: testbed.Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    # The channel stays open, as it does when the front's machine or network fails.
    monkeypatch.setenv("PATH", hosts.environment["PATH"])
    monkeypatch.setattr("elephan.hosts.agent.LEASE_S", 2)
    monkeypatch.setattr("elephan.hosts.agent.ALIVE_S", 3600.0)
    agent = Agent(Host("left", "root@left"))
    try:
        testbed.waited(lambda: not hosts.left.processes(), lambda: str(hosts.left.processes()))
        with pytest.raises(RunError, match="the front has been silent for its lease"):
            agent.ask("check")
    finally:
        agent.close()


def test_a_machine_type_without_an_agent_is_named(hosts: testbed.Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", hosts.environment["PATH"])
    with pytest.raises(InputError, match="no agent for its machine type, x86_64; this elephan has aarch64"):
        Session(Host("left", "root@left"), {"aarch64": agent_files()["x86_64"]})


def test_an_agent_of_another_version_is_named(hosts: testbed.Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", hosts.environment["PATH"])
    monkeypatch.setattr("elephan.hosts.agent.version", lambda: "9.8.7")
    with pytest.raises(RunError, match=r"left: its agent is of elephan [0-9.]+, and this is 9.8.7"):
        Agent(Host("left", "root@left"))


def test_part_of_a_file_whose_sender_was_cut_off_is_removed(hosts: testbed.Hosts, elephan: Elephan) -> None:
    cache = hosts.left.home() / ".cache" / "elephan"
    cache.mkdir(parents=True, exist_ok=True)
    for file in cache.iterdir():
        file.unlink()
    # Beyond the largest process id (Linux's PID_MAX_LIMIT).
    (cache / f".agent-{platform.node()}-4194305").write_text("a part")
    # Homes may be shared: nobody here knows whether the sender to another host lives.
    other = cache / ".agent-another-4194305"
    other.write_text("a part")
    assert elephan("hosts", "check", "left").returncode == 0
    assert sorted(file.name[:7] for file in cache.iterdir()) == [".agent-", "agent-0"]
    other.unlink()


def test_clean_removes_older_agents_and_keeps_this_elephans(hosts: testbed.Hosts, elephan: Elephan) -> None:
    assert elephan("hosts", "check", "left").returncode == 0
    cache = hosts.left.home() / ".cache" / "elephan"
    for name in ("agent-0.0.1-0123456789abcdef", "agent-0.0.2-0123456789abcdef"):
        (cache / name).write_text("an older one")
    # Hosts of several machine types may share a home.
    own = {file.cached_name for file in agent_files().values()}
    for name in own:
        (cache / name).touch()
    done = elephan("hosts", "clean", "left")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["removed 2 files of older agents", "left: cleaned"]
    assert elephan("hosts", "clean", "left").stdout == "left: nothing is left\n"
    assert {file.name for file in cache.iterdir()} == own


def test_a_folder_in_place_of_the_agents_file_is_named(hosts: testbed.Hosts, elephan: Elephan) -> None:
    cache = hosts.right.home(testbed.USER) / ".cache" / "elephan"
    folder = cache / agent_files()["x86_64"].cached_name
    cache.mkdir(parents=True, exist_ok=True)
    folder.unlink(missing_ok=True)
    folder.mkdir()
    try:
        one_line(
            elephan("hosts", "check", "user-right"), 1, f"{folder} is no file, and is where the agent's file belongs"
        )
        assert list(cache.iterdir()) == [folder] and not list(folder.iterdir())
    finally:
        folder.rmdir()


def test_files_of_the_front_stay_as_they_are(hosts: testbed.Hosts, elephan: Elephan) -> None:
    before = sorted(str(path) for path in hosts.folder.iterdir())
    assert elephan("hosts", "check", "left").returncode == 0
    assert sorted(str(path) for path in hosts.folder.iterdir()) == before
    assert not list(Path("/tmp").glob("elephan-ssh-*"))
