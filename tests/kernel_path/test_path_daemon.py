"""`elephan path up | show | down`: a path that stays until a command ends it. Needs root and /dev/net/tun."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from elephan import run_lock
from elephan.errors import InputError
from elephan.kernel.run_controls import unload_stale
from elephan.path import daemon, testbed

PROBLEM = testbed.missing()
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}")

SCENARIO = """\
[run]
duration = "1s"

[path]
bandwidth = "100Mbit/s"
rtt = "30ms"

[[flow]]
congestion_control = "reno"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "path.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture
def path(file: Path) -> Iterator[daemon.Shown]:
    """Bring one up, and take it down if the test has not."""
    shown = daemon.up(file)
    yield shown
    if shown.id in run_lock.living():
        daemon.down(shown.id)


def process_of(run: str) -> int:
    return int(run_lock.living()[run]["pid"])


def elephan(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from elephan.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_path_that_is_up_carries_packets_is_shown_and_goes_with_its_programs(path: daemon.Shown) -> None:
    (near, own, *_), (far, other, *_) = path.hosts
    within = ["ip", "netns", "exec", near]
    code = "import socket; s = socket.create_connection(('198.18.0.2', 9), 5)"
    # There is no listener: the answer to a refused connection has crossed the path in both directions.
    done = subprocess.run([*within, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ConnectionRefusedError" in done.stderr
    left = subprocess.Popen([*within, "sleep", "1000"])
    (shown,) = (one for one in daemon.show() if one.id == path.id)
    assert (own, other) == ("198.18.0.1 2001:2::1", "198.18.0.2 2001:2::2")
    assert [host[:2] for host in shown.hosts] == [(near, own), (far, other)]
    assert [host[2:] for host in shown.hosts] == [(1, 1), (1, 1)]
    text = elephan("path", "show").stdout
    assert f"{path.id}  up" in text and f"{near}  {own}  1 packet sent, 1 packet received" in text
    report = daemon.down(path.id)
    assert "path.forward: 1 packets" in report and "path.reverse: 1 packets" in report
    assert left.wait(timeout=10) == -signal.SIGTERM
    assert path.id not in run_lock.living() and not testbed.namespaces_of(path.id)
    assert not (run_lock.LOCKS / path.id).exists()


def test_a_signal_to_the_process_that_holds_it_takes_it_down(path: daemon.Shown) -> None:
    os.kill(process_of(path.id), signal.SIGINT)
    deadline_s = time.monotonic() + 20
    while path.id in run_lock.living():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    assert not testbed.namespaces_of(path.id)


def test_clean_removes_what_a_kill_has_left(path: daemon.Shown) -> None:
    os.kill(process_of(path.id), signal.SIGKILL)
    deadline_s = time.monotonic() + 20
    while path.id in run_lock.living():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    assert testbed.namespaces_of(path.id) and (run_lock.LOCKS / path.id).exists()
    testbed.clean()
    assert not testbed.namespaces_of(path.id) and not (run_lock.LOCKS / path.id).exists()
    assert any(name.startswith(f"elephan_k{path.id[:4]}") for name in unload_stale())


def test_what_cannot_come_up_is_said_in_one_line_and_leaves_nothing(file: Path) -> None:
    before = set(run_lock.living())
    done = elephan("path", "up", str(file), "--set", "path.bandwidth=fast")
    assert done.returncode == 2 and "path.bandwidth" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    # Paths of others may come and go meanwhile.
    now = run_lock.living()
    assert not [run for run in set(now) - before if now[run].get("of") == str(file)]


def test_down_without_an_id_takes_nothing(path: daemon.Shown) -> None:
    # An empty variable of a script gives this; it is the beginning of every id.
    with pytest.raises(InputError, match="no path ''"):
        daemon.down("")
    assert path.id in run_lock.living()


def test_down_of_what_has_just_gone_is_one_line(path: daemon.Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run_lock.living()
    daemon.down(path.id)
    # The path was seen a moment ago: another `down` was faster.
    with monkeypatch.context() as patch:
        patch.setattr(run_lock, "living", lambda: before)
        with pytest.raises(InputError, match="has just ended"):
            daemon.down(path.id)


def test_a_fault_of_the_process_that_holds_it_is_said(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fault(*_: object) -> None:
        raise ZeroDivisionError("of something")

    monkeypatch.setattr(daemon, "_keep", fault)
    assert daemon.main([str(file)]) == 1
    assert json.loads(capsys.readouterr().out) == {"error": "ZeroDivisionError: of something", "exit_code": 1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_path_of_which_nobody_has_heard_goes(file: Path, number: signal.Signals) -> None:
    # `up` is ended when the path is there, and before it has printed it.
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom elephan.path import daemon\n"
        f"daemon.show = lambda: os.kill(os.getpid(), {int(number)}) or []\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\ndaemon.up(Path(sys.argv[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, timeout=60, check=False)
    assert done.returncode == -number, done.stderr
    deadline_s = time.monotonic() + 20
    while [run for run, facts in run_lock.living().items() if facts.get("of") == str(file)]:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_down_takes_only_paths_of_up() -> None:
    with pytest.raises(InputError, match="no path zzz"):
        daemon.down("zzz")
    place = testbed.Site([testbed.Host("198.18.0.1"), testbed.Host("198.18.0.2")], {"what": "shell"})
    try:
        with pytest.raises(InputError, match="it ends with its command"):
            daemon.down(place.id)
    finally:
        place.remove()


@pytest.mark.parametrize("count", [1, 65])
def test_a_number_of_hosts_that_one_machine_does_not_make_is_refused(count: int) -> None:
    with pytest.raises(InputError, match="2 to 64 hosts"):
        testbed.Site([testbed.Host(testbed.address(number)) for number in range(count)])


def test_many_hosts_have_each_their_own_address_and_settings() -> None:
    own = Path("/proc/sys/net/ipv4/tcp_reordering")
    before = own.read_text()
    hosts = [testbed.Host(testbed.address(n), sysctls={"tcp_reordering": str(3 + n)}) for n in range(12)]
    place = testbed.Site(hosts)
    try:
        place.make()
        seen = [
            subprocess.run(
                ["ip", "netns", "exec", name, "cat", "/proc/sys/net/ipv4/tcp_reordering"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for name in (place.names[0], place.names[11])
        ]
        assert seen == ["3", "14"]
        assert own.read_text() == before, "the host's own is not touched"
        assert len({host.address for host in hosts}) == 12
    finally:
        place.remove()
    assert not testbed.namespaces_of(place.id)
