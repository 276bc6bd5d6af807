"""Clients that connect and do not ask: memory stays bounded, and others are served at once."""

from __future__ import annotations

import re
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from tests.web.conftest import Stored

GROWTH_MAX = 100 << 20
"""Bytes. Without the bound 3,000 connections without a TLS handshake add 900 MB."""


class Web:
    """`elephan web` as a process of its own."""

    def __init__(self, store: str, *options: str) -> None:
        command = [sys.executable, "-c", "from elephan.cli import main; main()", "web", "--store", store]
        self.process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", *options], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        found = re.search(r"https?://127\.0\.0\.1:(\d+)/", self.process.stderr.readline())
        assert found is not None
        self.url, self.port = found[0], int(found[1])

    def resident_bytes(self) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) * 1024  # type: ignore[index]

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def get(self, path: str = "") -> httpx.Response:
        with httpx.Client(verify=False, timeout=20) as client:
            return client.get(f"{self.url}{path}")

    def end(self) -> None:
        self.process.terminate()
        # Uvicorn ends by the signal that it was sent, once all is closed.
        assert self.process.wait(20) in (0, -signal.SIGTERM)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def web(stored: Stored) -> Iterator[Web]:
    running = Web(stored.file)
    yield running
    running.end()


@pytest.fixture
def tls(stored: Stored, tmp_path: Path) -> Iterator[Web]:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        + ["-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost"],
        check=True,
        capture_output=True,
    )
    running = Web(stored.file, "--tls-cert", str(certificate), "--tls-key", str(key))
    yield running
    running.end()


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], 8192), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_3000_connections_without_a_handshake_take_little_memory_and_keep_nobody_out(
    tls: Web, many_descriptors: None
) -> None:
    assert tls.get().status_code == 200
    before = tls.resident_bytes()
    with ExitStack() as stack:
        for number in range(3000):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", tls.port), timeout=20))
            if number % 2:
                # A record of TLS that does not end.
                with suppress(OSError):
                    client.sendall(b"\x16\x03\x01\x3e\x80\x01\x00\x3e\x7c")
        assert tls.get().status_code == 200
        assert tls.resident_bytes() - before < GROWTH_MAX
        assert tls.descriptors() < 400
    assert tls.get().status_code == 200


def test_300_clients_that_drip_a_head_keep_nobody_out_and_are_closed(web: Web, many_descriptors: None) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", web.port), timeout=20)) for _ in range(300)]
        for client in slow:
            with suppress(OSError):
                client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        for _ in range(5):
            assert web.get().status_code == 200
        until_s = time.monotonic() + 30
        open_ = set(slow)
        while open_ and time.monotonic() < until_s:
            for client in list(open_):
                try:
                    client.sendall(b"X-A: b\r\n")
                    client.setblocking(False)
                    if client.recv(1000) == b"":
                        open_.discard(client)
                except BlockingIOError:
                    pass
                except OSError:
                    open_.discard(client)
            time.sleep(0.5)
        assert not open_, "each head has a time limit, also where a byte arrives now and then"
        assert web.get().status_code == 200


def test_handshakes_that_drip_are_closed(tls: Web) -> None:
    with socket.create_connection(("127.0.0.1", tls.port), timeout=30) as client:
        began_s = time.monotonic()
        client.sendall(b"\x16\x03\x01\x3e\x80\x01\x00\x3e\x7c")
        with suppress(ConnectionResetError):
            assert client.recv(1000) == b""
        assert time.monotonic() - began_s < 20


FORM = (
    b"POST /session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\na"
)
"""Of which the end does not arrive."""


def ask(web: Web, address: str, request: bytes, stack: ExitStack) -> socket.socket:
    """Send a request from an address of this machine."""
    client = stack.enter_context(socket.socket())
    client.settimeout(20)
    client.bind((address, 0))
    client.connect(("127.0.0.1", web.port))
    client.sendall(request)
    return client


def test_pages_with_news_and_requests_of_an_address_leave_room_for_others(web: Web, many_descriptors: None) -> None:
    get = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with ExitStack() as stack:
        for number in range(70):
            client = ask(web, "127.0.0.2", get, stack)
            assert client.recv(12) == (b"HTTP/1.1 200" if number < 32 else b"HTTP/1.1 503")
            if number >= 32:
                client.close()
        assert ask(web, "127.0.0.3", get, stack).recv(12) == b"HTTP/1.1 200"
        # Requests under way whose forms do not arrive: 96 and the 32 above.
        waiting = []
        for _ in range(11):
            waiting += [ask(web, "127.0.0.2", FORM, stack) for _ in range(10)]
            assert web.get().status_code == 200
        refused = set()
        until_s = time.monotonic() + 5
        while len(refused) < 14 and time.monotonic() < until_s:
            ready, _, _ = select.select([one for one in waiting if one not in refused], [], [], 0.2)
            refused |= {one for one in ready if one.recv(12) == b"HTTP/1.1 503"}
        assert len(refused) == 14
        assert web.get().status_code == 200


def test_a_form_that_drips_is_refused(stored: Stored) -> None:
    running = Web(stored.file)
    try:
        with socket.create_connection(("127.0.0.1", running.port), timeout=30) as client:
            client.sendall(FORM)
            assert client.recv(12) == b"HTTP/1.1 408"
    finally:
        running.end()
