"""Data through ssh(1): a port on this machine, each of whose connections is an ssh of its own to a port of a host.

So N streams are N TCP connections, as without it. ssh(1) has the connection's socket as its input and output: no byte
passes through this process.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from elephan.copy.sides import LOOPBACK
from elephan.hosts import Host
from elephan.hosts.ssh import OPTIONS
from elephan.hosts.ssh_faults import fault_of

SAID_MOST = 16 * 1024
"""Bytes of an ssh's stderr that are kept."""


class Tunnel:
    """The port and the ssh processes behind it."""

    def __init__(self, host: Host, port: int) -> None:
        """Listen, for connections to `port` of the host's loopback."""
        self.host = host
        self._towards = f"{LOOPBACK}:{port}"
        self._listener = socket.create_server((LOOPBACK, 0), backlog=512)
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
                connection, _ = self._listener.accept()
            except OSError:
                return
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


@contextmanager
def opened(host: Host, port: int) -> Iterator[Tunnel]:
    """Give a tunnel until the context ends."""
    tunnel = Tunnel(host, port)
    try:
        yield tunnel
    finally:
        tunnel.close()
