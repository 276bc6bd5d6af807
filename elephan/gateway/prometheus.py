"""The counters of a gateway in Prometheus' text format, on an address of this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from elephan.core import native
from elephan.errors import RunError
from elephan.gateway.config import Address, address_text

CONTENT = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "elephan_gateway_"
TIMEOUT_S = 5
"""Longest wait for a request of an open connection, s."""


def text(gateway: native.FcGateway) -> str:
    """Return ports, peers, sessions and counters in the text format (Prometheus, exposition formats, 0.0.4)."""
    lines = [f"# TYPE {PREFIX}ports gauge", f"{PREFIX}ports {len(gateway.ports())}"]
    lines += [f"# TYPE {PREFIX}sessions gauge", f"{PREFIX}sessions {len(gateway.sessions())}"]
    # A peer's name has no quotes (elephan.scenario.table.Name).
    up = [f'{PREFIX}peer_up{{peer="{name}"}} {int(is_up)}' for name, is_up in gateway.peers()]
    lines += [f"# TYPE {PREFIX}peer_up gauge", *up] if up else []
    for name, value in gateway.counters().items():
        # Base units: seconds.
        seconds = name.endswith("_ns")
        full = f"{PREFIX}{name.removesuffix('_ns')}{'_seconds' if seconds else ''}_total"
        lines += [f"# TYPE {full} counter", f"{full} {value / 1e9 if seconds else value}"]
    return "\n".join(lines) + "\n"


@contextmanager
def served(address: Address, gateway: native.FcGateway) -> Iterator[str]:
    """Serve /metrics of a gateway; yield ADDRESS:PORT. Raises `RunError` when the address cannot be had."""

    class Handler(BaseHTTPRequestHandler):
        timeout = TIMEOUT_S

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404)
                return
            content = text(gateway).encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if address[0].version == 6 else socket.AF_INET
        daemon_threads = True

    try:
        server = Server((str(address[0]), address[1]), Handler)
    except OSError as error:
        raise RunError(f"statistics.prometheus: {address_text(address)}: {error.strerror}") from error
    thread = threading.Thread(target=server.serve_forever, name="prometheus", daemon=True)
    thread.start()
    try:
        yield address_text((address[0], int(server.server_address[1])))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
