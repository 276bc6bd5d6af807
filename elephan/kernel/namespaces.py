"""Network namespaces: whether this one is the host's, and the default congestion control of each other one."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elephan.errors import InputError
from elephan.network_namespace import within

DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
"""Congestion controls that a program without CAP_NET_ADMIN may choose. All three files are those of the reader's
network namespace."""

FIRST_ONLY = Path("/proc/sys/net/core/netdev_max_backlog")
"""A setting of the whole machine, which Linux shows in its first network namespace alone."""

NAMED = Path("/run/netns")
"""Folder of the namespaces that ip-netns(8) names."""

NETNS_COOKIE = 71
"""SO_NETNS_COOKIE (Linux 5.14): a number of a namespace that none after it gets again, as its inode may be."""


@dataclass(frozen=True)
class Elsewhere:
    """Another namespace whose default is one of elephan's."""

    namespace: str
    """Its name for `ip netns`, or a process in it."""
    default: str


def why_hosts() -> str:
    """Return the reason to take this for the host's own network namespace, in words; "" if it is not.

    The host's is the kernel's first one, and that of process 1: in a container the container's, which is the host as
    far as its user is concerned. Where process 1 cannot be looked at, it is taken for the host's.
    """
    if FIRST_ONLY.exists():
        return "the machine's first network namespace"
    try:
        own, first = os.stat("/proc/self/ns/net"), os.stat("/proc/1/ns/net")
    except OSError:
        # Needs ptrace's rights over process 1. The inodes under net/ belong to the namespace, and everyone may look.
        try:
            own, first = os.stat("/proc/self/net/dev"), os.stat("/proc/1/net/dev")
        except OSError as error:
            return f"perhaps the network namespace of process 1, which cannot be looked at ({error.strerror})"
    same = (own.st_dev, own.st_ino) == (first.st_dev, first.st_ino)
    return "the network namespace of process 1" if same else ""


def identity() -> str:
    """Return a key that tells this namespace from every other one since the machine started."""
    with socket.socket() as some:
        try:
            cookie = some.getsockopt(socket.SOL_SOCKET, NETNS_COOKIE, 8)
            return f"cookie-{int.from_bytes(cookie, 'little')}"
        except OSError:
            # Before 5.14. An inode may come again; elephan/kernel/saved_default.py holds an entry against the default
            # that is.
            return f"inode-{os.stat('/proc/self/ns/net').st_ino}"


def elsewhere(ours: Callable[[str], bool]) -> list[Elsewhere]:
    """Return the other namespaces with a default that `ours` holds for; those that cannot be entered are left out."""
    here = os.stat("/proc/self/ns/net").st_ino
    seen = {here}
    found = []
    for label, file in _files():
        try:
            inode = os.stat(file).st_ino
            if inode in seen:
                continue
            seen.add(inode)
            default = within(file, lambda: DEFAULT.read_text().strip())
        except OSError:
            continue
        if ours(default):
            found.append(Elsewhere(label, default))
    return found


def _files() -> Iterator[tuple[str, Path]]:
    if NAMED.is_dir():
        for file in sorted(NAMED.iterdir()):
            yield file.name, file
    for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            name = (entry / "comm").read_text().strip()
        except OSError:
            continue
        yield f"that of process {entry.name} ({name})", entry / "ns/net"


def current() -> str:
    """Return this namespace's default."""
    return DEFAULT.read_text().strip()


def available() -> list[str]:
    """Return the kernel's congestion controls, ours and its own."""
    return AVAILABLE.read_text().split()


def allowed() -> list[str]:
    """Return what every program may choose."""
    return ALLOWED.read_text().split()


def make_default(name: str) -> None:
    """Make `name` the default of this namespace. Raises `InputError`."""
    if name not in allowed() and not FIRST_ONLY.exists():
        # The kernel refuses it as well, but then (6.18) has counted a user that never goes: it would stay for good.
        raise InputError(
            f"{name} is not for every program (one of elephan's: it was loaded with --restricted): "
            "only the machine's first network namespace takes such a one as its default"
        )
    try:
        DEFAULT.write_text(name)
    except OSError as error:
        needs = "" if os.geteuid() == 0 else " (needs root)"
        raise InputError(f"cannot set net.ipv4.tcp_congestion_control to {name}: {error.strerror}{needs}") from error
