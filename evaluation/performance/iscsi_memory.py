"""A target's memory beside initiators that ask for much and stand still: `python -m
evaluation.performance.iscsi_memory`.

Writes a part of docs/results/iscsi.md: the most memory that the target's process had (VmHWM), with its bound and with
one that is never reached, and the rate of a load beside.
What the initiators send are bytes on sockets, because no initiator of the project would do it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from evaluation.markdown import table
from evaluation.parts import write_parts
from evaluation.performance.iscsi import PAGE, Peer, elephan, own_load
from evaluation.requirements import exit_code

COMMAND = "python -m evaluation.performance.iscsi_memory"
FEW, MANY = 8, 64
"""Sessions that stand still."""
STANDING_S = 6
"""Time for them to have claimed what they get, s."""
UNREACHED = "1TiB"
"""A bound for memory that no burden here reaches."""
READ_16 = 0x88
WRITE_16 = 0x8A
BLOCKS = 32_768
"""Of 16 MiB, the largest command."""
PING_BYTES = 262_144
FILE_BYTES = 256 << 20
KEYS = (
    "InitialR2T=No",
    "ImmediateData=Yes",
    "FirstBurstLength=16777215",
    "MaxBurstLength=16777215",
    "MaxRecvDataSegmentLength=16777215",
    "MaxOutstandingR2T=64",
)


class Stopped:
    """A session whose sending and reading the caller decides."""

    def __init__(self, url: str, number: int, keys: Sequence[str] = KEYS) -> None:
        """Log in at a unit of a target as initiator `number`."""
        portal, name = url.split("/")[2:4]
        host, port = portal.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20)
        names = (f"InitiatorName=iqn.2026-01.example:{number}", f"TargetName={name}")
        text = "".join(f"{key}\0" for key in (*names, *keys)).encode()
        header = bytearray(48)
        # Operational stage, to full feature phase.
        header[0], header[1] = 0x43, 0x87
        header[5:8] = len(text).to_bytes(3, "big")
        header[8:14] = bytes([0x80, 0, 0, 0, 0, 1])
        header[24:28] = (1).to_bytes(4, "big")
        self.socket.sendall(bytes(header) + text + bytes(-len(text) % 4))
        answer, self.agreed = self.receive()
        assert answer[36] == 0, f"login refused: {answer[36:38].hex()}"
        self.number = 0

    def value(self, key: str, default: str) -> str:
        """Return the target's answer to a key."""
        pairs = dict(pair.partition("=")[::2] for pair in self.agreed.decode().split("\0"))
        return pairs.get(key, default)

    def receive(self) -> tuple[bytes, bytes]:
        """Take one PDU: header and data."""
        header = self._exactly(48)
        length = int.from_bytes(header[5:8], "big")
        return header, self._exactly(length + -length % 4)[:length]

    def _exactly(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            more = self.socket.recv(count - len(parts))
            if not more:
                raise EOFError
            parts += more
        return bytes(parts)

    def command(self, operation: int, blocks: int, data: bytes = b"") -> None:
        """Send READ (16) or WRITE (16) of the first blocks, with immediate data."""
        self.number += 1
        header = bytearray(48)
        header[0] = 0x01
        # Final, the direction, simple.
        header[1] = 0x80 | (0x40 if operation == READ_16 else 0x20) | 1
        header[5:8] = len(data).to_bytes(3, "big")
        header[16:28] = struct.pack(">III", self.number, blocks * 512, self.number)
        header[32:48] = struct.pack(">BBQIBB", operation, 0, 0, blocks, 0, 0)
        self.socket.sendall(bytes(header) + data)

    def answer_r2t(self, header: bytes, keep_back: int) -> None:
        """Send the data of an R2T but its last bytes."""
        offset, length = struct.unpack(">II", header[40:48])
        end, number = offset + length - keep_back, 0
        while offset < end:
            count = min(262_144, end - offset)
            out = bytearray(48)
            out[0] = 0x05
            out[5:8] = count.to_bytes(3, "big")
            out[16:24] = header[16:24]
            out[36:44] = struct.pack(">II", number, offset)
            self.socket.sendall(bytes(out) + bytes(count))
            offset, number = offset + count, number + 1

    def ping(self, count: int) -> None:
        """Send a ping with so much data."""
        header = bytearray(48)
        header[0], header[1] = 0x40, 0x80
        header[5:8] = count.to_bytes(3, "big")
        header[16:28] = struct.pack(">III", 1, 0xFFFFFFFF, 1)
        self.socket.sendall(bytes(header) + bytes(count))


def reads(session: Stopped) -> None:
    """Ask for 64 times 16 MiB, and take nothing."""
    for _ in range(64):
        session.command(READ_16, BLOCKS)


def unasked(session: Stopped) -> None:
    """Begin 64 writes of 16 MiB with as much data as goes unasked, and send no more."""
    may_come = session.value("ImmediateData", "Yes") == "Yes"
    burst = min(int(session.value("FirstBurstLength", "0")), 262_144) if may_come else 0
    for _ in range(64):
        session.command(WRITE_16, BLOCKS, bytes(burst))


def writes(session: Stopped) -> None:
    """Do the same, and send all that is asked for but the last block of each."""
    unasked(session)
    while True:
        header, _ = session.receive()
        if header[0] & 0x3F == 0x31:
            end = sum(struct.unpack(">II", header[40:48]))
            session.answer_r2t(header, 512 if end == BLOCKS * 512 else 0)


def pings(session: Stopped) -> None:
    """Send 400 pings of 256 KiB, and take no answers."""
    for _ in range(400):
        session.ping(PING_BYTES)


BURDENS = (reads, unasked, writes, pings)


@contextlib.contextmanager
def standing(url: str, burden: Callable[[Stopped], None], count: int) -> Iterator[None]:
    """Have so many sessions with a burden while the block runs."""
    sessions: list[Stopped] = []

    def stand(number: int) -> None:
        # The target closes connections that others wait for, or that break the protocol.
        with contextlib.suppress(OSError, EOFError):
            session = Stopped(url, number)
            sessions.append(session)
            burden(session)

    for number in range(count):
        threading.Thread(target=stand, args=(number,), daemon=True).start()
    try:
        yield
    finally:
        for session in sessions:
            session.socket.close()


def resident(pid: int) -> int:
    """Return the most memory that a process has had, bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def measure(peer: Peer, burden: Callable[[Stopped], None], count: int) -> tuple[float, float]:
    """Return the memory of a burdened target and the rate of a load of 1 MiB reads beside, MB and MB/s."""
    with standing(peer.url, burden, count):
        time.sleep(STANDING_S)
        load = own_load(peer, 1 << 20, 8, 2, 100, None)
        return resident(peer.pid) / 1e6, load.per_s * (1 << 20) / 1e6


def row(image: Path, burden: Callable[[Stopped], None], count: int) -> list[str]:
    """Measure with the bound and without; return what burdened the target, its memory in both, the rate with it."""
    doc = (burden.__doc__ or "").strip().rstrip(".")
    with elephan(image) as peer:
        bounded_mb, rate = measure(peer, burden, count)
    with elephan(image, "--memory", UNREACHED) as peer:
        unbounded_mb, _ = measure(peer, burden, count)
    return [f"{count} sessions: {doc[0].lower()}{doc[1:]}", *(f"{x:,.0f}" for x in (bounded_mb, unbounded_mb, rate))]


def main() -> None:
    """Measure all, then write."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    folder = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    rows = []
    with tempfile.TemporaryDirectory(prefix="elephan-bench-", dir=folder) as place:
        image = Path(place, "own.img")
        image.touch()
        os.truncate(image, FILE_BYTES)
        for burden, count in [*((burden, FEW) for burden in BURDENS), (unasked, MANY)]:
            rows.append(row(image, burden, count))
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    heads = ["", "target's memory, MB", "without the bound", "reads beside, MB/s"]
    write_parts(PAGE, COMMAND, {"memory": table(heads, rows)})


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.iscsi_memory", main))
