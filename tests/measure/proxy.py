"""A way to a reflector that drops, doubles and delays packets as it is told, and keeps them."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

Fate = Callable[[int, bool], list[float]]
"""Delays, s, of the copies of packet `number` that pass, by its number and True for a reply."""


@dataclass
class Proxy:
    """Its address, and the packets that passed."""

    towards: str
    packets: list[tuple[float, bool, bytes]] = field(default_factory=list)
    """Time, s since 1970; True for a reply; UDP payload."""

    def write(self, file: Path) -> None:
        """Write a capture (pcap) with 192.0.2.1 as the sender and 192.0.2.2, port 862, as the reflector."""
        with file.open("wb") as into:
            # Link type 101: raw IP.
            into.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
            for at_s, is_reply, payload in self.packets:
                ends = [("192.0.2.1", 50000), ("192.0.2.2", 862)]
                (source, source_port), (to, to_port) = reversed(ends) if is_reply else ends
                udp = struct.pack(">HHHH", source_port, to_port, 8 + len(payload), 0) + payload
                addresses = socket.inet_aton(source) + socket.inet_aton(to)
                packet = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 255, 17, 0) + addresses + udp
                into.write(struct.pack("<IIII", int(at_s), int(at_s % 1 * 1e6), len(packet), len(packet)) + packet)


@contextmanager
def proxied(
    towards: str,
    fate: Fate = lambda number, is_reply: [0.0],
    edit: Callable[[bytes], bytes] = lambda reply: reply,
) -> Iterator[Proxy]:
    """Stand before a reflector. `edit` changes the UDP payload of a reply."""
    host, _, port = towards.rpartition(":")
    near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    near.bind(("127.0.0.1", 0))
    far.connect((host, int(port)))
    proxy = Proxy(f"127.0.0.1:{near.getsockname()[1]}")
    stop = threading.Event()

    def carry() -> None:
        waiting: list[tuple[float, bool, bytes]] = []
        sender = None
        while not stop.is_set():
            for ready in select.select([near, far], [], [], 0.002)[0]:
                is_reply = ready is far
                payload, source = ready.recvfrom(65536)
                sender = sender if is_reply else source
                # A reply has its request's number at octet 24.
                number = struct.unpack_from(">I", payload, 24 if is_reply else 0)[0]
                proxy.packets.append((time.time(), is_reply, payload))
                payload = edit(payload) if is_reply else payload
                waiting += [(time.monotonic() + delay_s, is_reply, payload) for delay_s in fate(number, is_reply)]
            now_s = time.monotonic()
            for due in sorted(packet for packet in waiting if packet[0] <= now_s):
                waiting.remove(due)
                if due[1]:
                    near.sendto(due[2], sender)
                else:
                    far.send(due[2])

    thread = threading.Thread(target=carry)
    thread.start()
    try:
        yield proxy
    finally:
        stop.set()
        thread.join()
        near.close()
        far.close()
