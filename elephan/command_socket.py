"""Way of commands to a process that runs, as the monitor or an emulated path: a UNIX socket, for its user alone.

One line of JSON each way. An answer that takes time (a path test) comes when it is there.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.errors import RunError

LONGEST_REQUEST = 4096
MOST_CONNECTIONS = 16
ASK_S = 600.0
"""Longest wait for an answer, s: a path test that has to wait for another one."""

Reply = Callable[[dict[str, Any]], None]
Handle = Callable[[dict[str, Any], Reply], None]


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Give a name for a socket that fits its 107 bytes (unix(7)), however long the folder's is."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


@dataclass
class _Connection:
    socket: socket.socket
    read: bytes = b""
    asked: bool = False


class Control:
    """The end of the process that answers."""

    def __init__(self, path: Path, selector: selectors.BaseSelector, handle: Handle) -> None:
        """Listen. Raises `RunError`."""
        self.path = path
        self._selector = selector
        self._handle = handle
        self._connections: set[socket.socket] = set()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            # Of a process that was killed: its lock says that none runs.
            path.unlink(missing_ok=True)
            before = os.umask(0o177)
            try:
                with _short(path) as name:
                    self._socket.bind(name)
            finally:
                os.umask(before)
            self._socket.listen(MOST_CONNECTIONS)
        except OSError as error:
            self._socket.close()
            raise RunError(f"{path}: no socket for commands: {error.strerror}") from error
        self._socket.setblocking(False)
        selector.register(self._socket, selectors.EVENT_READ, self._accept)

    def _accept(self) -> None:
        with suppress(OSError):
            found, _ = self._socket.accept()
            if len(self._connections) >= MOST_CONNECTIONS:
                found.close()
                return
            found.setblocking(False)
            connection = _Connection(found)
            self._connections.add(found)
            self._selector.register(found, selectors.EVENT_READ, lambda: self._read(connection))

    def _read(self, connection: _Connection) -> None:
        try:
            part = connection.socket.recv(LONGEST_REQUEST)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        connection.read += part
        if not part or len(connection.read) > LONGEST_REQUEST:
            self._close(connection.socket)
            return
        if b"\n" not in connection.read or connection.asked:
            return
        connection.asked = True

        def reply(answer: dict[str, Any]) -> None:
            if connection.socket in self._connections:
                with suppress(OSError):
                    connection.socket.settimeout(1.0)
                    connection.socket.sendall(json.dumps(answer).encode() + b"\n")
                self._close(connection.socket)

        try:
            asked = json.loads(connection.read.split(b"\n")[0])
            if not isinstance(asked, dict):
                raise ValueError
        except ValueError:
            reply({"fault": "a line with a JSON object is asked with"})
            return
        self._handle(asked, reply)

    def _close(self, connection: socket.socket) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(connection)
        self._connections.discard(connection)
        connection.close()

    def close(self) -> None:
        """Stop listening."""
        for connection in list(self._connections):
            self._close(connection)
        self._selector.unregister(self._socket)
        self._socket.close()
        self.path.unlink(missing_ok=True)


def ask(
    path: Path, asked: dict[str, Any], timeout_s: float = ASK_S, who: str = "the monitor"
) -> dict[str, Any] | None:
    """Ask the process that listens at `path`, `who` in messages; None: none does.

    Raises `RunError` with what it says is wrong.
    """
    until_s = time.monotonic() + timeout_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as there:
        try:
            with _short(path) as name:
                there.connect(name)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            return None
        except PermissionError:
            raise RunError(f"{path}: {who} is another user's") from None
        there.sendall(json.dumps(asked).encode() + b"\n")
        read = b""
        while not read.endswith(b"\n"):
            there.settimeout(max(0.1, until_s - time.monotonic()))
            try:
                part = there.recv(1 << 16)
            except TimeoutError:
                raise RunError(f"{who} has not answered in {timeout_s:.0f} s") from None
            if not part:
                raise RunError(f"{who} ended before it answered")
            read += part
    answer: dict[str, Any] = json.loads(read)
    if "fault" in answer:
        raise RunError(answer["fault"])
    return answer
