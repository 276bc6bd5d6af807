"""The field: two sites behind routers, and an emulated path between the routers that a test changes while all runs.

    site a ── router a ══ emulated path ══ router b ── site b

Each is a network namespace. The routers are the ends of `elephan path up`; the kernel forwards there. Each site has a
real sshd and addresses by IPv4 and IPv6, and both reach each other over the path alone, ssh included. The namespaces
have the path's mark, so that `elephan path down`, or `clean` after a kill, removes them and their processes.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elephan.errors import RunError
from elephan.hosts.agents import agent_files
from elephan.path import live
from elephan.path.testbed import ip
from tests.hosts import testbed

ELEPHAN = Path(sys.executable).with_name("elephan")
"""The command as it is installed."""
PROGRAMS = ("ping", "iperf3", "rsync")
"""Judges beside ip(8)."""
RATE_BPS, RTT_S, MTU_BYTES = 40_000_000, 0.020, 1500
QUEUE_BYTES = 100_000
"""A bandwidth-delay product."""
SCENARIO = """\
[run]
duration = "1h"

[path]
bandwidth = "40Mbit/s"
rtt = "20ms"
queue = "100kB"

[[flow]]
congestion_control = "cubic"

[[background]]
name = "neighbour"
rate = "16Mbit/s"
packet = "1000B"
enabled = false
"""
USUAL = (
    "path.bandwidth=40Mbit/s",
    "path.rtt=20ms",
    "path.loss=0",
    "path.reverse.loss=0",
    "path.policer=none",
    "path.mtu=1500B",
    "background.rate=16Mbit/s",
    "background.enabled=false",
    "link_up=path",
)
"""The path as the file has it."""


@dataclass(frozen=True)
class Site:
    """One site."""

    name: str
    namespace: str
    router: str
    """Namespace of its router."""
    address: str
    address6: str

    def within(self, *words: str | Path) -> list[str]:
        """Return the command line that runs a command there."""
        return ["ip", "netns", "exec", self.namespace, *map(str, words)]


@dataclass
class Field:
    """Both sites, the path between them, and the environment of a user at site a."""

    folder: Path
    run: str
    """Id of the path."""
    a: Site
    b: Site
    environment: dict[str, str] = field(default_factory=dict)
    changed: bool = False
    """True if the path is not as its file has it."""

    def set(self, *settings: str) -> None:
        """Change the path, by the command that a user types."""
        done = subprocess.run(
            [ELEPHAN, "path", "set", self.run, *settings], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        self.changed = True

    def as_usual(self) -> None:
        """Give the path back what its file has."""
        if self.changed:
            live.change(self.run, USUAL)
            self.changed = False

    def elephan(
        self, *arguments: str | Path, site: Site | None = None, timeout_s: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Run the command at a site, a if none is named, to its end."""
        return subprocess.run(
            (site or self.a).within(ELEPHAN, *arguments),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    @contextmanager
    def started(self, *arguments: str | Path, site: Site | None = None) -> Iterator[subprocess.Popen[str]]:
        """Run the command at a site while the context lasts, and end it by SIGTERM where it has not ended itself."""
        with self.program(ELEPHAN, *arguments, site=site) as process:
            yield process

    @contextmanager
    def program(self, *words: str | Path, site: Site | None = None) -> Iterator[subprocess.Popen[str]]:
        """Run a program at a site while the context lasts."""
        process = subprocess.Popen(
            (site or self.a).within(*words),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            process.communicate(timeout=30)


def missing() -> str | None:
    """Return what this machine lacks for the field; None when nothing."""
    try:
        agent_files()
    except RunError as error:
        return str(error)
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    return testbed.missing() or (f"needs {', '.join(lacking)}" if lacking else None)


@contextmanager
def field_of_two_sites(path: Sequence[str] = ()) -> Iterator[Field]:
    """Make it, with further settings of the path, and remove it."""
    # Not below pytest's folder, which each pytest that starts closes to users without rights.
    with tempfile.TemporaryDirectory(prefix="elephan-field-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        file = folder / "path.toml"
        file.write_text(SCENARIO)
        words = [ELEPHAN, "path", "up", file, *(f"--set={setting}" for setting in path)]
        up = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert up.returncode == 0, up.stderr
        found = re.match(r"([0-9a-f]+)  up ", up.stdout)
        assert found is not None, up.stdout
        run = found[1]
        made: list[testbed.End] = []
        try:
            sites = [_site(run, number, name) for number, name in enumerate("ab")]
            testbed.keys(folder)
            for site, key in zip(sites, ("left", "right"), strict=True):
                addresses = [site.address, site.address6]
                made.append(testbed.listening(folder, key, site.namespace, addresses, site.address))
            yield Field(folder, run, *sites, environment=_user(folder, sites, made))
        finally:
            words = [ELEPHAN, "path", "down", run]
            down = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
            for end in made:
                end.sshd.wait(30)
        assert down.returncode == 0, down.stderr


def _site(run: str, number: int, name: str) -> Site:
    """Make a site, its router's side of the link between them, and the routes of both."""
    namespace, router = f"elephan-{run}-{name}", f"elephan-{run}-{number}"
    own, other = 1 + number, 2 - number
    ip("netns", "add", namespace)
    ip(lines=[f"link add lan netns {namespace} type veth peer name site netns {router}"])
    _sysctl(router, "net.ipv4.ip_forward=1", "net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.path.disable_ipv6=0")
    _sysctl(router, "net.ipv6.conf.site.disable_ipv6=0", "net.ipv6.conf.all.forwarding=1")
    for family, width, wide, address in (("-4", 24, 24, "10.77.{}.{}"), ("-6", 64, 64, "fd77:{}::{}")):
        near, far = address.format(own, 1), address.format(own, 2)
        nodad = " nodad" if family == "-6" else ""
        beyond = f"{address.format(other, 0)}/{wide}"
        source = "" if family == "-6" else " src 198.18.0." + str(own)
        there = [f"address add {near}/{width} dev site{nodad}", "link set site up"]
        there.append(f"route add {beyond} dev path{source}")
        here = [f"address add {far}/{width} dev lan{nodad}", "link set lo up", "link set lan up"]
        ip("-n", router, family, lines=there)
        ip("-n", namespace, family, lines=[*here, f"route add default via {near}"])
    return Site(name, namespace, router, f"10.77.{own}.2", f"fd77:{own}::2")


def _sysctl(namespace: str, *settings: str) -> None:
    subprocess.run(["ip", "netns", "exec", namespace, "sysctl", "-qw", *settings], check=True, capture_output=True)


def _user(folder: Path, sites: Sequence[Site], ends: list[testbed.End]) -> dict[str, str]:
    """Write ssh's configuration and the book of hosts of a user at site a; return the environment there."""
    environment = testbed.front(folder, ends)
    config, known, book = (folder / name for name in ("ssh_config", "known_hosts", "hosts.toml"))
    key = {end.name: " ".join((folder / f"key-{end.name}.pub").read_text().split()[:2]) for end in ends}
    hosts, keys, entries = "", "", ""
    for site, end in zip(sites, ends, strict=True):
        for name, address in ((site.name, site.address), (f"{site.name}6", site.address6)):
            hosts += f"Host {name}\n    HostName {address}\n"
            keys += f"[{address}]:2222 {key[end.name]}\n"
            entries += f'[{name}]\nssh = "root@{name}"\naddress = "{address}"\n'
    config.write_text(hosts + config.read_text())
    known.write_text(keys)
    book.write_text(entries)
    home = folder / "home"
    home.mkdir()
    for kind in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        environment.pop(kind, None)
    return {**environment, "HOME": str(home)}


def device(namespace: str, name: str) -> dict[str, Any]:
    """Return the kernel's counters of a device, as ip(8) has them."""
    found: dict[str, Any] = json.loads(ip("-n", namespace, "-j", "-s", "link", "show", name))[0]["stats64"]
    return found
