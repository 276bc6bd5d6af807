"""Bytes over one TCP connection from this end of a path to the other, compared: run within `elephan path shell`.

Prints a JSON object: the two digests, what the sending device and TCP counted, and the marks that the
receiver saw.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

PORT = 9001


def receive() -> None:
    """Print the digest of the data of one connection."""
    with socket.create_server(("0.0.0.0", PORT)) as here:
        print("ready", flush=True)
        peer, _ = here.accept()
        digest = hashlib.sha256()
        with peer:
            while data := peer.recv(1 << 16):
                digest.update(data)
    print(json.dumps({"got": digest.hexdigest(), "ce_packets": counter("IpExt", "InCEPkts")}))


def counter(group: str, name: str) -> int:
    """Return one of the namespace's counters."""
    lines = [line.split() for line in Path("/proc/net/netstat").read_text(encoding="utf-8").splitlines()]
    names, values = (line for line in lines if line[0] == f"{group}:")
    return int(values[names.index(name)])


def main() -> None:
    """Send from here to the far end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["both", "receive"])
    parser.add_argument("--bytes", type=int, default=4_000_000)
    parser.add_argument("--ecn", action="store_true")
    options = parser.parse_args()
    if options.role == "receive":
        receive()
        return
    there = ["ip", "netns", "exec", os.environ["ELEPHAN_PATH_FAR_NETNS"]]
    if options.ecn:
        for where in ([], there):
            subprocess.run([*where, "sysctl", "-qw", "net.ipv4.tcp_ecn=1"], check=True)
    receiver = subprocess.Popen([*there, sys.executable, __file__, "receive"], stdout=subprocess.PIPE, text=True)
    assert receiver.stdout is not None
    receiver.stdout.readline()
    data = random.Random(1).randbytes(options.bytes)
    with socket.create_connection((os.environ["ELEPHAN_PATH_FAR"], PORT)) as far:
        far.sendall(data)
        far.shutdown(socket.SHUT_WR)
        far.recv(1)
    line = subprocess.run(["ip", "-j", "-s", "link", "show", "path"], stdout=subprocess.PIPE, text=True, check=True)
    report = json.loads(receiver.stdout.read())
    report["sent"] = hashlib.sha256(data).hexdigest()
    report["device_packets"] = json.loads(line.stdout)[0]["stats64"]["tx"]["packets"]
    report["retransmitted"] = retransmitted()
    report["ecn_delivered"] = counter("TcpExt", "TCPDeliveredCE")
    print(json.dumps(report))


def retransmitted() -> int:
    """Return the segments that this namespace sent again."""
    lines = [line.split() for line in Path("/proc/net/snmp").read_text(encoding="utf-8").splitlines()]
    names, values = (line for line in lines if line[0] == "Tcp:")
    return int(values[names.index("RetransSegs")])


if __name__ == "__main__":
    main()
