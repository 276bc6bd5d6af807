"""A session of ssh(1) to a host, at whose end the agent runs: its input and output are the channel."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

from elephan import units
from elephan.errors import ElephanError, InputError, RunError
from elephan.hosts import boot
from elephan.hosts.book import Host
from elephan.hosts.ssh_faults import fault_of

CONNECT_S = 10
"""Time for a connection to a host, s."""

ALIVE_S, ALIVE_TRIES = 3, 4
"""ssh(1) asks a silent host so often, s, and gives it up after so many silent answers."""

OPTIONS = {
    # No question can be answered: elephan may run without a terminal, and frames are on the input.
    "BatchMode": "yes",
    "ConnectTimeout": str(CONNECT_S),
    "ServerAliveInterval": str(ALIVE_S),
    "ServerAliveCountMax": str(ALIVE_TRIES),
    "LogLevel": "ERROR",
    # A master of the user's is used; this session never becomes one, which would stay for others' sake.
    "ControlMaster": "no",
    "ClearAllForwardings": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "PermitLocalCommand": "no",
    "RequestTTY": "no",
    "RemoteCommand": "none",
    "EscapeChar": "none",
}
"""Of ssh_config(5), over the user's own."""

SAID_MOST = 64 * 1024
"""Bytes of a host's stderr that are kept, and of its stdout that may stand before the first line of ours."""

BOOT_S = 120.0
"""Time for each of the first steps on a host, s: a piece of the agent's file (`boot.PIECE`) takes it at 18 kbit/s."""


class Session:
    """One session, from the first steps to its end. `output` and `input` carry frames once it is made."""

    def __init__(
        self, host: Host, agents: Mapping[str, boot.AgentFile], as_user: bool = False, install: bool = False
    ) -> None:
        """Start ssh(1) and the agent, which is sent first where the host has no such file, gains no rights by sudo
        where `as_user` is set, and is installed for all users where `install` is. Raises `InputError` and `RunError`
        with what to do.
        """
        self.host = host
        self.machine = ""
        """Machine type, as the host names it."""
        self.server_address: str | None = None
        """Address at which this session reached the host; None where ssh(1) does not say, as through a command."""
        self.client_address: str | None = None
        """Address from which the host sees this session come; None as above."""
        self.deployed = False
        """True if the agent's file was sent."""
        self.sent_bytes = 0
        """Bytes of the agent's file that were sent, packed."""
        self.sent_s = 0.0
        """Time that they took, until the host had checked them, s."""
        self.removed = 0
        """Files of older agents that were removed."""
        self._step = "its login shell did not answer"
        """Step that is waited for, as it would be said if it never ended."""
        self._step_began_s = time.monotonic()
        self._is_late = False
        """True if it has taken too long."""
        self._has_begun = threading.Event()
        """Set once all steps are done, or one has failed."""
        self._agents = tuple(agents)
        self._said = bytearray()
        words = [
            "ssh",
            *(word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")),
            "--",
            host.destination,
            boot.command(agents, as_user, install),
        ]
        try:
            # In a session of its own: a terminal's Ctrl-C is for elephan, which ends the agent in order.
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise InputError("hosts need ssh (Debian package openssh-client)") from None
        assert self._process.stdin and self._process.stdout and self._process.stderr, "pipes were asked for"
        self.input: IO[bytes] = self._process.stdin
        self.output: IO[bytes] = self._process.stdout
        self._listener = threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True)
        self._listener.start()
        threading.Thread(target=self._watch, name=f"elephan-{host.name}-boot", daemon=True).start()
        try:
            self._boot(agents)
        except BaseException:
            self.close(0)
            raise
        finally:
            self._has_begun.set()

    @property
    def pid(self) -> int:
        """The process id of ssh(1)."""
        return self._process.pid

    def _boot(self, agents: Mapping[str, boot.AgentFile]) -> None:
        passed = 0
        content, sent, sent_since_s = b"", 0, 0.0
        while True:
            line = self.output.readline(SAID_MOST)
            passed += len(line)
            if not line:
                raise self.fault()
            if passed > SAID_MOST:
                who = f"{self.host.name} ({self.host.destination})"
                raise RunError(f"{who}: its shell prints more than {SAID_MOST} bytes at its start (.bashrc?)")
            match line.decode(errors="replace").split():
                case [boot.MARK, "machine", machine, *connection]:
                    self.machine = machine
                    # SSH_CONNECTION: client's address and port, server's address and port (ssh(1)).
                    if len(connection) == 4:
                        self.client_address, self.server_address = (connection[n].partition("%")[0] for n in (0, 2))
                case [boot.MARK, "removed", count]:
                    self.removed = int(count) if count.isdecimal() else 0
                case [boot.MARK, "send", program, *_]:
                    self.deployed = True
                    sent_since_s = time.monotonic()
                    content = self._packed(agents, program)
                    sent = self._send(content, 0)
                case [boot.MARK, "more"]:
                    sent = self._send(content, sent)
                case [boot.MARK, "start"]:
                    if self.deployed:
                        self.sent_bytes, self.sent_s = len(content), time.monotonic() - sent_since_s
                    return
                case _:
                    continue

    def _packed(self, agents: Mapping[str, boot.AgentFile], program: str) -> bytes:
        wanted = next(name for name, spelled in boot.SPELLINGS.items() if self.machine in spelled)
        try:
            return boot.packed(agents[wanted], program)
        except OSError as error:
            raise RunError(f"{agents[wanted].path}: {error.strerror}") from error

    def _send(self, content: bytes, first: int) -> int:
        """Send the piece that begins at byte `first`, none at the end; return the next one's first byte."""
        piece = content[first : first + boot.PIECE]
        if piece:
            came = f" after {units.size(first)}" if first else ""
            of = f"the agent's file ({units.size(len(content))})"
            self._step = f"{units.size(len(piece))} of {of} did not arrive{came}"
        self._step_began_s = time.monotonic()
        try:
            self.input.write(b"%d\n" % len(piece) + piece)
            self.input.flush()
        except BrokenPipeError:
            raise self.fault() from None
        return first + len(piece)

    def _watch(self) -> None:
        """End a session of which a step takes too long."""
        while (left_s := self._step_began_s + BOOT_S - time.monotonic()) > 0:
            if self._has_begun.wait(left_s):
                return
        self._is_late = True
        self._process.kill()

    def fault(self) -> ElephanError:
        """Return the error of a session that has ended, or is to end; it is ended."""
        with suppress(OSError):
            self.input.close()
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(1.0)
        if code is None or code < 0:
            self.close(0)
            if self._is_late:
                who = f"{self.host.name} ({self.host.destination})"
                return RunError(f"{who}: {self._step} within {BOOT_S:g} s: the connection to it is slow, or it hangs")
            return RunError(f"{self.host.name} ({self.host.destination}): ssh was ended, or did not end in time")
        self._listener.join(1.0)
        return fault_of(self.host, code, self.said, self.machine, self._agents)

    @property
    def said(self) -> str:
        """The host's and ssh's words on stderr so far."""
        return bytes(self._said).decode(errors="replace")

    def _listen(self, stderr: IO[bytes]) -> None:
        # Read on when there is too much of it: a full pipe would stop the host.
        while chunk := stderr.read1(4096):  # type: ignore[attr-defined]  # a BufferedReader
            if len(self._said) < SAID_MOST:
                self._said += chunk
        stderr.close()

    def is_alive(self) -> bool:
        """Return True if ssh(1) runs."""
        return self._process.poll() is None

    def close(self, patience_s: float = 3.0) -> None:
        """End it: the agent ends with its input. ssh(1) is killed when it has not ended after `patience_s`."""
        with suppress(OSError):
            self.input.close()
        deadline_s = time.monotonic() + patience_s
        while self._process.poll() is None and time.monotonic() < deadline_s:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.05)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._listener.join(1.0)
        with suppress(OSError):
            self.output.close()
