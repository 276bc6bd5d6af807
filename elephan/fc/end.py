"""The port that a command is: its way to a fabric, its login, its logout."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from elephan.core import native
from elephan.errors import InputError, RunError

PRIORITY = 3
"""Priority of FCoE's and FIP's tags (802.1p)."""
WaitForTermination = Callable[[float | None], bool]
"""Wait for signals that end a program (elephan.signals)."""


@dataclass(frozen=True)
class End:
    """A port's way to its fabric."""

    interface: str | None = None
    """Ethernet interface."""
    socket: tuple[str, str] | None = None
    """UNIX datagram socket: the port's path and the gateway's."""
    vlan: int | None = None
    """Virtual LAN of FCoE and FIP; None: frames without a tag."""
    name: int | None = None
    """World wide name; None: made of the interface's address."""
    within_ns: int = 10 * 10**9
    """Longest wait for the fabric, for another port and for its login, ns."""

    @staticmethod
    def of(interface: str | None, socket: str | None, vlan: int | None, name: str | None, within_ns: int) -> End:
        """Return the end that options name. Raises `InputError`."""
        if (interface is None) == (socket is None):
            raise InputError("--interface NAME or --socket LOCAL:REMOTE: one of the two is needed")
        pair = None
        if socket is not None:
            local, colon, remote = socket.partition(":")
            if not (local and colon and remote) or ":" in remote:
                raise InputError(f"--socket {socket}: LOCAL:REMOTE is needed, the gateway's `remote` and its `local`")
            if name is None:
                raise InputError("--name: a port on a socket needs a world wide name, such as 20:00:52:54:00:00:00:01")
            if vlan is not None:
                raise InputError("--vlan: frames on a socket have no tag")
            pair = (local, remote)
        if vlan is not None and not 1 <= vlan <= 4094:
            raise InputError(f"--vlan {vlan}: 1 to 4094 is needed")
        return End(interface, pair, vlan, None if name is None else wwn("--name", name), within_ns)


def wwn(option: str, text: str) -> int:
    """Return a world wide name as a number. Raises `InputError`."""
    try:
        return native.parse_wwn(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error


@contextmanager
def opened(end: End, wait_for_termination: WaitForTermination, say: Callable[[str], None]) -> Iterator[native.FcPort]:
    """Log a port in to its fabric, and log it out at the end.

    Raises `RunError` where there is no way or no fabric, `native.Stopped` after a signal.
    """
    tag = None if end.vlan is None else PRIORITY << 13 | end.vlan
    try:
        port = native.FcPort(end.interface, end.socket, tag, end.name, wait_for_termination)
    except OSError as error:
        raise RunError(f"the port cannot start: {error}") from error
    try:
        with as_run_error():
            port.log_in(end.within_ns)
        yield port
    finally:
        port.log_out()
        for line in port.take_log():
            say(line)


@contextmanager
def as_run_error() -> Iterator[None]:
    """Turn the core's errors into `RunError`; `native.Stopped`, after a signal, stays as it is."""
    try:
        yield
    except OSError as error:
        raise RunError(str(error)) from error


@dataclass(frozen=True)
class Destination:
    """Another port, by its address or by its name."""

    text: str
    """As the user names it."""
    address: int | None
    name: int | None

    @staticmethod
    def of(text: str) -> Destination:
        """Return the port that a text means. Raises `InputError`."""
        if re.fullmatch("(0x)?[0-9a-fA-F]{6}", text):
            return Destination(text, int(text, 16), None)
        try:
            return Destination(text, None, native.parse_wwn(text))
        except ValueError:
            expected = "an address such as 020100 or a world wide name such as 20:00:00:1b:32:0a:0b:0c is needed"
            raise InputError(f"{text}: {expected}") from None


def found(port: native.FcPort, to: Destination, end: End) -> tuple[int, str]:
    """Return address and name of another port, logged in with it.

    A name is asked for until the name server knows it, as long as the end waits. Raises `InputError` for a name that it
    does not know, `RunError` for a port that refuses.
    """
    text = to.text
    with as_run_error():
        address = to.address
        if to.name is not None:
            name = to.name
            address = port.find(name, end.within_ns)
            for _ in range(end.within_ns // LOOK_NS):
                if address is not None:
                    break
                port.serve(LOOK_NS)
                address = port.find(name, end.within_ns)
        if address is None:
            shown = ", ".join(shown or address for address, shown, _, _ in port.ports(end.within_ns))
            raise InputError(f"{text}: the name server does not know the port; it shows {shown}")
        if f"{address:06x}" == port.id():
            raise InputError(f"{text}: that is this port itself")
        return address, port.log_in_to(address, end.within_ns)


LOOK_NS = 200 * 10**6
"""Time between two questions for a name, ns."""
