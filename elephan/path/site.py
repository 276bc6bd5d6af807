"""The two namespaces of a path: made, found, and removed. Nothing outside of them is touched.

Everything carries elephan's mark and the run's id: namespaces `elephan-ID-a` and `elephan-ID-b`, and a lock file ID in
/run/elephan that the run holds for as long as it lives. The lock tells a living run from one that was killed: the
kernel lets go of it with the process, and with the process go the TUN devices and the threads between them.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from elephan.errors import InputError, RunError

MARK = "elephan"
LOCKS = Path("/run/elephan")
NAMESPACES = Path("/run/netns")
"""Where ip-netns(8) keeps them."""
DEVICE = "path"
ADDRESSES = ("198.18.0.1", "198.18.0.2")
"""Of 198.18.0.0/15, set apart for tests of network devices (RFC 2544, C.2.2); seen in the namespaces only."""
QUEUE_PACKETS = 20_000
"""Packets that may wait in the device for the emulator: 0.24 s at 1 Gbit/s. What overflows is the emulator's own."""
PATIENCE_S = 2.0
"""How long a program that is left in a namespace has to end before it is killed, s."""


def missing() -> str | None:
    """Return what this machine or user lacks for a path, as one line; None when nothing."""
    if os.geteuid() != 0:
        return "needs root, to make network namespaces and TUN devices"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun (modprobe tun)"
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"needs /dev/net/tun, which cannot be opened: {error.strerror}"
    try:
        subprocess.run(["ip", "-V"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "needs the command ip (Debian package iproute2)"
    return None


def ip(*arguments: str) -> str:
    """Run ip(8). Raises `RunError` with its words."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"ip {' '.join(arguments)}: {' '.join(done.stderr.split())}")
    return done.stdout


class Site:
    """Both namespaces of one run, from `make` to `remove`."""

    def __init__(self) -> None:
        """Choose an id and hold its lock; nothing else is made yet."""
        LOCKS.mkdir(mode=0o755, exist_ok=True)
        self.id = secrets.token_hex(3)
        self._lock = os.open(LOCKS / self.id, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @property
    def names(self) -> tuple[str, str]:
        """The namespaces: the sender's, the receiver's."""
        return f"{MARK}-{self.id}-a", f"{MARK}-{self.id}-b"

    @property
    def files(self) -> tuple[str, str]:
        """Their files."""
        near, far = self.names
        return str(NAMESPACES / near), str(NAMESPACES / far)

    def make(self) -> None:
        """Make the namespaces, without devices but loopback."""
        for name in self.names:
            ip("netns", "add", name)
            # The kernel's own IPv6 packets (neighbours, routers, groups) would take numbers in a list of losses.
            quiet = "for c in all default; do echo 1 > /proc/sys/net/ipv6/conf/$c/disable_ipv6; done 2>/dev/null; true"
            ip("netns", "exec", name, "sh", "-c", quiet)
            ip("-n", name, "link", "set", "lo", "up")

    def configure(self, mtu_bytes: int) -> None:
        """Give the devices address, MTU and queue, and bring them up."""
        for name, own, other in zip(self.names, ADDRESSES, reversed(ADDRESSES), strict=True):
            ip("-n", name, "address", "add", own, "peer", other, "dev", DEVICE)
            size = ("mtu", str(mtu_bytes), "txqueuelen", str(QUEUE_PACKETS))
            ip("-n", name, "link", "set", DEVICE, *size, "up")

    def counters(self) -> list[dict[str, Any]]:
        """Return both devices' counters, as ip(8) names them."""
        texts = [ip("-n", name, "-j", "-s", "link", "show", DEVICE) for name in self.names]
        return [json.loads(text)[0]["stats64"] for text in texts]

    def remove(self) -> None:
        """End what runs in the namespaces, remove them, and let go of the id."""
        remove(self.id)
        os.close(self._lock)


def processes(namespace: str) -> list[int]:
    """Return the processes in a namespace."""
    done = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False)
    return [int(pid) for pid in done.stdout.split()]


def remove(run: str) -> int:
    """Remove a run's namespaces, with the programs left in them, and its lock file; return how many namespaces."""
    names = [name for name in (f"{MARK}-{run}-a", f"{MARK}-{run}-b") if (NAMESPACES / name).exists()]
    for name in names:
        end(name)
        ip("netns", "delete", name)
    (LOCKS / run).unlink(missing_ok=True)
    return len(names)


def end(namespace: str) -> None:
    """Ask the programs in a namespace to end, and kill those that do not."""
    deadline_s = time.monotonic() + PATIENCE_S
    wanted = signal.SIGTERM
    while left := [pid for pid in processes(namespace) if pid != os.getpid()]:
        for pid in left:
            try:
                os.kill(pid, wanted)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline_s:
            if wanted == signal.SIGKILL:
                raise RunError(f"{namespace}: processes {left} cannot be ended")
            wanted, deadline_s = signal.SIGKILL, time.monotonic() + PATIENCE_S
        time.sleep(0.05)


def clean() -> tuple[int, int]:
    """Remove what runs that were killed have left; return how many those were, and how many live."""
    problem = missing()
    if problem is not None:
        raise InputError(f"elephan path {problem}")
    found = {path.name for path in LOCKS.glob("*")} if LOCKS.is_dir() else set()
    if NAMESPACES.is_dir():
        matches = (re.fullmatch(rf"{MARK}-([0-9a-f]+)-[ab]", path.name) for path in NAMESPACES.iterdir())
        found |= {match[1] for match in matches if match}
    cleaned = living = 0
    for run in sorted(found):
        if _lives(run):
            living += 1
        else:
            remove(run)
            cleaned += 1
    return cleaned, living


def _lives(run: str) -> bool:
    try:
        lock = os.open(LOCKS / run, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
