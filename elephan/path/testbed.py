"""The hosts of a path: one network namespace each, made, found, and removed. Nothing outside of them is touched.

Everything carries elephan's mark and the run's id: namespaces `elephan-ID-0`, `elephan-ID-1`, ..., and a lock file ID
(elephan/run_lock.py). With the process go the lock, the TUN devices and the threads between them.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from elephan import run_lock
from elephan.congestion_control.verify import CAPABILITIES, effective_capabilities
from elephan.errors import InputError, RunError
from elephan.network_namespace import within
from elephan.run_spec.route import IPV6_MTU_LEAST
from elephan.run_spec.types import RunSpec

MARK = "elephan"
NAMESPACES = Path("/run/netns")
"""Folder of ip-netns(8)."""
DEVICE = "path"
FOLDERS = Path("/tmp")
"""Parent of a run's folder, elephan-path-ID: files for the programs of its traffic, the socket for commands. An agent
on this machine removes what is called elephan-run- and is not of a living run of its own."""
DISK_FOLDERS = Path("/var/tmp")
"""The same for files that are to be on a disk: /tmp is often memory, and /var/tmp is not (FHS 3.0, 5.15)."""
NETWORK = "198.18.0.0/15"
"""Set apart for tests of network devices (RFC 2544, C.2.2); seen in the namespaces only."""
IPV6_NETWORK = "2001:2::/48"
"""The same of IPv6 (RFC 5180, 8)."""
ADDRESSES = ("198.18.0.1", "198.18.0.2")
"""Of a path with two ends and nothing else."""
MOST_HOSTS = 64
"""Namespaces of one run."""
QUEUE_PACKETS = 20_000
"""Packets that may wait in the device for the emulator: 0.24 s at 1 Gbit/s. What overflows is the emulator's own."""
IPV6_SYSCTLS = Path("/proc/sys/net/ipv6/conf")
PATIENCE_S = 2.0
"""Time for a program that is left in a namespace to end before it is killed, s."""


def address(number: int) -> str:
    """Return the address of host `number` of a run."""
    return f"198.18.{1 + number // 250}.{1 + number % 250}"


def ipv6_of(address: str) -> str:
    """Return the address in IPV6_NETWORK with the number that `address` has in NETWORK: 2001:2::1 for 198.18.0.1."""
    number = int(ipaddress.ip_address(address)) - int(ipaddress.ip_network(NETWORK)[0])
    return str(ipaddress.ip_network(IPV6_NETWORK)[number])


def router_address(node: int) -> str:
    """Return the address of the router at node `node` of a specification: the upper half of NETWORK."""
    return f"198.19.{node // 250}.{1 + node % 250}"


def routers(spec: RunSpec) -> list[dict[str, Any]]:
    """Return the routers of a network as crates/kernel/src/plan.rs has them.

    Any node may be one, where packets pass it, but for the adapter of a host that takes time for packets.
    """
    nodes = spec["nodes"]
    return [
        {"node": number, "address": router_address(number), "ipv6_address": ipv6_of(router_address(number))}
        for number, name in enumerate(nodes)
        if f"{name}.host" not in nodes
    ]


def routers_between(spec: RunSpec) -> list[tuple[str, str]]:
    """Return name and address of the routers that the first flow's data passes, in order."""
    known = {router["node"] for router in routers(spec)}
    passed = [spec["links"][link]["to"] for link in spec["flows"][0]["route"][:-1]]
    return [(spec["nodes"][node], router_address(node)) for node in passed if node in known]


@dataclass(frozen=True)
class Host:
    """One namespace and its device."""

    address: str
    node: int = 0
    """Node of the specification at which it stands."""
    mtu_bytes: int = 1500
    sysctls: Mapping[str, str] = field(default_factory=dict)
    """Under net.ipv4, of this namespace only."""
    route: str = ""
    """Attributes of its routes to the others, as ip-route(8) writes them."""

    @property
    def ipv6_address(self) -> str:
        """Return its IPv6 address."""
        return ipv6_of(self.address)

    @property
    def has_ipv6(self) -> bool:
        """Return True if the kernel gives its device IPv6 addresses: it may be off, and needs an MTU."""
        return self.mtu_bytes >= IPV6_MTU_LEAST and IPV6_SYSCTLS.exists()

    def ipv6_lines(self) -> list[str]:
        """Return the lines of ip(8) that give its device IPv6 address and route."""
        return [
            f"address add {self.ipv6_address}/128 dev {DEVICE} nodad",
            f"route add {IPV6_NETWORK} dev {DEVICE} src {self.ipv6_address} {self.route}".rstrip(),
        ]


def missing() -> str | None:
    """Return what this machine or user lacks for a path, as one line; None when nothing."""
    if os.geteuid() != 0:
        return "needs root, to make network namespaces and TUN devices"
    lacking = [name for name, number in CAPABILITIES.items() if not effective_capabilities() >> number & 1]
    if lacking:
        # As in a container, where root is not all that it is called.
        return f"needs {', '.join(lacking)}, to make network namespaces and TUN devices"
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


def ip(*arguments: str, lines: Sequence[str] = ()) -> str:
    """Run ip(8), with `lines` for its -batch. Raises `RunError` with its words."""
    batch = ["-batch", "-"] if lines else []
    given = "".join(f"{line}\n" for line in lines)
    # In a session of its own: a terminal's Ctrl-C is for elephan, which removes what is half made, by this.
    done = subprocess.run(
        ["ip", *arguments, *batch], input=given, capture_output=True, text=True, check=False, start_new_session=True
    )
    if done.returncode != 0:
        what = " ".join([*arguments, *lines[:1]])
        raise RunError(f"ip {what}: {' '.join(done.stderr.split())}")
    return done.stdout


class Site:
    """The namespaces of one run, from `make` to `remove`."""

    def __init__(self, hosts: Sequence[Host], about: Mapping[str, Any] | None = None) -> None:
        """Choose an id and hold its lock, which contains `about`; nothing else is made yet."""
        if not 2 <= len(hosts) <= MOST_HOSTS:
            raise InputError(f"a path has 2 to {MOST_HOSTS} hosts on one machine, and this is to have {len(hosts)}")
        self.hosts = tuple(hosts)
        self.id, self._lock = run_lock.acquire()
        self._facts: dict[str, Any] = {"pid": os.getpid(), "since_s": time.time()}
        try:
            ipv6_addresses = [host.ipv6_address if host.has_ipv6 else None for host in hosts]
            addresses = {"addresses": [host.address for host in hosts], "ipv6_addresses": ipv6_addresses}
            self.note_facts({**addresses, **(about or {})})
        except RunError:
            self.remove()
            raise

    @property
    def names(self) -> tuple[str, ...]:
        """The namespaces."""
        return tuple(f"{self.prefix}{number}" for number in range(len(self.hosts)))

    @property
    def prefix(self) -> str:
        """Beginning of the names of all its namespaces, those of hosts and others."""
        return f"{MARK}-{self.id}-"

    @property
    def files(self) -> tuple[str, ...]:
        """Their files."""
        return tuple(str(NAMESPACES / name) for name in self.names)

    def note_facts(self, more: Mapping[str, Any]) -> None:
        """Add to the lock file's description of the run. Raises `RunError`."""
        self._facts |= more
        run_lock.write(self.id, self._lock, self._facts)

    def plan(self) -> list[dict[str, Any]]:
        """Return the hosts as crates/kernel/src/plan.rs has them."""
        return [
            {
                "namespace": file,
                "device": DEVICE,
                "address": host.address,
                "ipv6_address": host.ipv6_address,
                "node": host.node,
                "mtu_bytes": host.mtu_bytes,
            }
            for host, file in zip(self.hosts, self.files, strict=True)
        ]

    def make(self) -> None:
        """Make the namespaces, without devices but loopback, and set their sysctls. Raises `RunError`."""
        ip(lines=[f"netns add {name}" for name in self.names])
        for number, host in enumerate(self.hosts):
            self._within(number, lambda host=host: _set_up(host))  # type: ignore[misc]  # mypy infers no default

    def configure(self) -> None:
        """Give the devices address, MTU, queue and the route to the others, and bring them up."""
        for number, (host, name) in enumerate(zip(self.hosts, self.names, strict=True)):
            lines = [
                "link set lo up",
                f"address add {host.address}/32 dev {DEVICE}",
                f"link set {DEVICE} mtu {host.mtu_bytes} txqueuelen {QUEUE_PACKETS} up",
                f"route add {NETWORK} dev {DEVICE} src {host.address} {host.route}".rstrip(),
            ]
            ip("-n", name, lines=[*lines, *(host.ipv6_lines() if host.has_ipv6 else ())])
            self._within(number, lambda: _generate_addresses(True))

    def set_mtus(self, mtus_bytes: Sequence[int]) -> None:
        """Give each host's device an MTU. Raises `RunError`."""
        for number, (host, mtu_bytes) in enumerate(zip(self.hosts, mtus_bytes, strict=True)):
            if host.mtu_bytes != mtu_bytes:
                name, changed = self.names[number], replace(host, mtu_bytes=mtu_bytes)
                # Below the least MTU the kernel has taken IPv6 away from the device.
                again = changed.ipv6_lines() if changed.has_ipv6 and not host.has_ipv6 else []
                self._within(number, lambda: _generate_addresses(False))
                try:
                    ip("-n", name, lines=[f"link set {DEVICE} mtu {mtu_bytes}", *again])
                finally:
                    self._within(number, lambda: _generate_addresses(True))
        self.hosts = tuple(replace(host, mtu_bytes=n) for host, n in zip(self.hosts, mtus_bytes, strict=True))

    def set(self, host: int, sysctl: str, value: str) -> None:
        """Set one more sysctl under net.ipv4 of a host. Raises `RunError`."""
        self._within(host, lambda: _set(sysctl, value))

    def _within(self, host: int, act: Callable[[], None]) -> None:
        try:
            within(Path(self.files[host]), act)
        except OSError as error:
            raise RunError(f"namespace {self.names[host]}: {error.strerror or error}") from error

    def folder(self, parent: Path = FOLDERS) -> Path:
        """Return the run's folder in `parent`, FOLDERS or DISK_FOLDERS, which goes with it; made when first asked for.

        Raises `RunError`.
        """
        path = folder_of(self.id, parent)
        try:
            # No other user's, whatever lies there: the name is no secret. Servers that are not root pass through it.
            path.mkdir(mode=0o700)
            path.chmod(0o711)
        except FileExistsError:
            if not _is_ours(path):
                raise RunError(f"{path} is there already and is not ours") from None
        except OSError as error:
            raise RunError(f"{path}: {error.strerror}") from error
        return path

    def counters(self) -> list[dict[str, Any]]:
        """Return the devices' counters, as ip(8) names them."""
        return [counters_of(name) for name in self.names]

    def remove(self) -> None:
        """End the processes in the namespaces, remove them, and release the id. Raises `RunError`."""
        try:
            remove(self.id)
        finally:
            os.close(self._lock)


def counters_of(namespace: str) -> dict[str, Any]:
    """Return the counters of the device in a namespace, as ip(8) names them."""
    found: dict[str, Any] = json.loads(ip("-n", namespace, "-j", "-s", "link", "show", DEVICE))[0]["stats64"]
    return found


def _set_up(host: Host) -> None:
    """Set a namespace's sysctls, as seen from within."""
    _generate_addresses(False)
    for name, value in host.sysctls.items():
        _set(name, value)


def _generate_addresses(wanted: bool) -> None:
    """Let devices that come into this namespace have link-local addresses of their own, or not.

    Without one the kernel asks for no routers and reports no groups on a device: its own packets would take numbers in
    a list of losses. Neighbours it does not look for there (IFF_NOARP). A user's devices, to networks behind an end,
    need one, since a router asks for neighbours from it.
    """
    if IPV6_SYSCTLS.exists():
        (IPV6_SYSCTLS / "default" / "addr_gen_mode").write_text("0" if wanted else "1")


def _set(name: str, value: str) -> None:
    try:
        (Path("/proc/sys/net/ipv4") / name).write_text(value)
    except OSError as error:
        raise RunError(f"net.ipv4.{name} = {value} in a namespace: {error.strerror}") from error


def folder_of(run: str, parent: Path = FOLDERS) -> Path:
    """Return where a run's folder in `parent` is, if it has one."""
    return parent / f"{MARK}-path-{run}"


def _is_ours(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def namespaces_of(run: str) -> list[str]:
    """Return the namespaces that there are of a run, in order."""
    found = [path.name for path in NAMESPACES.glob(f"{MARK}-{run}-*")] if NAMESPACES.is_dir() else []
    return sorted(found, key=lambda name: (len(name), name))


def remove(run: str) -> int:
    """Remove a run's namespaces, with the programs left in them, its folder and its lock file.

    Returns how many namespaces there were.
    """
    names = namespaces_of(run)
    end(names)
    if names:
        try:
            # One that stays keeps none of the others from going.
            ip("-force", lines=[f"netns delete {name}" for name in names])
        except RunError:
            if namespaces_of(run):
                raise
            # Another one has removed them meanwhile.
    for parent in (FOLDERS, DISK_FOLDERS):
        if _is_ours(folder_of(run, parent)):
            shutil.rmtree(folder_of(run, parent), ignore_errors=True)
    run_lock.remove(run)
    return len(names)


def processes(namespaces: Sequence[str]) -> list[int]:
    """Return the processes in any of some namespaces, but for this one."""
    wanted = set()
    for name in namespaces:
        try:
            status = os.stat(NAMESPACES / name)
        except FileNotFoundError:
            continue
        wanted.add((status.st_dev, status.st_ino))
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            status = os.stat(process / "ns" / "net")
        except OSError:  # it has ended, or is nobody's any more
            continue
        if (status.st_dev, status.st_ino) in wanted:
            found.append(int(process.name))
    return found


def end(namespaces: Sequence[str]) -> None:
    """Ask the programs in some namespaces to end, and kill those that do not."""
    if not namespaces:
        return
    deadline_s = time.monotonic() + PATIENCE_S
    wanted = signal.SIGTERM
    while left := processes(namespaces):
        for pid in left:
            try:
                os.kill(pid, wanted)
            except ProcessLookupError:
                continue
        if time.monotonic() > deadline_s:
            if wanted == signal.SIGKILL:
                raise RunError(f"{', '.join(namespaces)}: processes {left} cannot be ended")
            wanted, deadline_s = signal.SIGKILL, time.monotonic() + PATIENCE_S
        time.sleep(0.05)


def clean() -> tuple[int, int]:
    """Remove what runs that were killed have left; return how many those were, and how many live."""
    problem = missing()
    if problem is not None:
        raise InputError(f"elephan path {problem}")
    found = run_lock.known()
    if NAMESPACES.is_dir():
        matches = (re.fullmatch(rf"{MARK}-([0-9a-f]+)-\w+", path.name) for path in NAMESPACES.iterdir())
        found |= {match[1] for match in matches if match}
    cleaned = living = 0
    for run in sorted(found):
        if run_lock.lives(run):
            living += 1
        else:
            remove(run)
            cleaned += 1
    return cleaned, living
