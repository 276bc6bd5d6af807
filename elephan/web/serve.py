"""The server of the pages: sockets, TLS, and its end."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

import uvicorn

from elephan.errors import InputError, RunError
from elephan.web.app import Site, application
from elephan.web.front import KEEP_ALIVE_S, Front
from elephan.web.listen import Listen

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""TLS 1.2 with forward secrecy and AEAD alone (RFC 9325, 4.2.1); those of TLS 1.3 are all good."""

BACKLOG = 1024
"""Connections that wait to be accepted."""

LOADED_EARLY = ("elephan.monitor.raw", "elephan.report.metrics", "elephan.report.html")

GRACE_S = 3
"""Time for requests to end when the server stops, s."""


class Server(uvicorn.Server):
    """Uvicorn's server behind `Front`, which ends streams before it waits for their connections."""

    def __init__(self, config: uvicorn.Config, site: Site, front: Front) -> None:
        super().__init__(config)
        self._site = site
        self._front = front

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        await super().startup([])
        for listener in sockets or []:
            self._front.begin(listener, self._protocol, self.config.ssl)

    def _protocol(self) -> asyncio.Protocol:
        kind = cast("Callable[..., asyncio.Protocol]", self.config.http_protocol_class)
        return kind(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        self._front.end()
        self._site.hub.end()
        await super().shutdown(sockets)


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the context of a certificate and its key. Raises `InputError` when they are no such files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    try:
        # A key with a passphrase has nobody to ask for it.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"--tls-cert {certificate}, --tls-key {key}: not a certificate and its key in PEM, without passphrase: "
            f"{reason}"
        ) from error
    return context


@dataclass(frozen=True)
class Listening:
    """A server whose address is there, before it serves."""

    server: Server
    socket: socket.socket
    url: str

    def run(self) -> None:
        """Serve until a signal, or until `server.should_exit` is set."""
        # Arrow and models take a second to load, which no first page of charts or runs should wait for.
        threading.Thread(target=lambda: [import_module(name) for name in LOADED_EARLY], daemon=True).start()
        try:
            self.server.run([self.socket])
        except KeyboardInterrupt:
            # Uvicorn has stopped by then, and raises what stopped it once more.
            pass
        finally:
            self.socket.close()


def listening(
    store: str | None, listen: Listen, certificate: Path | None, key: Path | None, tokens: Path | None
) -> Listening:
    """Return a server of the pages. Raises `InputError`, and `RunError` when the address cannot be had."""
    context = tls_context(certificate, key) if certificate is not None and key is not None else None
    site = application(store, listen, tokens, context is not None)
    opened = _socket(listen)
    front = Front(site.app)
    config = uvicorn.Config(
        front,
        # Uvicorn warns of each request that is no HTTP: any client could fill the log.
        log_level="error",
        access_log=False,
        server_header=False,
        # A client could name any address of its own, and so escape the bound on wrong logins.
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=round(KEEP_ALIVE_S),
        timeout_graceful_shutdown=GRACE_S,
        ssl_context_factory=None if context is None else lambda *_: context,
        lifespan="on",
    )
    scheme = "http" if context is None else "https"
    return Listening(Server(config, site, front), opened, f"{scheme}://{listen.in_url}:{opened.getsockname()[1]}/")


def serve(
    store: str | None,
    listen: Listen,
    certificate: Path | None,
    key: Path | None,
    tokens: Path | None,
    say: Callable[[str], None],
) -> None:
    """Serve the pages until Ctrl-C or SIGTERM. Raises `InputError`, and `RunError` when the address cannot be had."""
    ready = listening(store, listen, certificate, key, tokens)
    say(f"{ready.url} ({'no login' if tokens is None else 'login by token'}); Ctrl-C ends it")
    ready.run()


def _socket(listen: Listen) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((listen.host, listen.port))
        # From here on a browser waits and is not refused: the address is said before the first request is served.
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        raise RunError(f"--listen {listen.in_url}:{listen.port}: cannot listen there: {error.strerror}") from error
    return opened
