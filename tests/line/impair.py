"""A line between two interfaces that does to test frames what a test tells it: frames go through this process."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from elephan.network_namespace import within

ETHERTYPE = 0x88B5
HEADER_BYTES = 14
MESSAGE = 2
"""Kind of a message, in the second byte of the stamp behind the header."""

Fate = Callable[[int, bytes], list[bytes]]
"""From the number of a frame, and the frame, what arrives in its place."""


class Impaired:
    """A wire between two interfaces of a network namespace. Messages, and frames back, pass unchanged."""

    def __init__(self, namespace: str, near: str, far: str, fate: Fate) -> None:
        """Begin to pass frames."""

        def opened() -> list[socket.socket]:
            sockets = []
            for name in (near, far):
                one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
                # Linux's PACKET_IGNORE_OUTGOING, which the module has no name for (linux/if_packet.h).
                one.setsockopt(263, 23, 1)
                one.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
                one.bind((name, ETHERTYPE))
                sockets.append(one)
            return sockets

        self._sockets = within(Path("/run/netns", namespace), opened)
        self._fate = fate
        self.passed = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="impaired-line")
        self._thread.start()

    def __enter__(self) -> Impaired:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        for one in self._sockets:
            one.close()

    def _run(self) -> None:
        near, far = self._sockets
        while not self._stop.is_set():
            ready, _, _ = select.select(self._sockets, [], [], 0.1)
            if near in ready:
                frame = near.recv(1 << 14)
                number = int.from_bytes(frame[HEADER_BYTES + 10 : HEADER_BYTES + 18], "big")
                # Frames of a ramp and messages pass.
                is_test = frame[HEADER_BYTES + 1] & 15 == 0
                for copy in self._fate(number, frame) if is_test else [frame]:
                    far.send(copy)
                self.passed += is_test
            if far in ready:
                near.send(far.recv(1 << 14))
