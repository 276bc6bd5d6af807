"""The congestion control of a path's namespaces: the scenario's, for as long as the path lives."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from elephan import run_lock
from elephan.congestion_control import verify
from elephan.kernel.maps import loaded
from elephan.kernel.runs import NAME
from elephan.path import congestion, daemon, testbed

PROBLEM = testbed.missing() or verify.lacks()
pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=f"a path with a congestion control {PROBLEM}")

SCENARIO = """\
[run]
duration = "1s"

[path]
bandwidth = "100Mbit/s"
rtt = "10ms"

[[flow]]
congestion_control = { name = "storage_friendly", reduction = "1/4" }
"""

BOTH_ENDS = """\
cat /proc/sys/net/ipv4/tcp_congestion_control
ip netns exec $ELEPHAN_PATH_FAR_NETNS cat /proc/sys/net/ipv4/tcp_congestion_control
"""

CONNECTION = """\
import os, socket, subprocess, sys
far = "import socket; s = socket.create_server(('', 9000)); print(flush=True); c = s.accept()[0]; c.recv(9)"
server = ["ip", "netns", "exec", os.environ["ELEPHAN_PATH_FAR_NETNS"], sys.executable, "-c", far]
with subprocess.Popen(server, stdout=subprocess.PIPE) as process:
    process.stdout.readline()
    with socket.create_connection((os.environ["ELEPHAN_PATH_FAR"], 9000)) as near:
        print(near.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode())
"""

Elephan = Callable[..., subprocess.CompletedProcess[str]]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", "from elephan.cli import main; main()", *map(str, arguments)]


def elephan(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=60, check=False)


def registered(run: str) -> list[str]:
    """Return the congestion controls that are loaded for a run."""
    return [
        one.name for one in loaded() if one.registered and (match := NAME.fullmatch(one.name)) and match[1] == run[:4]
    ]


def until(so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 20
    while not so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "path.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture
def host_keeps_its_default() -> Iterator[None]:
    sysctl = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    before = sysctl.read_text()
    yield
    assert sysctl.read_text() == before


@pytest.mark.usefixtures("host_keeps_its_default")
def test_connections_of_a_shell_use_the_scenario_s_congestion_control(file: Path) -> None:
    """It was the host's default, and the user did not see it."""
    (file.parent / "connection.py").write_text(CONNECTION)
    script = f"echo $ELEPHAN_PATH_ID\n{BOTH_ENDS}exec {sys.executable} {file.parent}/connection.py"
    done = elephan("path", "shell", file, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    run, *names = done.stdout.split()
    assert names == [f"elephan_k{run[:4]}00"] * 3
    assert f"congestion control: storage_friendly(reduction=1/4), as {names[0]}\n" in done.stderr
    assert not registered(run)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_goes_with_the_path_however_that_ends(file: Path, number: signal.Signals) -> None:
    line = command("path", "shell", file, "--", "sh", "-c", "echo $ELEPHAN_PATH_ID; exec sleep 1000")
    process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    run = process.stdout.readline().strip()
    assert registered(run) == [f"elephan_k{run[:4]}00"]
    process.send_signal(number)
    process.wait(timeout=20)
    if number == signal.SIGKILL:
        assert registered(run), "nothing of it could be removed"
        until(lambda: not run_lock.lives(run))
        cleaned = elephan("path", "clean")
        assert cleaned.returncode == 0 and f"unloaded elephan_k{run[:4]}00\n" in cleaned.stdout
    assert not registered(run)


def test_a_path_that_stays_has_it_too(file: Path) -> None:
    shown = daemon.up(file)
    try:
        name = f"elephan_k{shown.id[:4]}00"
        for namespace, *_ in shown.hosts:
            words = ["ip", "netns", "exec", namespace, "cat", "/proc/sys/net/ipv4/tcp_congestion_control"]
            assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == f"{name}\n"
        assert shown.remarks == (f"congestion control: storage_friendly(reduction=1/4), as {name}",)
        assert f"\n  {shown.remarks[0]}\n" in elephan("path", "show").stdout
    finally:
        daemon.down(shown.id)
    assert not registered(shown.id)


def test_one_of_a_sweep_is_taken_and_the_others_are_named(file: Path) -> None:
    sweep = 'sweep.flow.congestion_control=["reno", "cubic", "vegas"]'
    done = elephan("path", "shell", "--set", sweep, file, "--", "true")
    assert done.returncode == 0, done.stderr
    assert "congestion control: reno, as elephan_k" in done.stderr
    assert "left out (cubic, vegas): --set flow.congestion_control=NAME chooses" in done.stderr


def test_one_that_does_not_compile_is_refused_before_a_program_runs(file: Path, tmp_path: Path) -> None:
    (tmp_path / "own.c").write_text("this is no C\n")
    done = elephan("path", "shell", "--set", "flow.congestion_control=./own.c", file, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (2, "") and "own.c" in done.stderr
    assert not [run for run, facts in run_lock.living().items() if facts.get("of") == str(file)]


@pytest.mark.parametrize(
    ("cc", "says"),
    [
        ("reno", "congestion control: the kernel's own reno, since elephan's cannot be loaded (needs root)"),
        ("vegas", "this machine's default, and not vegas, which cannot be loaded (needs root)"),
        ("{ name = 'cubic', beta = '1/2' }", "default, and not cubic(beta=1/2), which cannot be loaded (needs root)"),
    ],
)
def test_where_nothing_may_be_loaded_a_line_says_what_is_there_instead(
    file: Path, monkeypatch: pytest.MonkeyPatch, cc: str, says: str
) -> None:
    from elephan.path.session import ends_of, spec_of
    from elephan.scenario import load

    monkeypatch.setattr(verify, "lacks", lambda: "needs root")
    spec, remark = spec_of(load(file, [f"flow.congestion_control={cc}"]))
    place = testbed.Site(ends_of(spec))
    try:
        place.make()
        with congestion.as_default(place, spec) as line:
            assert says in line and not remark
        assert not registered(place.id)
    finally:
        place.remove()
