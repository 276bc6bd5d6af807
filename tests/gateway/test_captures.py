"""Both sides of two live gateways, and the connection between them, read by Wireshark's dissectors: no error."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.gateway.node import Node, within_namespace
from tests.gateway.sites import PATIENCE_S, Running, id_of, name_of

pytestmark = pytest.mark.looks_at_kernel

if os.geteuid() != 0 or shutil.which("ip") is None:
    pytest.skip("network namespaces need root and ip (iproute2)", allow_module_level=True)
if shutil.which("tshark") is None:
    pytest.skip("tshark is missing; scripts/packages.sh test", allow_module_level=True)

MTU = "2500"
OURS = "fip or fcoe or ifcp"
FAULTS = f"_ws.malformed or (({OURS}) and _ws.expert.severity >= warning and not tcp.analysis.flags)"
"""Wireshark's filter for what it could not read, or holds for wrong; TCP's losses and repetitions are neither."""
WIRESHARKS_OWN = "Unknown destination address type: 2"
"""Warning of Wireshark 4.0 for the answer to a link service over iFCP: it looks for FC's addresses, and finds IP's."""
SCSI_INQUIRY = bytes(8) + bytes([0, 0, 0, 2]) + b"\x12\0\0\0\x24" + bytes(11) + (36).to_bytes(4, "big")
"""FCP_CMND: LUN 0, a read of 36 bytes by INQUIRY (FCP-3, table 16)."""


@pytest.fixture
def namespace() -> Iterator[str]:
    """Make a namespace with two Ethernets, `san` with `host` for each site."""
    name = f"elephan-cap-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        own = ["ip", "-n", name, "link"]
        for site in (1, 2):
            ends = ["mtu", MTU, "type", "veth", "peer", f"host{site}", "mtu", MTU]
            subprocess.run([*own, "add", f"san{site}", *ends], check=True)
            for interface in (f"san{site}", f"host{site}", "lo"):
                subprocess.run([*own, "set", interface, "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def gateway_file(folder: Path, site: int) -> Path:
    """Write the file of a gateway at the port of iFCP, by which Wireshark knows it."""
    other = 3 - site
    ports = "".join(
        f'[[peer.port]]\nname = "{name}"\nid = "{address}"\n'
        for name, address in ((name_of(other), id_of(other)), (name_of(0x10 + other), f"{other:02x}0101"))
    )
    file = folder / f"{site}.toml"
    file.write_text(
        f'[fabric]\nname = "10:00:00:00:00:00:00:{site:02x}"\ndomain = {site}\n'
        f'[ethernet]\ninterface = "san{site}"\n[ip]\nlisten = "127.0.0.{site}:3420"\n'
        f'[[peer]]\nname = "site-{other}"\naddress = "127.0.0.{other}:3420"\n{ports}'
    )
    return file


def read(capture: Path, *arguments: str) -> list[str]:
    """Return the lines that tshark prints of a capture."""
    done = subprocess.run(
        ["tshark", "-r", str(capture), *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    return done.stdout.splitlines()


def test_both_sides_of_a_live_run_decode_without_an_error(namespace: str, tmp_path: Path) -> None:
    before = ["ip", "netns", "exec", namespace]
    capture = tmp_path / "run.pcapng"
    shown = ["dumpcap", "-q", "-i", "host1", "-i", "host2", "-i", "lo", "-w", str(capture)]
    capturing = subprocess.Popen([*before, *shown], stderr=subprocess.PIPE, text=True)
    started = [Running("gateway", "run", str(gateway_file(tmp_path, site)), before=before) for site in (1, 2)]
    nodes: list[Node] = []
    try:
        for gateway in started:
            gateway.until_said("fabric at ")
        way = ["--interface", "host{}", "--name", "{}"]
        listener = Running("fc", "load", *(part.format(2) for part in way[:2]), "--name", name_of(2), before=before)
        started.append(listener)
        listener.until_said("listens at ")
        here = ["--interface", "host1", "--name", name_of(1)]
        ping = Running("fc", "ping", name_of(2), "-c", "2", "--interval", "10ms", *here, before=before)
        assert ping.result()[0] == 0, ping.said
        load = ["fc", "load", name_of(2), "--rate", "20Mbit/s", "--duration", "1s", "--size", "64,2048", "--json"]
        one = Running(*load, *here, before=before)
        code, output = one.result()
        assert code == 0, one.said
        frames = json.loads(output)["sent"]["frames"]
        # A command of SCSI between the tests' own nodes: the second ones that log in.
        for site in (1, 2):
            nodes.append(within_namespace(namespace, partial(Node, f"host{site}", 0x10 + site)))
        initiator, target = nodes
        for node in nodes:
            node.log_in()
            node.log_in_to_name_server()
        initiator.log_in_to_port(target)
        initiator.send_command(target.id, SCSI_INQUIRY)
        assert target.receive_fc()[24:] == SCSI_INQUIRY
        assert listener.end()[0] == 0
        for gateway in started[:2]:
            assert gateway.end()[0] == 0, gateway.said
        time.sleep(1)  # dumpcap writes what it has within a second
        capturing.send_signal(signal.SIGINT)
        _, said = capturing.communicate(timeout=PATIENCE_S)
        assert set(re.findall(r": \d+/(\d+) \(", said)) == {"0"}, said
        # dumpcap reads each interface by a thread of its own: an answer may stand before its question.
        ordered = tmp_path / "ordered.pcapng"
        subprocess.run(["reordercap", str(capture), str(ordered)], check=True, capture_output=True)
        capture = ordered
    finally:
        capturing.kill()
        for node in nodes:
            node.close()
        for running in started:
            running.process.kill()
    fields = ["ifcp", "_ws.expert.message", "frame.number", "_ws.col.Info"]
    shown = [part for field in fields for part in ("-e", field)]
    lines = [line.split("\t") for line in read(capture, "-Y", FAULTS, "-T", "fields", *shown)]
    faults = ["\t".join(line) for line in lines if not (line[0] and line[1] == WIRESHARKS_OWN)]
    assert not faults, "\n".join(faults[:20])
    protocols = "".join(read(capture, "-q", "-z", "io,phs"))
    for protocol in ("fip", "fcoe", "fc", "fcels", "fcct", "fcp", "ifcp"):
        assert f"{protocol} " in protocols, protocols
    # Every frame of the load at both sides, and once between.
    for interface, kind in (("host1", "fcoe"), ("host2", "fcoe"), ("lo", "ifcp")):
        wanted = f'{kind} and fc.type == 0xe0 and fc.r_ctl == 0x04 and frame.interface_name == "{interface}"'
        found = read(capture, "-Y", wanted, "-T", "fields", "-e", "fc.type")
        assert sum(line.count("0xe0") for line in found) == frames, interface
