"""Numbers of the monitor and the gateway for Prometheus, as text over HTTP on an address of this machine.

Written here, because prometheus-client and its thread would be 5 MB of the monitor's 30, and its server has a thread
for each connection.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from elephan.admission import Limits, Pending
from elephan.errors import RunError

LIMITS = Limits(total=16, per_address=16, time_s=10.0)
"""Of connections until their request is complete. A further one displaces another: they are of this machine."""
LONGEST_REQUEST = 8192
BACKLOG = 128
TYPE = "text/plain; version=0.0.4; charset=utf-8"

Row = tuple[Mapping[str, str], float]


def family(name: str, kind: str, help_: str, rows: Iterable[Row]) -> list[str]:
    """Return the lines of a metric family (Prometheus text format 0.0.4); none where there is no row."""
    lines = []
    for labels, value in rows:
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        lines.append(f"{name}{{{inside}}} {value!r}" if inside else f"{name} {value!r}")
    return [f"# HELP {name} {help_}", f"# TYPE {name} {kind}", *lines] if lines else []


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Endpoint:
    """Serves /metrics from the caller's own loop over a selector."""

    def __init__(
        self,
        address: tuple[str, int],
        selector: selectors.BaseSelector,
        text: Callable[[], str],
        key: str = "metrics.listen",
    ) -> None:
        """Listen. Raises `RunError`, which names `key`, when the address cannot be had."""
        self._selector, self._text = selector, text
        self._read_so_far: dict[socket.socket, bytes] = {}
        self._pending: Pending[socket.socket] = Pending(LIMITS)
        kind = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.socket(kind, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(address)
            self._socket.listen(BACKLOG)
        except OSError as error:
            self._socket.close()
            raise RunError(f"{key} {address[0]}:{address[1]}: {error.strerror}") from error
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._socket.setblocking(False)
        selector.register(self._socket, selectors.EVENT_READ, self._accept)

    def _accept(self) -> None:
        with suppress(OSError):
            client, (host, *_) = self._socket.accept()
            client.setblocking(False)
            now_s = time.monotonic()
            self.handle_timeout(now_s)
            displaced = self._pending.admit(now_s, client, host)
            if displaced is not None:
                self._close(displaced)
            self._read_so_far[client] = b""
            self._selector.register(client, selectors.EVENT_READ, lambda: self._read(client))

    def handle_timeout(self, now_s: float) -> None:
        """Close the connections whose time is over."""
        for late in self._pending.expire(now_s):
            self._close(late)

    def _read(self, client: socket.socket) -> None:
        if client not in self._read_so_far:
            # Displaced by another event of the same round.
            return
        try:
            part = client.recv(LONGEST_REQUEST)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        read = self._read_so_far[client] + part
        if not part or len(read) > LONGEST_REQUEST:
            self._close(client)
            return
        self._read_so_far[client] = read
        if b"\r\n\r\n" not in read and b"\n\n" not in read:
            return
        with suppress(OSError):
            client.settimeout(1.0)
            client.sendall(self._answer(read.split(b"\r\n")[0]))
        self._close(client)

    def _answer(self, request: bytes) -> bytes:
        words = request.split()
        status, body, kind = "200 OK", "", TYPE
        if len(words) != 3 or words[0] not in (b"GET", b"HEAD"):
            status, body = "405 Method Not Allowed", "GET /metrics\n"
        elif words[1].split(b"?")[0] != b"/metrics":
            status, body = "404 Not Found", "only /metrics is here\n"
        else:
            body = self._text()
        data = body.encode()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n"
            "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + (b"" if words[:1] == [b"HEAD"] else data)

    def _close(self, client: socket.socket) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(client)
        self._read_so_far.pop(client, None)
        self._pending.remove(client)
        client.close()

    def close(self) -> None:
        """Stop listening."""
        for client in list(self._read_so_far):
            self._close(client)
        self._selector.unregister(self._socket)
        self._socket.close()
