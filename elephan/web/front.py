"""Bounded accept in front of uvicorn: how many connections there may be, by address and in all, and for how long each
may take for TLS and for the head of a request.

Uvicorn's own bound counts connections that have not asked for anything, so that they keep everybody out; and asyncio
keeps 256 KiB for each connection whose TLS handshake has not ended.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from elephan.admission import Limits, Pending, network_of
from elephan.web.guard import App, Message, Receive, Scope, Send

WAITING = Limits(total=128, per_address=96, time_s=10.0)
"""Connections without a request under way, with the time until the head of the first one is complete. A further one
displaces another."""
KEEP_ALIVE_S = 30.0
"""Time until the head of a further request is complete, s."""
REQUESTS_MAX = 256
"""Requests at once, from all addresses; more are answered with 503. Each open page has one, for its events."""
REQUESTS_PER_ADDRESS = 128
"""The same from one address, which may be that of a proxy or of `ssh -L`."""
UNREAD_S = 30.0
"""Time for a client to take data of an answer, s (TCP_USER_TIMEOUT)."""
LOOK_S = 0.5
"""Interval between looks at connections whose time is over, s."""
PAUSE_S = 0.1
"""Pause after a connection that could not be accepted, for lack of descriptors, s."""

Client = tuple[str, int]


class Front:
    """Connections of the server, from accept to their end."""

    def __init__(self, app: App) -> None:
        """Take the application behind it."""
        self._app = app
        self._waiting: Pending[Client] = Pending(WAITING)
        self._handshakes: dict[Client, asyncio.Task[None]] = {}
        self._transports: dict[Client, asyncio.Transport] = {}
        self._requests: Counter[str] = Counter()
        """By network."""
        self._tasks: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request whose head is complete. See ASGI."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        client: Client | None = scope.get("client")
        network = network_of("" if client is None else client[0])
        if self._requests.total() >= REQUESTS_MAX or self._requests[network] >= REQUESTS_PER_ADDRESS:
            return await _refuse(send)
        if client is not None:
            self._waiting.remove(client)
        self._requests[network] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._requests[network] -= 1
            if not self._requests[network]:
                del self._requests[network]
            if client is not None and client in self._transports:
                self._admit(client, KEEP_ALIVE_S)

    def begin(self, listener: socket.socket, make: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None) -> None:
        """Accept connections from now on. `make` returns the protocol of one."""
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._accept(listener, make, tls)), loop.create_task(self._expire())]

    def end(self) -> None:
        """Accept no more, and close connections whose handshake is under way."""
        for task in (*self._tasks, *self._handshakes.values()):
            task.cancel()

    async def _accept(
        self, listener: socket.socket, make: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listener)
            except OSError:
                await asyncio.sleep(PAUSE_S)
                continue
            client: Client = address[:2]
            with suppress(OSError):
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(UNREAD_S * 1000))
            self._admit(client)
            self._handshakes[client] = loop.create_task(self._serve(client, accepted, make, tls))

    def _admit(self, client: Client, time_s: float | None = None) -> None:
        displaced = self._waiting.admit(time.monotonic(), client, client[0], time_s)
        if displaced is not None:
            self._close(displaced)

    async def _serve(
        self,
        client: Client,
        accepted: socket.socket,
        make: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None,
    ) -> None:
        """Run the TLS handshake, and hand the connection to uvicorn."""
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: cast("asyncio.Protocol", _Watched(make(), lambda: self._lost(client))),
                accepted,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else WAITING.time_s,
            )
        except OSError:
            # The client's handshake is wrong or late, or it has gone.
            accepted.close()
            self._waiting.remove(client)
        except asyncio.CancelledError:
            accepted.close()
            raise
        else:
            if transport.is_closing():
                self._waiting.remove(client)
            else:
                self._transports[client] = transport
        finally:
            self._handshakes.pop(client, None)

    def _lost(self, client: Client) -> None:
        self._waiting.remove(client)
        self._transports.pop(client, None)

    def _close(self, client: Client) -> None:
        handshake = self._handshakes.pop(client, None)
        if handshake is not None:
            handshake.cancel()
        transport = self._transports.pop(client, None)
        if transport is not None:
            transport.abort()

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            for late in self._waiting.expire(time.monotonic()):
                self._close(late)


class _Watched(asyncio.Protocol):
    """A protocol whose end is reported."""

    def __init__(self, behind: asyncio.Protocol, lost: Callable[[], None]) -> None:
        self._behind, self._on_lost = behind, lost
        self.connection_made = behind.connection_made  # type: ignore[method-assign]
        self.data_received = behind.data_received  # type: ignore[method-assign]
        self.eof_received = behind.eof_received  # type: ignore[method-assign]
        self.pause_writing = behind.pause_writing  # type: ignore[method-assign]
        self.resume_writing = behind.resume_writing  # type: ignore[method-assign]

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._on_lost()
        self._behind.connection_lost(exc)


async def _refuse(send: Send) -> None:
    body = b"too many requests at once; try again in a moment\n"
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", b"1"),
        (b"connection", b"close"),
    ]
    start: Message = {"type": "http.response.start", "status": 503, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
