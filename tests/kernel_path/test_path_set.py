"""`elephan path set`: a path changes while it carries packets. Judged by ping, iperf3 and the kernel's counters."""

from __future__ import annotations

import io
import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from elephan.cli.console import console
from elephan.cli.main import call
from elephan.path import daemon, testbed

PROBLEM = testbed.missing() or next(
    (f"needs {name}" for name in ("ping", "iperf3") if shutil.which(name) is None), None
)
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}")

SCENARIO = """\
[run]
duration = "600s"

[path]
bandwidth = "40Mbit/s"
rtt = "20ms"

[[flow]]
congestion_control = "reno"

[[background]]
name = "neighbour"
rate = "10Mbit/s"
packet = "1000B"
enabled = false
"""
ELEPHAN = [sys.executable, "-c", "from elephan.cli import main; main()"]


def elephan(*arguments: str) -> tuple[int, str, str]:
    """Run the command in this process, which takes less time than another one: its exit code and what it prints."""
    console.cache_clear()
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = call(list(arguments))
    console.cache_clear()
    return code, out.getvalue(), err.getvalue()


def set_(run: str, *settings: str) -> str:
    code, said, fault = elephan("path", "set", run, *settings)
    assert code == 0 and not fault, fault
    return said


def shown() -> str:
    return elephan("path", "show")[1]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("set") / "path.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def up(file: Path) -> Iterator[daemon.Shown]:
    found = daemon.up(file)
    yield found
    daemon.down(found.id)


FIRST = ["path.bandwidth=40Mbit/s", "path.rtt=20ms", "path.loss=0", "path.policer=none", "path.mtu=1500B"]


@pytest.fixture
def path(up: daemon.Shown) -> Iterator[daemon.Shown]:
    """Give the path as its file has it, at the beginning and at the end."""
    yield up
    set_(up.id, *FIRST, "path.reverse.loss=0", "link_up=path", "background_off=neighbour")


def within(path: daemon.Shown, end: int, *words: str) -> list[str]:
    return ["ip", "netns", "exec", path.hosts[end][0], *words]


def ping(path: daemon.Shown, *options: str) -> tuple[int, int, list[float]]:
    """Return packets that ping(8) sent and received, and the round trips, ms."""
    words = within(path, 0, "ping", "-n", "-i0.02", "-W1", *options, "198.18.0.2")
    said = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout
    sent, received = map(int, re.findall(r"(\d+) packets transmitted, (\d+) received", said)[0])
    return sent, received, [float(one) for one in re.findall(r"time=([\d.]+) ms", said)]


def udp(path: daemon.Shown, rate: str, seconds: float = 1.5) -> tuple[float, int, int]:
    """Send UDP by iperf3 at a rate; return the rate that arrives, bit/s, and datagrams lost and sent."""
    words = within(path, 1, "iperf3", "-s", "-1", "--forceflush")
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, stderr=subprocess.STDOUT)
    assert server.stdout is not None
    # The listening line is its second.
    server.stdout.readline(), server.stdout.readline()
    words = ["iperf3", "-u", "-c", "198.18.0.2", "-b", rate, "-t", str(seconds), "-l", "1400", "-J"]
    done = subprocess.run(within(path, 0, *words), capture_output=True, text=True, timeout=60, check=True)
    server.communicate(timeout=20)
    end = json.loads(done.stdout)["end"]["sum_received"]
    return float(end["bits_per_second"]), int(end["lost_packets"]), int(end["packets"])


def test_a_longer_round_trip_and_back(path: daemon.Shown) -> None:
    assert "path.forward: 40 Mbit/s, 10 ms, loss 0, MTU 1500 B" in shown()
    before = statistics.median(ping(path, "-c10")[2])
    said = set_(path.id, "path.rtt=60ms")
    after = statistics.median(ping(path, "-c10")[2])
    assert 20 <= before < 30 and 60 <= after < 70, (before, after)
    assert "path.forward: 40 Mbit/s, 30 ms" in said and "path.reverse: 40 Mbit/s, 30 ms" in said
    assert "path.forward: 40 Mbit/s, 30 ms" in shown()


def test_a_change_loses_no_packet_that_is_on_its_way(path: daemon.Shown) -> None:
    set_(path.id, "path.rtt=200ms")
    words = within(path, 0, "ping", "-n", "-i0.005", "-c400", "-W2", "198.18.0.2")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as pinging:
        for rtt, rate in (("40ms", "20Mbit/s"), ("120ms", "5Mbit/s"), ("20ms", "40Mbit/s")):
            # 40 packets are on their way at 200 ms.
            policer = "path.policer={ rate = '5Mbit/s', burst = '1MB' }"
            set_(path.id, f"path.rtt={rtt}", f"path.bandwidth={rate}", policer)
        said = pinging.communicate(timeout=60)[0]
    assert "400 packets transmitted, 400 received, 0% packet loss" in said, said[-300:]


def test_a_new_rate_is_what_arrives(path: daemon.Shown) -> None:
    set_(path.id, "path.bandwidth=8Mbit/s")
    # iperf3 counts payload: 1400 of 1428 bytes.
    rate, lost, _ = udp(path, "12M")
    assert 0.93 * 8e6 * 1400 / 1428 < rate < 1.07 * 8e6 * 1400 / 1428 and lost, rate
    set_(path.id, "path.bandwidth=40Mbit/s")
    assert udp(path, "12M")[1] == 0


def test_loss_by_direction(path: daemon.Shown) -> None:
    set_(path.id, "path.loss=0.2")
    sent, received, _ = ping(path, "-c150")
    # 30 of 150 expected: five standard deviations are 24.
    assert 6 <= sent - received <= 54
    set_(path.id, "path.loss={ every = 2 }", "path.reverse.loss=0")
    assert ping(path, "-c50", "-W0.2")[:2] == (50, 25)
    set_(path.id, "path.loss=0", "path.reverse.loss={ every = 5 }")
    assert ping(path, "-c50", "-W0.2")[:2] == (50, 40)


def test_a_policer_comes_and_goes(path: daemon.Shown) -> None:
    assert udp(path, "12M")[1] == 0
    said = set_(path.id, "path.policer={ rate = '4Mbit/s', burst = '15kB' }")
    assert "policer 4 Mbit/s 15000 B" in said
    rate, lost, _ = udp(path, "12M")
    # The burst is 15 kB of 750 kB.
    assert 0.93 * 4e6 * 1400 / 1428 < rate < 1.1 * 4e6 * 1400 / 1428 and lost, rate
    assert "policer" not in set_(path.id, "path.policer=none")
    assert udp(path, "12M")[1] == 0


def test_an_mtu_is_that_of_both_devices(path: daemon.Shown) -> None:
    def passes(size: int) -> bool:
        return ping(path, "-c1", "-Mdo", f"-s{size - 28}")[1] == 1

    assert passes(1500)
    set_(path.id, "path.mtu=1300B")
    for end in (0, 1):
        device = json.loads(testbed.ip("-n", path.hosts[end][0], "-j", "link", "show", "path"))
        assert device[0]["mtu"] == 1300
    words = within(path, 0, "ping", "-c1", "-W1", "-Mdo", "-s1273", "198.18.0.2")
    too_big = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "mtu=1300" in too_big.stdout + too_big.stderr and passes(1300)
    set_(path.id, "path.mtu=1500B")
    assert passes(1500)


def test_an_outage_loses_what_is_on_the_line_and_ends(path: daemon.Shown) -> None:
    said = set_(path.id, "link_down=path")
    assert said.count(", down") == 2
    assert ping(path, "-c5", "-W0.2")[1] == 0
    assert ", down" not in set_(path.id, "link_up=path")
    # Packets that waited in the queue leave now, and new ones behind them.
    assert ping(path, "-c5")[1] == 5


def test_neighbours_take_their_share(path: daemon.Shown) -> None:
    said = set_(path.id, "background_on=neighbour", "background.rate=30Mbit/s")
    assert "background neighbour: 30 Mbit/s, on" in said
    rate, lost, sent = udp(path, "30M")
    # 60 Mbit/s for a line of 40, first in first out: two thirds of both pass, and by their phases
    # more of the one than of the other.
    assert 0.4 < 1 - lost / sent < 0.85, (rate, lost, sent)
    set_(path.id, "background.enabled=false")
    assert udp(path, "30M")[1] == 0


WRONG = [
    (["path.loss=2"], "path.loss = 2: a probability from 0 to 1"),
    (["path.rtt=80"], "path.rtt = 80"),
    (["path.rtt=80ms", "path.bandwidth=fast"], 'path.bandwidth = "fast"'),
    (["path.rtt=80ms", "link_down=nowhere"], "link_down=nowhere: there is none of this name; there is path, "),
    (["path.queue=10 packets"], "a path that runs does not follow this key; it follows bandwidth, rtt, "),
    (["flow.congestion_control=cubic"], "a path that runs does not follow this key"),
    (["path.access=4x"], "a path that runs does not follow this key"),
    (["path.mtu=60B"], "path.mtu"),
    (["background.nobody.rate=1Mbit/s"], "background or key of a background"),
    (["path.rtt"], '"path.rtt" is not of the form key=value'),
]


@pytest.mark.parametrize(("settings", "words"), WRONG, ids=[" ".join(settings) for settings, _ in WRONG])
def test_a_wrong_value_is_one_line_and_changes_nothing(
    path: daemon.Shown, settings: list[str], words: str
) -> None:
    before = [line for line in shown().splitlines() if "path.forward" in line]
    code, said, fault = elephan("path", "set", path.id, *settings)
    assert code == 2 and words in fault and fault.count("\n") == 1 and not said, fault
    assert [line for line in shown().splitlines() if "path.forward" in line] == before
    assert 20 <= min(ping(path, "-c2")[2]) < 30


def test_no_path_of_this_name() -> None:
    words = [*ELEPHAN, "path", "set", "zzz", "path.loss=0"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "no path zzz; there " in done.stderr and done.stderr.count("\n") == 1


def test_the_report_has_each_change_and_an_edit_of_the_file_is_no_part_of_it(file: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(file.read_text() + '[[event]]\nat = "1ms"\nrtt = "50ms"\n')
    found = daemon.up(own)
    try:
        own.write_text("no scenario any more")
        deadline_s = time.monotonic() + 10
        while "25 ms" not in (said := set_(found.id, "path.bandwidth=10Mbit/s")):
            assert time.monotonic() < deadline_s, said
        # The event has moved the path away from what the file says, and the key moves it back.
        assert "path.forward: 10 Mbit/s, 10 ms" in set_(found.id, "path.rtt=20ms")
        assert statistics.median(ping(found, "-c3")[2]) < 30
    finally:
        report = daemon.down(found.id)
    assert re.search(r"^changed after \d+\.\d{3} s: path\.bandwidth=10Mbit/s$", report, re.MULTILINE), report
    assert re.search(r"^changed after \d+\.\d{3} s: path\.rtt=20ms$", report, re.MULTILINE)


def test_a_shell_changes_its_own_path(file: Path) -> None:
    script = 'ping -nc1 $ELEPHAN_PATH_FAR; "$@" path set $ELEPHAN_PATH_ID path.rtt=90ms; ping -nc1 $ELEPHAN_PATH_FAR'
    words = [*ELEPHAN, "path", "shell", str(file), "--", "sh", "-c", script, "sh", *ELEPHAN]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    first, second = map(float, re.findall(r"time=([\d.]+) ms", done.stdout))
    assert 20 <= first < 40 and 90 <= second < 110, done.stdout
    assert "path.forward: 40 Mbit/s, 45 ms" in done.stdout
    assert re.search(r"changed after \d+\.\d{3} s: path\.rtt=90ms", done.stderr), done.stderr


def test_no_agent_takes_the_path_s_folder_for_one_that_was_left() -> None:
    agent = Path(__file__).resolve().parents[2] / "crates" / "agent" / "src" / "folder.rs"
    mark = re.search(r'const MARK: &str = "(.+)";', agent.read_text())
    assert mark is not None and not testbed.folder_of("0ddc9d").name.startswith(mark[1])
