"""The two ends of a program: a command line and files for the machine of each, which may be two machines.

Nothing here touches a machine: `elephan.backends.programs.files` writes an end where it is to run.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from elephan.run_spec.types import ProgramWorkloadSpec
from elephan.scenario.program import files_of


def bracketed(address: str) -> str:
    """Return an address as it stands in a URL: one of IPv6 in brackets (RFC 3986, 3.2.2)."""
    return f"[{address}]" if ipaddress.ip_address(address).version == 6 else address


@dataclass(frozen=True)
class Place:
    """The machine of one end, as a program on it sees it."""

    address: str
    """Its own, to listen on and to connect from."""
    folder: str
    """Folder for the end's files, which its server may have to pass without being root."""
    disk: str
    """Folder for data that is to be on a disk."""
    command: Callable[[str], str]
    """Full path of a command there. Raises `FileNotFoundError`."""
    outside: str | None = None
    """Address at which the other end knows it, where that is another one than its own (NAT)."""
    user: tuple[int, int] = (0, 0)
    """Numbers of user and group that the end has: root's, or those of the only user that it knows."""
    data_ports: tuple[int, int] = (40_000, 40_999)
    """Ports for FTP's data, where its server is. Between namespaces of a flow's own all ports are free."""

    @property
    def reached(self) -> str:
        """Return the address at which the other end reaches it."""
        return self.outside or self.address

    @property
    def is_ipv6(self) -> bool:
        """Return True for an address of IPv6."""
        return ipaddress.ip_address(self.address).version == 6

    @property
    def in_url(self) -> str:
        """Return the address at which the other end reaches it, as it stands before a port or a path."""
        return bracketed(self.reached)

    @property
    def is_root(self) -> bool:
        """Return True if the end may change its user."""
        return self.user[0] == 0


@dataclass(frozen=True)
class File:
    """A file in an end's folder."""

    name: str
    text: str
    mode: int = 0o600


@dataclass(frozen=True)
class Data:
    """Files to send or to receive: `file0`, `file1`, ... in one folder."""

    folder: str
    sizes: tuple[int, ...]
    """Bytes of each file."""
    kind: Literal["holes", "random", "devices", "tmpfs", "disk"]
    """To send: holes in files, or random data on the disk. To receive: devices that discard, in a mount namespace of
    the end's own; a tmpfs there, for programs that cannot write to a device; or a folder on the disk."""

    @property
    def names(self) -> list[str]:
        """Names of the files in the folder."""
        return [f"file{number}" for number in range(len(self.sizes))]

    @property
    def paths(self) -> list[str]:
        """Full names of the files."""
        return [f"{self.folder}/{name}" for name in self.names]

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(self.sizes)


@dataclass(frozen=True)
class Apart:
    """Everything that an end has to itself, in a mount namespace of its own: users that lie over its machine's, too."""

    receives: Data | None = None
    """Data that stays in memory has its place there."""
    own: str = ""
    """An empty folder that it needs under /run."""

    @property
    def in_memory(self) -> Data | None:
        """Return the data for which a place in memory is made; None for none."""
        return self.receives if self.receives is not None and self.receives.kind in ("devices", "tmpfs") else None


@dataclass(frozen=True)
class End:
    """A server or a client, ready to be written to its machine and started there."""

    words: tuple[str, ...]
    """Command line."""
    files: tuple[File, ...] = ()
    data: Data | None = None
    """Files that it sends or receives."""
    apart: Apart | None = None
    """None: it needs nothing of the kind."""


def to_send(workload: ProgramWorkloadSpec, place: Place) -> Data:
    """Return the files that a workload sends."""
    if workload.get("source") == "disk":
        return Data(f"{place.disk}/source", _sizes(workload), "random")
    return Data(f"{place.folder}/source", _sizes(workload), "holes")


def to_receive(workload: ProgramWorkloadSpec, place: Place, *, devices: bool = True) -> Data:
    """Return the files that a workload receives; without `devices` the program cannot write to one."""
    if workload.get("sink") == "disk":
        return Data(f"{place.disk}/far/sink", _sizes(workload), "disk")
    return Data(f"{place.folder}/far/sink", _sizes(workload), "devices" if devices else "tmpfs")


def _sizes(workload: ProgramWorkloadSpec) -> tuple[int, ...]:
    assert workload["bytes"] is not None, "files have a size"
    files = files_of(workload)
    size, rest = divmod(workload["bytes"], files)
    return tuple(size + (number < rest) for number in range(files))


_APART = """\
set -e
for file in passwd shadow group; do
    if [ -e "$1/$file" ]; then mount --bind "$1/$file" "/etc/$file"; fi
done
case "$2" in
    devices) mount -t tmpfs -o mode=777 elephan "$3"; tar -xf "$1/devices.tar" -C "$3" ;;
    tmpfs) mount -t tmpfs -o mode=777,size=100% elephan "$3" ;;
esac
if [ -n "$4" ]; then mount -t tmpfs -o mode=755 elephan /run; mkdir "$4"; fi
shift 4
exec "$@"
"""
"""In a mount namespace of its own: users, the place of received data, and a folder under /run."""


def started(end: End, place: Place) -> tuple[str, ...]:
    """Return the command line of an end, in a mount namespace of its own where it needs one."""
    if end.apart is None:
        return end.words
    data = end.apart.in_memory
    kind, folder = (data.kind, data.folder) if data else ("", "")
    shell = [place.command("unshare"), "--mount", place.command("sh"), "-c", _APART, "sh"]
    return (*shell, place.folder, kind, folder, end.apart.own, *end.words)


def users(place: Place, home: str) -> tuple[File, ...]:
    """Return the users that a server knows: other users of its machine, and a locked root, do not matter.

    Without rights "root" is the name of the user that it runs as.
    """
    known = {"root": place.user, "nobody": (65534, 65534), "sshd": (65533, 65534)}
    shells = {"root": "/bin/sh"}
    lines = [
        f"{name}:x:{user}:{group}::{home}:{shells.get(name, '/usr/sbin/nologin')}"
        for name, (user, group) in known.items()
    ]
    return (
        File("passwd", "\n".join(lines) + "\n", 0o644),
        File("shadow", "".join(f"{name}:*:20000::::::\n" for name in known)),
        File("group", f"root:x:{place.user[1]}:\nnogroup:x:65534:\n", 0o644),
    )
