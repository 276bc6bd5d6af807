"""A gateway on an Ethernet interface: a pair of virtual ones in a network namespace of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from elephan.network_namespace import within
from tests.gateway.node import FIP, Node
from tests.gateway.sites import Running, id_of, name_of

pytestmark = pytest.mark.looks_at_kernel

if os.geteuid() != 0 or shutil.which("ip") is None:
    pytest.skip("network namespaces need root and ip (iproute2)", allow_module_level=True)

MTU = 2500
MAC_CONTROL = 0x8808
PATIENCE_S = 30


class Gateway:
    """`elephan gateway run --json` in the namespace."""

    def __init__(self, namespace: str, file: Path) -> None:
        """Start it, and wait until it serves."""
        command = ["ip", "netns", "exec", namespace, sys.executable, "-c", "from elephan.cli import main; main()"]
        command += ["gateway", "run", str(file), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said: list[str] = []
        self.until_said("fabric at ")

    def until_said(self, beginning: str) -> None:
        """Read what it says up to a line that begins so."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line.strip())
            if line.startswith(beginning):
                return
        raise AssertionError(f"the gateway ended: {self.said}")

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the first status that is as wanted."""
        assert self.process.stdout is not None
        end = time.monotonic() + PATIENCE_S
        for line in self.process.stdout:
            status: dict[str, Any] = json.loads(line)
            if wanted(status):
                return status
            assert time.monotonic() < end, status
        raise AssertionError("the gateway ended")

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; return its exit code."""
        self.process.send_signal(number)
        try:
            _, rest = self.process.communicate(timeout=PATIENCE_S)
            self.said += rest.splitlines()
        finally:
            self.process.kill()
        return self.process.returncode


@pytest.fixture
def namespace() -> Iterator[str]:
    """Make a namespace with the interfaces `san` and `host`, which are wired to each other; it goes with the test."""
    name = f"elephan-fc-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        own = ["ip", "-n", name, "link"]
        subprocess.run(
            [*own, "add", "san", "mtu", str(MTU), "type", "veth", "peer", "host", "mtu", str(MTU)], check=True
        )
        for interface in ("san", "host"):
            subprocess.run([*own, "set", interface, "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the file of a gateway on `san`."""
    path = tmp_path / "gateway.toml"
    path.write_text('[fabric]\nname = "10:00:00:1b:32:0a:0b:0c"\ndomain = 7\n[ethernet]\ninterface = "san"\n')
    return path


def node(namespace: str, number: int, vlan: int | None = None) -> Node:
    """Make a node on `host`."""
    return within(Path("/run/netns") / namespace, lambda: Node("host", number, vlan))


@pytest.mark.parametrize("vlan", [None, 100])
def test_nodes_log_in_and_speak_and_a_killed_gateway_gives_the_same_addresses(
    namespace: str, file: Path, vlan: int | None
) -> None:
    if vlan is not None:
        file.write_text(f"{file.read_text()}vlan = {vlan}\n")
    gateway = Gateway(namespace, file)
    first, second = node(namespace, 1, vlan), node(namespace, 2, vlan)
    try:
        for one in (first, second):
            one.log_in()
            one.log_in_to_name_server()
        status = gateway.until(lambda status: len(status["ports"]) == 2)
        assert [port["id"] for port in status["ports"]] == [f"{first.id:06x}", f"{second.id:06x}"]
        assert first.id >> 16 == 7 and first.granted == bytes.fromhex("0efc00") + first.id.to_bytes(3, "big")
        first.send_data(second.id, bytes(range(256)) * 8)
        assert second.receive_fc()[24:] == bytes(range(256)) * 8
        # Nothing of it is left but the file of addresses.
        gateway.end(signal.SIGKILL)
        gateway = Gateway(namespace, file)
        before = (first.id, second.id)
        for one in (second, first):
            one.log_in()
        assert (first.id, second.id) == before
        assert gateway.until(lambda status: len(status["ports"]) == 2)["counters"]["kernel_drops"] == 0
        assert gateway.end() == 0
        # Clear Virtual Links.
        for one in (first, second):
            one.wait(FIP, lambda content: content[2:6] == b"\0\3\0\2")
        assert any("logged out" in line for line in gateway.said), gateway.said
    finally:
        gateway.process.kill()
        first.close()
        second.close()


def test_an_interface_that_goes_away_and_comes_back_is_used_again(namespace: str, file: Path) -> None:
    gateway = Gateway(namespace, file)
    one = node(namespace, 1)
    try:
        one.log_in()
        subprocess.run(["ip", "-n", namespace, "link", "set", "san", "down"], check=True)
        subprocess.run(["ip", "-n", namespace, "link", "set", "san", "up"], check=True)
        gateway.until_said("san: there again")
        one.log_in()
        assert gateway.end() == 0
    finally:
        gateway.process.kill()
        one.close()


def test_counters_are_where_prometheus_looks(namespace: str, file: Path) -> None:
    subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
    file.write_text(f'{file.read_text()}[statistics]\nprometheus = "127.0.0.1:0"\n')
    gateway = Gateway(namespace, file)
    one = node(namespace, 1)
    try:
        one.log_in()
        address = next(line for line in gateway.said if line.startswith("statistics at ")).removeprefix(
            "statistics at "
        )
        gateway.until(lambda status: len(status["ports"]) == 1)

        def read() -> str:
            with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
                return str(answer.read().decode())

        text = within(Path("/run/netns") / namespace, read)
        lines = dict(line.split() for line in text.splitlines() if not line.startswith("#"))
        assert float(lines["elephan_gateway_ports"]) == 1
        assert float(lines["elephan_gateway_received_frames_total"]) >= 2
        assert float(lines["elephan_gateway_paused_seconds_total"]) == 0
        assert gateway.end() == 0
    finally:
        gateway.process.kill()
        one.close()


def test_idle_connections_to_the_counters_take_no_threads_and_keep_nobody_out(namespace: str, file: Path) -> None:
    subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
    file.write_text(f'{file.read_text()}[statistics]\nprometheus = "127.0.0.1:0"\n')
    gateway = Gateway(namespace, file)
    status = Path(f"/proc/{gateway.process.pid}/status")

    def threads() -> int:
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("Threads:"))

    try:
        address = next(line for line in gateway.said if line.startswith("statistics at ")).split()[-1]
        host, port = address.removeprefix("http://").removesuffix("/metrics").split(":")
        before = threads()

        def attack() -> str:
            idle = [socket.create_connection((host, int(port)), timeout=PATIENCE_S) for _ in range(200)]
            with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
                text = str(answer.read().decode())
            assert threads() == before
            [one.close() for one in idle]
            return text

        assert "elephan_gateway_ports" in within(Path("/run/netns") / namespace, attack)
        assert gateway.end() == 0
    finally:
        gateway.process.kill()


def test_a_path_that_stalls_pauses_the_san_and_no_frame_is_lost(namespace: str, file: Path, tmp_path: Path) -> None:
    subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
    # An exchange of data frames alone never ends.
    short = "drain_timeout = '100ms'\n"
    file.write_text(
        f"{file.read_text().replace('[ethernet]', f'{short}[ethernet]')}"
        "[ip]\nlisten = '127.0.0.1:3420'\n[[peer]]\nname = 'far'\naddress = '127.0.0.2:3420'\n"
        f"[[peer.port]]\nname = '{name_of(2)}'\nid = '{id_of(2)}'\n"
    )
    far_file = tmp_path / "far.toml"
    far_file.write_text(
        f"[fabric]\nname = '10:00:00:00:00:00:00:02'\ndomain = 2\n{short}"
        "[[socket]]\nlocal = '2.gateway'\nremote = '2.node'\n"
        "[ip]\nlisten = '127.0.0.2:3420'\n[[peer]]\nname = 'near'\naddress = '127.0.0.1:3420'\n"
        "[[peer.port]]\nname = '20:00:52:54:00:00:00:01'\nid = '070100'\n"
    )
    near, far = Gateway(namespace, file), Gateway(namespace, far_file)
    paths = ":".join(str(tmp_path / f"2.{end}") for end in ("node", "gateway"))
    listener = Running("fc", "load", "--json", "--socket", paths, "--name", name_of(2))
    one = node(namespace, 1)
    pauses = within(Path("/run/netns") / namespace, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
    try:
        pauses.bind(("host", MAC_CONTROL))
        pauses.settimeout(0)
        listener.until_said("listens at ")
        near.until(lambda status: any(port["remote"] for port in status["ports"]))
        one.log_in()
        one.log_in_to_name_server()
        one.ask_for_login(int(id_of(2), 16))
        far.process.send_signal(signal.SIGSTOP)
        asked: list[bytes] = []
        # More than TCP and the session hold of a peer that reads nothing.
        for _ in range(16_384):
            one.send_data(int(id_of(2), 16), bytes(2048))
            asked += waiting(pauses)
            if len(asked) > 2:
                break
        # To the group of the link's other end, the longest time, and again before it is over.
        assert len(asked) > 2, "nothing asked the SAN to wait"
        for frame in asked:
            assert frame[:6] == bytes.fromhex("0180c2000001") and frame[12:18] == bytes.fromhex("88080001ffff")
        far.process.send_signal(signal.SIGCONT)
        end = time.monotonic() + PATIENCE_S
        while asked[-1][16:18] != bytes(2):
            assert time.monotonic() < end, "nothing let the SAN go on"
            asked += waiting(pauses)
            time.sleep(0.001)
        counters = near.until(lambda status: status["counters"]["pause_frames"] > 3)["counters"]
        assert counters["kernel_drops"] == counters["ifcp_queue_full_frames"] == counters["ifcp_expired_frames"] == 0
        assert far.end() == 0 and near.end() == 0
    finally:
        for process in (near.process, far.process, listener.process):
            process.kill()
        one.close()
        pauses.close()


def waiting(one: socket.socket) -> list[bytes]:
    """Return the frames that have come."""
    frames = []
    while True:
        try:
            frames.append(one.recv(4096))
        except BlockingIOError:
            return frames
