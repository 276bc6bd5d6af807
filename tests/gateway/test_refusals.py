"""A gateway with more connections than it has descriptors for."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.gateway.sites import PATIENCE_S, Running
from tests.processes import free_port

pytestmark = pytest.mark.looks_at_kernel

DESCRIPTORS = 48


def test_connections_beyond_the_descriptors_are_closed_and_others_are_taken_afterwards(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "1.toml").write_text(
        '[fabric]\nname = "10:00:00:00:00:00:00:01"\ndomain = 1\n[[socket]]\nlocal = "1.gateway"\nremote = "1.node"\n'
        f'[ip]\nlisten = "127.0.0.1:{port}"\n[[peer]]\nname = "site-2"\naddress = "127.0.0.2:{port}"\n'
    )
    # The command raises the lower bound to the upper one.
    before = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"]
    gateway = Running("gateway", "run", str(tmp_path / "1.toml"), before=before)

    def connection() -> socket.socket:
        return socket.create_connection(("127.0.0.1", port), PATIENCE_S, source_address=("127.0.0.2", 0))

    try:
        gateway.until_said("fabric at ")
        with ExitStack() as open_ones:
            several = [open_ones.enter_context(connection()) for _ in range(DESCRIPTORS)]
            gateway.until_said("a connection was not taken: Too many open files")
            assert is_ended(several[-1])
        with ExitStack() as open_ones:
            # The gateway closes those of before in its own time.
            while is_ended(open_ones.enter_context(connection()), within_s=1):
                pass
    finally:
        code, _ = gateway.end()
    assert code == 0, gateway.said


def is_ended(connection: socket.socket, within_s: float = PATIENCE_S) -> bool:
    """Return True when the other end ends the connection within a time."""
    connection.settimeout(within_s)
    try:
        return not connection.recv(1)
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
