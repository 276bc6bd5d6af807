"""Inside a path's namespace: one connection under each congestion control, all at once.

Started by `elephan.parity.paths` at the near end, with what is wanted as JSON; starts itself at the far end with
`--take`. Each connection sends as much as goes for a while, rests for longer than a time-out (its window is
restarted), sends as much again, and ends with small writes, so that it is limited by the application.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from elephan.python_process import python_command

COMMAND = python_command("-c", "from elephan.parity.traffic import main; main()")
"""Command that runs this program; a JSON text is to follow."""

PORT = 10_000
SIOCOUTQ = 0x5411
SO_SNDBUFFORCE = 32
PART = bytes(1 << 16)
REST_S = 0.7
"""Longer than the retransmission time-out of all paths here (200 ms and the RTT): the window is restarted."""
AGAIN_S = 0.4
WRITES, WRITE_BYTES, BETWEEN_S = 15, 4_000, 0.01
PATIENCE_S = 20.0
"""Limit of the time for a path that loses much to drain; the rest is given up, s."""


def namespace() -> int:
    """Return the number of the network namespace that this process is in."""
    return os.stat("/proc/self/ns/net").st_ino


def set_ecn(on: bool, outside: int) -> None:
    """Ask for ECN, or accept it only (the kernel's default), in this namespace, which is not that outside the path."""
    if namespace() == outside:
        raise SystemExit("this is not a path's network namespace: nothing is set here")
    Path("/proc/sys/net/ipv4/tcp_ecn").write_text("1" if on else "2")


def take(wanted: dict[str, Any]) -> None:
    """Accept connections and throw away what comes, until the end of standard input."""

    def drop(peer: socket.socket) -> None:
        with peer:
            try:
                while peer.recv(1 << 20):
                    continue
            except ConnectionError:
                return

    def accept(server: socket.socket) -> None:
        while True:
            peer, _ = server.accept()
            threading.Thread(target=drop, args=(peer,), daemon=True).start()

    set_ecn(wanted["ecn"], wanted["outside"])
    server = socket.create_server(("0.0.0.0", PORT))
    threading.Thread(target=accept, args=(server,), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


def send(name: str, wanted: dict[str, Any], tcp_info: dict[str, str], failed: list[str]) -> None:
    """Carry one connection under `name`; `tcp_info` receives TCP_INFO once all has arrived."""
    with socket.socket() as own:
        own.settimeout(PATIENCE_S)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        if wanted["buffer_bytes"]:
            own.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, wanted["buffer_bytes"] // 2)
        try:
            own.connect((os.environ["ELEPHAN_PATH_FAR"], PORT))
            fill(own, wanted["seconds"])
            time.sleep(REST_S)
            fill(own, AGAIN_S)
            for _ in range(WRITES):
                own.sendall(PART[:WRITE_BYTES])
                time.sleep(BETWEEN_S)
            fill(own, 0)
            time.sleep(REST_S)
            tcp_info[name] = own.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256).hex()
            own.shutdown(socket.SHUT_WR)
            own.recv(1)
        except TimeoutError:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
        except OSError as error:
            failed.append(f"{name}: {error}")


def fill(own: socket.socket, seconds: float) -> None:
    """Send as much as goes for so long, and wait until the kernel has got rid of it."""
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        own.sendall(PART)
    late_s = time.monotonic() + PATIENCE_S
    while unsent(own) and time.monotonic() < late_s:
        time.sleep(0.01)


def unsent(own: socket.socket) -> int:
    """Return the bytes that are sent or waiting and not acknowledged."""
    return int(struct.unpack("=i", fcntl.ioctl(own, SIOCOUTQ, bytes(4)))[0])


def give(wanted: dict[str, Any]) -> None:
    """Carry the connections."""
    set_ecn(wanted["ecn"], wanted["outside"])
    far = ["ip", "netns", "exec", os.environ["ELEPHAN_PATH_FAR_NETNS"]]
    words = [*far, *COMMAND, sys.argv[1], "--take"]
    taker = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert taker.stdin is not None and taker.stdout is not None
    if taker.stdout.readline() != "ready\n":
        raise SystemExit("the receiver did not start")
    tcp_info: dict[str, str] = {}
    failed: list[str] = []
    threads = [threading.Thread(target=send, args=(name, wanted, tcp_info, failed)) for name in wanted["names"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taker.stdin.close()
    taker.wait()
    if failed:
        raise SystemExit("; ".join(failed))
    Path(wanted["tcp_info"]).write_text(json.dumps(tcp_info), encoding="utf-8")


def main() -> None:
    """Run the command line."""
    asked = json.loads(sys.argv[1])
    if "--take" in sys.argv:
        take(asked)
    else:
        give(asked)
