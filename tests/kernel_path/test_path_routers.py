"""Routers of an emulated path, as ping, tracepath and traceroute see them. Needs root and /dev/net/tun."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elephan.path import daemon, testbed
from elephan.path.session import spec_of
from elephan.scenario import load

PROBLEM = testbed.missing()
pytestmark = pytest.mark.skipif(PROBLEM is not None, reason=f"the path {PROBLEM}")

NODES = "".join(f'[[node]]\nname = "{name}"\n' for name in ("a", "r1", "r2", "b"))
LINK = '[[link]]\nfrom = "{}"\nto = "{}"\nbandwidth = "{}"\ndelay = "{}"\nqueue = "1MB"\nmtu = "{}B"\n'
LINKS = "".join(
    LINK.format(*each)
    for each in (
        ("a", "r1", "100Mbit/s", "2ms", 1500),
        ("r1", "r2", "1Mbit/s", "5ms", 1400),
        ("r2", "b", "50Mbit/s", "3ms", 1500),
    )
)
SCENARIO = f'[run]\nduration = "60s"\n{NODES}{LINKS}[[flow]]\nfrom = "a"\nto = "b"\ncongestion_control = "reno"\n'


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Return a path of three links, the middle one slow and narrow."""
    file = tmp_path / "path.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    return file


def shell(file: Path, script: str, *arguments: str) -> tuple[str, str]:
    """Run a script at the sender; return what it says and the path's report."""
    elephan = [sys.executable, "-c", "from elephan.cli import main; main()"]
    command = [*elephan, "path", "shell", str(file), "--", "sh", "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout, done.stderr


SCRIPT = """
echo routers $ELEPHAN_PATH_ROUTERS
far=198.18.0.2
ping -c1 -W2 $far; ping -c1 -W2 -t1 $far; ping -c1 -W2 -t2 -s 996 $far; ping -c1 -W2 -t3 $far
ping -c1 -W2 -M do -s1472 $far
ip route flush cache
ping -c1 -W2 -M dont -s3000 $far
ip route flush cache
tracepath -n $far
"""


def test_ping_and_tracepath_meet_every_router(scenario: Path) -> None:
    if shutil.which("ping") is None:
        pytest.skip("ping is not installed")
    out, report = shell(scenario, SCRIPT)
    assert "routers 198.19.0.2 198.19.0.3" in out
    # Sent with 64, less two routers there; the answer's comes the same way.
    assert len(re.findall(r"64 bytes from 198\.18\.0\.2: icmp_seq=1 ttl=62", out)) == 2
    assert "From 198.19.0.2 icmp_seq=1 Time to live exceeded" in out
    assert "From 198.19.0.3 icmp_seq=1 Time to live exceeded" in out
    assert "From 198.19.0.2 icmp_seq=1 Frag needed and DF set (mtu = 1400)" in out
    assert "3008 bytes from 198.18.0.2" in out, "fragments of fragments come together again"
    assert re.search(r"routers: \d+ packets had no time to live left, \d+ packets were too big for a link, ", report)
    if shutil.which("tracepath") is not None:
        assert re.search(r" 2: +198\.19\.0\.3 ", out) and "pmtu 1400 hops 3 back 3" in out, out


@pytest.mark.measures_time
def test_a_message_takes_the_time_of_its_way(scenario: Path) -> None:
    if shutil.which("traceroute") is None:
        pytest.skip("traceroute is not installed")
    out, _ = shell(scenario, "traceroute -q3 -N1 -m2 -n 198.18.0.2 1000")
    least = {line.split()[1]: min(map(float, re.findall(r"([\d.]+) ms", line))) for line in out.splitlines()[1:]}
    # 1000 bytes there, 576 back: 0.08 and 0.046 ms at 100 Mbit/s, 8 and 4.608 ms at 1 Mbit/s.
    for address, wanted_ms in (("198.19.0.2", 4.126), ("198.19.0.3", 26.734)):
        assert wanted_ms - 0.05 <= least[address] <= wanted_ms + 2, least


MEASURE = """
ip netns exec $ELEPHAN_PATH_FAR_NETNS $0 -c "from elephan.cli import main; main()" measure reflect --port 8862 >&2 &
until ip netns exec $ELEPHAN_PATH_FAR_NETNS ss -Hlun | grep -q :8862; do sleep 0.05; done
$0 -c "$1" $ELEPHAN_PATH_FAR:8862
kill $!
"""
TESTS = """
import json, sys
from elephan.core import native
for test in ({"test": "hops", "packets": 0}, {"test": "mtu"}):
    print(native.path_test(json.dumps({**test, "towards": sys.argv[1]}), lambda timeout_s: False))
"""


def test_path_tests_find_the_routers_and_the_mtu(scenario: Path) -> None:
    out, _ = shell(scenario, MEASURE, sys.executable, TESTS)
    hops, mtu = map(json.loads, out.splitlines())
    estimates = [(one["quantity"], one["value"]) for one in hops["estimates"] + mtu["estimates"]]
    assert estimates == [("hops", 3), ("path_mtu_bytes", 1400)], out
    for hop, address in ((1, "198.19.0.2"), (2, "198.19.0.3"), (3, "the far end")):
        assert f"hop {hop}: {address}, 3 replies to 3 packets" in hops["notes"], hops["notes"]
    assert "198.19.0.2 told that its next link takes 1400 bytes, as found" in mtu["notes"]


def test_a_path_with_access_links_has_two_routers(scenario: Path) -> None:
    short = '[run]\nduration = "60s"\n[path]\nbandwidth = "100Mbit/s"\nrtt = "2ms"\naccess = "{}"\n[[flow]]\n'
    for access, routers in (("none", ()), ("4x", (("left", "198.19.0.1"), ("right", "198.19.0.2")))):
        scenario.write_text(short.format(access) + 'congestion_control = "reno"\n', encoding="utf-8")
        assert testbed.routers_between(spec_of(load(scenario))[0]) == list(routers)
    path = daemon.up(scenario)
    try:
        assert path.routers == routers
    finally:
        daemon.down(path.id)
