"""Data through ssh(1): a port on this machine, each of whose connections is an ssh of its own to a port of a host.

So N streams are N TCP connections, as without it. ssh(1) has the connection's socket as its input and output: no byte
passes through this process.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from elephan.copy.sides import LOOPBACK
from elephan.hosts import Host
from elephan.hosts.ssh import OPTIONS
from elephan.hosts.ssh_faults import fault_of

BACKLOG = 512
"""Connections that wait to be accepted: 257 of a copy, and those of other users."""
ACCEPTED_MAX = 64
"""Connections whose users are looked up at once."""
ESTABLISHED = "01"
"""State of a socket (include/net/tcp_states.h)."""
SAID_MOST = 16 * 1024
"""Bytes of an ssh's stderr that are kept."""


class Tunnel:
    """The port and the ssh processes behind it."""

    def __init__(self, host: Host, port: int) -> None:
        """Listen, for connections to `port` of the host's loopback."""
        self.host = host
        self._towards = f"{LOOPBACK}:{port}"
        self._listener = socket.create_server((LOOPBACK, 0), backlog=BACKLOG)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._is_closed = False
        self.fault: str | None = None
        """Error of the first ssh that failed."""
        threading.Thread(target=self._accept, name=f"elephan-{host.name}-tunnel", daemon=True).start()

    def _accept(self) -> None:
        options = OPTIONS | {"ClearAllForwardings": "no", "ControlPath": "none", "Compression": "no"}
        words = ["ssh", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
        while True:
            try:
                connections = self._accepted()
            except (OSError, ValueError):
                # It is closed.
                return
            for connection in connections:
                self._forward(connection, words)

    def _accepted(self) -> list[socket.socket]:
        """Wait for connections of this user and return them; those of others are closed. Raises `OSError` at the end.

        Each would start an ssh with this user's keys, to a port of the remote host.
        """
        waiting = select.poll()
        waiting.register(self._listener, select.POLLIN)
        waiting.poll()
        found: dict[int, socket.socket] = {}
        with suppress(BlockingIOError):
            while len(found) < ACCEPTED_MAX:
                connection, (_, port) = self._listener.accept()
                found[port] = connection
        own = _own_ports(self.port)
        for port in [port for port in found if port not in own]:
            found.pop(port).close()
        for connection in found.values():
            connection.setblocking(True)
        return list(found.values())

    def _forward(self, connection: socket.socket, words: list[str]) -> None:
        with connection, self._lock:
            if self._is_closed:
                return
            process = subprocess.Popen(
                [*words, "-W", self._towards, "--", self.host.destination],
                stdin=connection.fileno(),
                stdout=connection.fileno(),
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C"},
            )
            self._processes.append(process)
        assert process.stderr is not None, "a pipe was asked for"
        threading.Thread(target=self._listen, args=(process, process.stderr), daemon=True).start()

    def _listen(self, process: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
        said = stderr.read(SAID_MOST).decode(errors="replace")
        stderr.close()
        if process.wait() != 0 and self.fault is None and not self._is_closed and said.strip():
            self.fault = str(fault_of(self.host, process.returncode, said))

    def close(self) -> None:
        """End the port and all of its connections."""
        with self._lock:
            self._is_closed = True
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            for process in self._processes:
                process.terminate()
        for process in self._processes:
            process.wait()


def _own_ports(towards: int) -> set[int]:
    """Return the ports from which sockets of this user are connected to port `towards` (proc_net_tcp in the kernel's
    documentation).
    """
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {
        int(row[1].partition(":")[2], 16)
        for row in rows
        if int(row[2].partition(":")[2], 16) == towards and row[3] == ESTABLISHED and int(row[7]) == os.geteuid()
    }


@contextmanager
def opened(host: Host, port: int) -> Iterator[Tunnel]:
    """Give a tunnel until the context ends."""
    tunnel = Tunnel(host, port)
    try:
        yield tunnel
    finally:
        tunnel.close()
