"""`elephan fc` at gateways: on loopback, and on an Ethernet interface in a network namespace of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.sites import ELEPHAN, PATIENCE_S, Running, Sites, id_of, name_of

pytestmark = pytest.mark.looks_at_kernel


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    """Two gateways over loopback."""
    both = Sites(tmp_path)
    try:
        yield both
    finally:
        both.close()


def test_ports_are_those_of_both_sites(sites: Sites) -> None:
    own, other = sites.json(1, "ports")
    assert (own["id"], own["port"], own["is_own"]) == (id_of(1), name_of(1), True)
    assert (other["id"], other["port"], other["roles"]) == (id_of(2), name_of(2), ["target"])
    text = sites.fc(1, "ports").stdout
    assert name_of(2) in text and "this port" in text


def test_pings_are_answered_by_echo_and_by_adisc(sites: Sites) -> None:
    listener = sites.listener(2)
    try:
        for arguments in ([name_of(2)], [id_of(2), "--adisc"], [name_of(2), "--size", "1024"]):
            done = sites.json(1, "ping", *arguments, "-c", "3", "--interval", "10ms")
            assert (done["id"], done["port"], len(done["answers"])) == (id_of(2), name_of(2), 3)
            assert all(
                0 < answer["rtt_ns"] < PATIENCE_S * 1e9 and not answer["is_reject"] for answer in done["answers"]
            )
        text = sites.fc(1, "ping", name_of(2), "-c", "1").stdout
        assert text.startswith("ECHO 1: ") and "1 of 1 ping answered" in text
    finally:
        listener.end()


def test_a_load_comes_whole_and_both_ends_count_the_same(sites: Sites) -> None:
    listener = sites.listener(2)
    size = ["--size", "64:1,512:2,2048:5"]
    done = sites.json(1, "load", name_of(2), "--rate", "40Mbit/s", "--share", "50%", "--duration", "2s", *size)
    code, output = listener.end()
    assert code == 0, listener.said
    (there,) = json.loads(output)["received"]
    sent, told = done["sent"], done["sent"]["result"]
    assert told["frames"] == there["frames"] == there["sent"] == sent["frames"] > 100
    assert told["payload_bytes"] == sent["payload_bytes"]
    assert all(told[key] == 0 for key in ("lost", "duplicates", "out_of_order", "too_late"))
    latencies = [told[f"latency_{which}_ns"] for which in ("p50", "p90", "p99", "p999", "max")]
    assert latencies == sorted(latencies) and latencies[0] > 0
    assert there["from"] == id_of(1)


def test_two_loads_cross(sites: Sites) -> None:
    load = ["--rate", "20Mbit/s", "--duration", "2s", "--json"]
    both = [Running("fc", "load", name_of(3 - site), *load, *sites.way(site)) for site in (1, 2)]
    for one in both:
        code, output = one.result()
        assert code == 0, one.said
        done = json.loads(output)
        assert done["sent"]["result"]["frames"] == done["sent"]["frames"]
        (came,) = done["received"]
        assert came["frames"] == came["sent"] > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_load_with_its_result_and_a_logout(sites: Sites, number: int) -> None:
    listener = sites.listener(2)
    try:
        load = Running("fc", "load", name_of(2), "--rate", "10Mbit/s", "--duration", "1h", "--json", *sites.way(1))
        sites.gateways[1].until_said(f"{name_of(1)} logged in")
        sites.gateways[1].until_said("session")
        code, output = load.end(number)
        assert code == 130 and json.loads(output)["ended"] == "told to stop", load.said
        sites.gateways[1].until_said(f"{name_of(1)} logged out")
    finally:
        listener.end()
    sites.gateways[2].until_said(f"{name_of(2)} logged out")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["ports"], "--interface NAME or --socket LOCAL:REMOTE"),
        (["ports", "--socket", "a.node"], "LOCAL:REMOTE is needed"),
        (["ports", "--socket", "a:b"], "--name: a port on a socket needs a world wide name"),
        (["ports", "--socket", "a:b", "--name", "20:00"], "--name: "),
        (["ports", "--interface", "eth1", "--vlan", "5000"], "--vlan 5000: 1 to 4094"),
        (["ping", "010100", "--interface", "eth1", "-c", "0"], "--count 0"),
        (["load", "010100", "--interface", "eth1", "--share", "90"], "--share 90: "),
        (["load", "010100", "--interface", "eth1", "--size", "12"], "--size: 12 bytes; 24 to 2112"),
        (["load", "010100", "--interface", "eth1", "--size", "64:x"], "--size 64:x: "),
        (["load", "010100", "--interface", "eth1", "--speed", "3GFC"], "--speed 3GFC: one of 1GFC"),
        (["load", "010100", "--interface", "eth1", "--rate", "5"], "--rate: "),
    ],
)
def test_wrong_options_are_named(arguments: list[str], text: str) -> None:
    done = subprocess.run([*ELEPHAN, "fc", *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2 and text in done.stderr, done.stderr


def test_who_is_not_there_is_named(sites: Sites, tmp_path: Path) -> None:
    done = sites.fc(1, "ping", "20:00:00:00:00:00:00:99", "--within", "1s")
    assert done.returncode == 2 and f"it shows {name_of(1)}, {name_of(2)}" in done.stderr
    done = sites.fc(1, "ping", name_of(2), "--within", "1s")
    assert done.returncode == 1 and f"{id_of(2)} does not let this port log in" in done.stderr
    nobody = ["--socket", f"{tmp_path}/x:{tmp_path}/nobody", "--name", name_of(9), "--within", "1s"]
    done = subprocess.run([*ELEPHAN, "fc", "ports", *nobody], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no forwarder (FCF) answers" in done.stderr


@pytest.fixture
def namespace() -> Iterator[str]:
    """Make a namespace with the interfaces `san` and `host`, which are wired to each other; it goes with the test."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and ip (iproute2)")
    name = f"elephan-fcp-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        own = ["ip", "-n", name, "link"]
        subprocess.run([*own, "add", "san", "mtu", "2500", "type", "veth", "peer", "host", "mtu", "2500"], check=True)
        for interface in ("san", "host"):
            subprocess.run([*own, "set", interface, "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.mark.parametrize("vlan", [None, 100])
def test_ports_on_one_interface_speak_through_the_fabric(namespace: str, tmp_path: Path, vlan: int | None) -> None:
    file = tmp_path / "gateway.toml"
    tag = "" if vlan is None else f"vlan = {vlan}\n"
    file.write_text(f'[fabric]\nname = "10:00:00:00:00:00:00:01"\ndomain = 1\n[ethernet]\ninterface = "san"\n{tag}')
    before = ["ip", "netns", "exec", namespace]
    gateway = Running("gateway", "run", str(file), before=before)
    gateway.until_said("fabric at ")
    way = ["--interface", "host", *([] if vlan is None else ["--vlan", str(vlan)])]
    listener = Running("fc", "load", "--json", *way, "--name", name_of(2), before=before)
    try:
        listener.until_said("listens at ")
        load = Running(
            "fc", "load", name_of(2), "--rate", "50Mbit/s", "--duration", "1s", "--json", *way, before=before
        )
        code, output = load.result()
        assert code == 0, load.said
        sent = json.loads(output)["sent"]
        assert sent["result"]["frames"] == sent["frames"] > 0
        assert listener.end()[0] == 0
    finally:
        listener.process.kill()
        gateway.process.kill()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["ping", "zz"], "zz: an address such as 020100 or a world wide name"),
        (["load", "zz"], "zz: an address such as 020100 or a world wide name"),
        (["load", "--size", "0"], "--size: 0 bytes; 24 to 2112 are needed"),
        (["load", "--share", "0%"], "--share 0%: a part of 100"),
    ],
)
def test_a_wrong_option_is_refused_before_the_port_is_there(
    tmp_path: Path, arguments: list[str], expected: str
) -> None:
    # No gateway is there: a port that began would wait for one.
    way = ["--socket", f"{tmp_path}/node:{tmp_path}/gateway", "--name", name_of(1)]
    done = subprocess.run([*ELEPHAN, "fc", *arguments, *way], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"error: {expected}") and done.stderr.count("\n") == 1, done.stderr
