"""Numbered datagrams from one end of a path to the other, and when each came: run within `elephan path shell`.

Prints a JSON object: `sent`, when each left, ns; `got`, in the order of arrival, [number, one-way delay in ns, TOS].
Both ends read one clock, the machine's; the kernel stamps arrivals, so that what the receiving program waits for its
turn is not in them.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
import subprocess
import sys
import time

PORT = 9000
SILENCE_S = 1.0
SO_TIMESTAMPNS = 35


def receive() -> None:
    """Print [number, arrival in ns, TOS] of all that comes, until nothing has come for some time."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        here.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        here.bind(("0.0.0.0", PORT))
        here.settimeout(10)
        print("ready", flush=True)
        got = []
        while True:
            try:
                data, extra, _, _ = here.recvmsg(65_536, 256)
            except TimeoutError:
                break
            here.settimeout(SILENCE_S)
            values = {(level, kind): value for level, kind, value in extra}
            seconds, ns = struct.unpack("qq", values[socket.SOL_SOCKET, SO_TIMESTAMPNS])
            tos = values[socket.IPPROTO_IP, socket.IP_TOS][0]
            got.append([struct.unpack_from("!I", data)[0], seconds * 10**9 + ns, tos])
        print(json.dumps(got))


def send(to: str, count: int, gap_ns: int, size: int, tos: int) -> None:
    """Print when each of `count` datagrams of `size` bytes as IP packets left, ns; at most one in `gap_ns`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        here.connect((to, PORT))
        payload = bytes(size - 28 - 4)
        sent = []
        due_ns = time.time_ns()
        for number in range(count):
            time.sleep(max(due_ns - time.time_ns(), 0) / 1e9)
            due_ns += gap_ns
            sent.append(time.time_ns())
            here.send(struct.pack("!I", number) + payload)
        print(json.dumps(sent))


def main() -> None:
    """Run one of the roles, or both ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["both", "receive", "send"])
    parser.add_argument("--back", action="store_true", help="from the far end to this one")
    parser.add_argument("--to", default="")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--gap-us", type=int, default=1000)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--tos", type=int, default=0)
    options = parser.parse_args()
    if options.role == "receive":
        receive()
        return
    if options.role == "send":
        send(options.to, options.count, options.gap_us * 1000, options.size, options.tos)
        return
    near, far = os.environ["ELEPHAN_PATH_NEAR"], os.environ["ELEPHAN_PATH_FAR"]
    there = ["ip", "netns", "exec", os.environ["ELEPHAN_PATH_FAR_NETNS"]]
    me = [sys.executable, __file__]
    receiver = subprocess.Popen([*([] if options.back else there), *me, "receive"], stdout=subprocess.PIPE, text=True)
    assert receiver.stdout is not None
    receiver.stdout.readline()
    numbers = [f"--count={options.count}", f"--gap-us={options.gap_us}", f"--size={options.size}"]
    command = [*me, "send", f"--to={near if options.back else far}", f"--tos={options.tos}", *numbers]
    done = subprocess.run([*(there if options.back else []), *command], stdout=subprocess.PIPE, text=True, check=True)
    sent = json.loads(done.stdout)
    got = json.loads(receiver.stdout.read())
    receiver.wait()
    print(json.dumps({"sent": sent, "got": [[number, at - sent[number], tos] for number, at, tos in got]}))


if __name__ == "__main__":
    main()
