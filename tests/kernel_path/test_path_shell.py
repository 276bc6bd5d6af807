"""`elephan path shell`: real packets over the link model, and nothing left behind. Needs root and /dev/net/tun."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from elephan import run_lock
from elephan.kernel.run_controls import unload_stale
from elephan.path import testbed
from tests.host_state import network
from tests.processes import runs

PROBLEM = testbed.missing()
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}")

SCENARIO = """\
[run]
duration = "1s"

[path]
{path}

[[flow]]
congestion_control = "reno"
"""
NUMBERED = """\
import os, socket, subprocess, sys, time
count = int(sys.argv[1])
receiver = subprocess.Popen(
    ["ip", "netns", "exec", os.environ["ELEPHAN_PATH_FAR_NETNS"], sys.executable, "-c", '''
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 9000)); s.settimeout(2)
print("ready", flush=True)
got = []
try:
    while True: got.append(int(s.recv(2000)[:8]))
except TimeoutError: pass
print(*got)
'''], stdout=subprocess.PIPE, text=True)
receiver.stdout.readline()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(1, count + 1):
    s.sendto(b"%08d" % number, (os.environ["ELEPHAN_PATH_FAR"], 9000))
    time.sleep(0.0005)
print(receiver.communicate()[0])
"""

NOT_HONOURED = "THE EMULATOR DID NOT HONOUR THE PATH"

Command = Callable[..., list[str]]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Make the command line for a path and a program."""

    def make(path: str, *program: str) -> list[str]:
        file = tmp_path / "path.toml"
        file.write_text(SCENARIO.format(path=path), encoding="utf-8")
        elephan = [sys.executable, "-c", "from elephan.cli import main; main()"]
        return [*elephan, "path", "shell", str(file), "--", *program]

    return make


@pytest.fixture(autouse=True)
def host_stays_as_it_was() -> Iterator[None]:
    """Compare the host's state before and after each test; other paths in use come and go."""

    def namespaces() -> set[str]:
        return {line.split()[0] for line in testbed.ip("netns").splitlines()}

    before, spaces = network(), namespaces()
    yield
    assert network() == before
    left = namespaces() - spaces
    assert not {name for name in left if not run_lock.lives(name.removeprefix(f"{testbed.MARK}-").rpartition("-")[0])}


def run(command: list[str], timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    """Run to the end."""
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)


def late_ms(report: str) -> list[float]:
    """Return the emulator's own values of the latest packet in a hundred: sent on late, and waited to be read."""
    return [float(found) for found in re.findall(r"(?:p99|may have waited) ([\d.]+) ms", report)]


def need(tool: str) -> None:
    """Skip where a tool is missing."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")


def test_ping_shows_the_round_trip_time(command: Command) -> None:
    need("ping")
    path = 'bandwidth = "100Mbit/s"\nrtt = "30ms"'
    done = run(command(path, "sh", "-c", "ping -n -c 20 -i 0.05 $ELEPHAN_PATH_FAR"))
    assert done.returncode == 0, done.stdout + done.stderr
    times_ms = sorted(float(t) for t in re.findall(r"time=([\d.]+) ms", done.stdout))
    assert len(times_ms) == 20
    # No packet is early; the middle one is within the bound (single ones may meet a busy machine). Where the emulator
    # says itself that it did not honour the path, by what it admits, once there and once back.
    admitted_ms = 2 * sum(late_ms(done.stderr)) if NOT_HONOURED in done.stderr else 0.0
    assert times_ms[0] >= 30.0 and times_ms[10] < 30.5 + admitted_ms, (times_ms, done.stderr)


def test_tcp_fills_the_line(command: Command) -> None:
    need("iperf3")
    path = 'bandwidth = "50Mbit/s"\nrtt = "20ms"'
    script = (
        "ip netns exec $ELEPHAN_PATH_FAR_NETNS iperf3 -s -D -1 >/dev/null; sleep 0.5; "
        "iperf3 -c $ELEPHAN_PATH_FAR -t 5 -O 1 -J"
    )
    done = run(command(path, "sh", "-c", script))
    assert done.returncode == 0, done.stdout + done.stderr
    rate_bps = json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]
    assert 0.9 * 50e6 <= rate_bps <= 50e6, f"{rate_bps / 1e6:.1f} Mbit/s"


@pytest.mark.parametrize(
    ("loss", "lost"),
    [("{ packets = [1, 7, 8, 150] }", {1, 7, 8, 150}), ("{ every = 9 }", None)],
)
def test_exactly_the_packets_that_the_scenario_names_are_lost(
    command: Command, loss: str, lost: set[int] | None
) -> None:
    lost = lost or set(range(9, 201, 9))
    path = f'bandwidth = "100Mbit/s"\nrtt = "10ms"\nloss = {loss}'
    done = run(command(path, sys.executable, "-c", NUMBERED, "200"))
    assert done.returncode == 0, done.stdout + done.stderr
    got = [int(number) for number in done.stdout.split()]
    assert got == [number for number in range(1, 201) if number not in lost]
    assert f"lost {len(lost)}" in done.stderr


def test_the_exit_code_is_the_programs(command: Command) -> None:
    path = 'bandwidth = "1Gbit/s"\nrtt = "1ms"'
    assert run(command(path, "sh", "-c", "exit 7")).returncode == 7


def test_what_the_program_leaves_behind_ends_with_the_path(command: Command) -> None:
    done = run(command('bandwidth = "1Gbit/s"\nrtt = "1ms"', "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"))
    assert done.returncode == 0, done.stderr
    assert not runs(int(done.stdout))


def begun(command: list[str]) -> tuple[subprocess.Popen[str], str]:
    """Start a path whose program prints its id, and wait for it."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


SLEEPER = ("sh", "-c", "echo $ELEPHAN_PATH_ID; exec sleep 1000")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_and_the_path(command: Command, number: signal.Signals) -> None:
    process, _ = begun(command('bandwidth = "1Gbit/s"\nrtt = "1ms"', *SLEEPER))
    process.send_signal(number)
    assert process.wait(timeout=20) == 128 + number


def test_a_signal_that_is_ignored_stays_so(command: Command) -> None:
    # nohup(1) does that before a terminal is closed.
    line = command('bandwidth = "1Gbit/s"\nrtt = "1ms"', *SLEEPER)
    process, _ = begun(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *line])
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    process.terminate()
    assert process.wait(timeout=20) == 128 + signal.SIGTERM


def test_a_program_that_is_not_there_is_said_before_anything_is_made(
    command: Command,
) -> None:
    done = run(command('bandwidth = "1Gbit/s"\nrtt = "1ms"', "no-such-program"))
    assert done.returncode == 2 and done.stderr == "error: no-such-program: no program of this name can be run here\n"


SIGNAL_AFTER_FORK = """\
import signal, subprocess, sys
from pathlib import Path
from elephan.path import shell
real = subprocess.Popen
def begin(words, **more):
    process = real(words, **more)
    if "1000" in words:
        signal.raise_signal(signal.SIGTERM)
    return process
subprocess.Popen = begin
sys.exit(shell.run(Path(sys.argv[1]), ["sleep", "1000"])[0])
"""


def test_a_signal_between_the_program_and_its_number_is_not_lost(tmp_path: Path) -> None:
    file = tmp_path / "path.toml"
    file.write_text(SCENARIO.format(path='bandwidth = "1Gbit/s"\nrtt = "1ms"'), encoding="utf-8")
    done = run([sys.executable, "-c", SIGNAL_AFTER_FORK, str(file)], timeout_s=30)
    assert done.returncode == 128 + signal.SIGTERM, done.stderr


def test_clean_removes_what_a_killed_path_has_left_and_nothing_that_lives(command: Command) -> None:
    line = command('bandwidth = "1Gbit/s"\nrtt = "1ms"', *SLEEPER)
    killed, dead = begun(line)
    kept, living = begun(line)
    try:
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        namespace = f"elephan-{dead}-0"
        assert namespace in testbed.ip("netns")
        left = testbed.processes([namespace])
        assert left
        testbed.clean()
        assert any(name.startswith(f"elephan_k{dead[:4]}") for name in unload_stale())
        assert dead not in testbed.ip("netns") and living in testbed.ip("netns")
        assert not (run_lock.LOCKS / dead).exists()
        deadline_s = time.monotonic() + 5
        while any(map(runs, left)) and time.monotonic() < deadline_s:
            time.sleep(0.05)
        assert not any(map(runs, left))
    finally:
        kept.terminate()
        kept.wait(timeout=20)


def test_a_scenario_that_is_not_for_this_is_refused_with_one_line(command: Command) -> None:
    event = '[[event]]\nwhen = { flow = "flow1", reaches = "1Mbit/s", over = "1s" }\nrtt = "9ms"'
    done = run(command(f'bandwidth = "1Gbit/s"\nrtt = "1ms"\n{event}', "true"))
    assert done.returncode == 2 and "event" in done.stderr and done.stderr.count("\n") == 1, done.stderr
