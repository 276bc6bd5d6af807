"""`elephan diagnose` on connections within this machine: both ends are seen, and the truth needs no clock."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from elephan.cli.main import call


@contextmanager
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield both ends of a connection, the far end's port first of all its listener's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        with near, far:
            yield near, far


def diagnosed(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    """Return what `--json` prints."""
    assert call(["diagnose", *options, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_far_end_that_does_not_read_is_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    with pair() as (near, far):
        near.setblocking(False)
        # Until neither buffer has room.
        for _ in range(200):
            try:
                near.send(bytes(1 << 18))
            except BlockingIOError:
                time.sleep(0.005)
        port = str(far.getsockname()[1])
        found = diagnosed(capsys, "--port", port, "--seconds", "0.3")
        (flow,) = found["flows"]
        assert flow["limit"] == "receiving_application" and flow["role"] == "sender"
        assert flow["remote"] == f"127.0.0.1:{port}"
        assert found["connections"] == 2 and found["idle"] == 0 and found["samples"] >= 2
        assert flow["forecast"]["none_because"].startswith("the far application reads no faster")
        assert call(["diagnose", "--port", port, "--seconds", "0.2", "--no-forecast"]) == 0
        (line,) = capsys.readouterr().out.splitlines()
        assert f"127.0.0.1:{near.getsockname()[1]} > 127.0.0.1:{port}  " in line
        assert "limited by the receiving application: " in line


def test_a_sender_with_little_to_send_is_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    with pair() as (near, far):
        over = threading.Event()

        def write() -> None:
            while not over.wait(0.01):
                near.send(bytes(500))
                far.recv(500)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            found = diagnosed(capsys, "--pid", str(os.getpid()), "--peer", "127.0.0.1", "--seconds", "0.5")
        finally:
            over.set()
            writer.join()
        own = f"127.0.0.1:{near.getsockname()[1]}"
        (flow,) = [flow for flow in found["flows"] if flow["local"] == own]
        assert flow["limit"] == "application"
        assert flow["counters"]["acked_bytes"] > 0


def test_idle_connections_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with pair() as (_, far):
        assert call(["diagnose", "--port", str(far.getsockname()[1]), "--seconds", "0.2"]) == 0
        assert capsys.readouterr().out == "2 connections, and none carried anything meanwhile\n"
