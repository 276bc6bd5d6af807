"""The emulator by itself: flows told apart by their ports, routes that change while packets are on them. Needs root."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from elephan.core import native
from elephan.path import testbed
from elephan.scenario import load

PROBLEM = testbed.missing()
pytestmark = [
    pytest.mark.skipif(PROBLEM is not None, reason=f"the emulator {PROBLEM}"),
    pytest.mark.measures_time,
]

MS = 1_000_000
PORT = 10_000
SCENARIO = """
[run]
duration = "60s"
[[node]]
name = "a"
[[node]]
name = "r"
[[node]]
name = "b"
[[link]]
from = "a"
to = "b"
bandwidth = "1Gbit/s"
delay = "20ms"
[[link]]
from = "a"
to = "r"
bandwidth = "1Gbit/s"
delay = "4ms"
[[link]]
from = "r"
to = "b"
bandwidth = "1Gbit/s"
delay = "4ms"
[[flow]]
from = "a"
to = "b"
congestion_control = "reno"
"""
# Records of the time at which they are written, and the program that prints how long each took.
SENDER = """
import socket, struct, sys, time
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(int(sys.argv[3])):
    s.sendall(struct.pack("!Q", time.monotonic_ns()))
    time.sleep(0.005)
"""
RECEIVER = """
import json, socket, struct, sys, time
here = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("ready", flush=True)
peer, _ = here.accept()
got, rest = [], b""
while data := peer.recv(4096):
    now, rest = time.monotonic_ns(), rest + data
    while len(rest) >= 8:
        got.append(now - struct.unpack("!Q", rest[:8])[0])
        rest = rest[8:]
print(json.dumps(got))
"""


@contextmanager
def hosts(nodes: list[int]) -> Iterator[tuple[list[str], list[dict[str, Any]], Any]]:
    """Make namespaces that stand at nodes, with their devices: their names, their entries of a plan, the emulator."""
    names = [f"{testbed.MARK}-test{os.getpid()}-{number}" for number in range(len(nodes))]
    plan = [
        {
            "namespace": str(testbed.NAMESPACES / name),
            "device": testbed.DEVICE,
            "address": f"198.18.1.{1 + number}",
            "node": node,
            "mtu_bytes": 1500,
        }
        for number, (name, node) in enumerate(zip(names, nodes, strict=True))
    ]
    emulator = None
    try:
        for name in names:
            testbed.ip("netns", "add", name)
        emulator = native.Emulator(json.dumps(plan))
        for name, host in zip(names, plan, strict=True):
            off = "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; true"
            testbed.ip("netns", "exec", name, "sh", "-c", off)
            testbed.ip("-n", name, "address", "add", f"{host['address']}/32", "dev", testbed.DEVICE)
            testbed.ip("-n", name, "link", "set", testbed.DEVICE, "up")
            testbed.ip("-n", name, "route", "add", "198.18.0.0/15", "dev", testbed.DEVICE)
        yield names, plan, emulator
    finally:
        if emulator is not None:
            emulator.stop()
        del emulator
        for name in names:
            if (testbed.NAMESPACES / name).exists():
                testbed.ip("netns", "delete", name)


def plan_of(entries: list[dict[str, Any]], port: int = PORT) -> dict[str, Any]:
    """A plan of one flow from the first host to the second."""
    flow = {
        "source": 0,
        "destination": 1,
        "port": port,
        "congestion_control": "reno",
        "window_clamp_bytes": 1_000_000,
        "receive_buffer_bytes": None,
        "send_buffer_bytes": None,
        "max_segment_bytes": None,
        "pacing": False,
        "rto_max_ms": None,
    }
    return {"hosts": entries, "flows": [flow], "routes": [], "emulator": {}}


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, Any]:
    """The specification of a direct line and a quicker route over a router."""
    file = tmp_path / "ways.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    return load(file, []).points()[0].to_spec()


def begun(name: str, program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a program in a namespace."""
    command = ["ip", "netns", "exec", name, sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_flow_changes_its_way_while_it_runs(spec: dict[str, Any]) -> None:
    names = [link["name"] for link in spec["links"]]
    over = [names.index("a-r.forward"), names.index("r-b.forward")]
    assert spec["flows"][0]["route"] == [names.index("a-b.forward")]
    with hosts([0, 2]) as (spaces, entries, emulator):
        emulator.start(json.dumps(spec), json.dumps(plan_of(entries)))
        receiver = begun(spaces[1], RECEIVER, str(PORT))
        assert receiver.stdout is not None
        receiver.stdout.readline()
        count = 300
        sender = begun(spaces[0], SENDER, entries[1]["address"], str(PORT), str(count))
        deadline_s = time.monotonic() + 20
        while emulator.snapshot()["links"][0]["delivered_packets"] < 100 and time.monotonic() < deadline_s:
            time.sleep(0.01)
        with pytest.raises(ValueError, match="does not lead"):
            emulator.set_route(0, over[:1])
        with pytest.raises(ValueError, match="flow 1 does not exist"):
            emulator.set_route(1, over)
        emulator.set_route(0, over)
        got = json.loads(receiver.stdout.read())
        assert sender.wait() == 0 and receiver.wait() == 0
        report = emulator.stop()
    assert len(got) == count
    before, after = got[20:80], got[200:]
    assert min(before) >= 20 * MS and min(after) >= 8 * MS
    assert statistics.median(before) <= 22 * MS and statistics.median(after) <= 10 * MS
    delivered = [link["delivered_packets"] for link in report["links"]]
    assert all(delivered[link] >= 150 for link in over), delivered
    assert delivered[names.index("r-a.reverse" if "r-a.reverse" in names else "a-r.reverse")] == 0
    assert report["flow_dropped_packets"] == [0] and report["unroutable_packets"] == 0


def test_packets_of_no_flow_and_no_route_are_counted_and_go_nowhere(spec: dict[str, Any]) -> None:
    with hosts([0, 2]) as (spaces, entries, emulator):
        emulator.start(json.dumps(spec), json.dumps(plan_of(entries)))
        # The flow has another port, and there is no route for the pair of hosts.
        begun(spaces[0], "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
              "for _ in range(7): s.sendto(b'x', (sys.argv[1], 9))", entries[1]["address"]).wait()  # fmt: skip
        deadline_s = time.monotonic() + 5
        while time.monotonic() < deadline_s:
            time.sleep(0.02)
            if (
                json.loads(testbed.ip("-n", spaces[0], "-j", "-s", "link", "show", "path"))[0]["stats64"]["tx"][
                    "packets"
                ]
                >= 7
            ):
                break
        report = emulator.stop()
    assert report["unroutable_packets"] == 7
    assert all(link["delivered_packets"] == 0 for link in report["links"])


EVENT = """
[run]
duration = "1500ms"
[path]
bandwidth = "50Mbit/s"
rtt = "4ms"
[[flow]]
congestion_control = "reno"
[[background]]
name = "burst"
rate = "10Mbit/s"
enabled = false
[[event]]
when = {{ flow = "flow1", reaches = "{rate}", over = "200ms" }}
background_on = "burst"
"""


@pytest.mark.parametrize(("rate", "happens"), [("20Mbit/s", True), ("60Mbit/s", False)])
def test_an_event_that_waits_for_a_flows_rate_happens_when_the_flow_has_it(
    tmp_path: Path, rate: str, happens: bool
) -> None:
    file = tmp_path / "event.toml"
    file.write_text(EVENT.format(rate=rate), encoding="utf-8")
    spec = load(file, []).points()[0].to_spec()
    with hosts([0, 1]) as (_, entries, emulator):
        result, report = native.run_on_kernel(json.dumps(spec), json.dumps(plan_of(entries)), emulator)
    assert result.flows[0]["goodput_bps"] >= 20e6, "the flow itself"
    assert (result.background[0]["sent_packets"] > 0) is happens
    assert [time_s is not None for time_s in report["event_times_s"]] == [happens]
    assert any("never happened" in note for note in result.notes) is not happens


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"node": 1}, "do not stand at its nodes"),
        ({"node": 7}, "node 7 does not exist"),
        ({"address": "198.18.1.2"}, "another host has the address"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(spec: dict[str, Any], change: dict[str, Any], words: str) -> None:
    with hosts([0, 2]) as (_, entries, emulator):
        with pytest.raises(ValueError, match=words):
            emulator.start(json.dumps(spec), json.dumps(plan_of([entries[0] | change, entries[1]])))
        assert emulator.stop() is None, "it was never started"
