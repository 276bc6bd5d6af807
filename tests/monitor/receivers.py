"""Receivers of alerts for tests: a webhook by HTTP, and a mail server that speaks enough SMTP (RFC 5321)."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def webhook(status: int = 200) -> Iterator[tuple[str, list[dict[str, Any]], list[int]]]:
    """Give a URL of apprise, what came, and the list whose last item is the status of the next answers."""
    came: list[dict[str, Any]] = []
    statuses = [status]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if statuses[-1] == 200:
                came.append(json.loads(body))
            self.send_response(statuses[-1])
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"json://127.0.0.1:{server.server_address[1]}/alerts", came, statuses
        server.shutdown()


@contextmanager
def mail_server() -> Iterator[tuple[str, list[str]]]:
    """Give a URL of apprise, and the mails that came."""
    mails: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.say("220 test ESMTP")
            while line := self.rfile.readline():
                verb = line[:4].upper()
                if verb == b"EHLO":
                    self.say("250 test")
                elif verb == b"DATA":
                    self.say("354 go on")
                    lines = []
                    while (text := self.rfile.readline()) not in (b".\r\n", b""):
                        lines.append(text)
                    mails.append(b"".join(lines).decode())
                    self.say("250 taken")
                elif verb == b"QUIT":
                    self.say("221 bye")
                    return
                else:
                    self.say("250 ok")

        def say(self, text: str) -> None:
            self.wfile.write(text.encode() + b"\r\n")

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = (
            f"mailto://127.0.0.1:{server.server_address[1]}/?from=monitor@example.com&to=ops@example.com&mode=insecure"
        )
        yield url, mails
        server.shutdown()
