"""Two hosts on an emulated path for programs that copy: their sshd, settings and CPU time, and one run of a command.

Data goes from left to right, from the disk to the same disk; each program's control connection takes the path too.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elephan.errors import RunError
from elephan.path import congestion, report, testbed
from evaluation.performance.copy.cells import Line, Row
from evaluation.performance.copy.payloads import Laid
from evaluation.performance.programs import processor_ticks
from tests.hosts import testbed as hosts

PORT = 2222
"""Of both sshd."""
BUFFERS = {"tcp_rmem": "4096 131072 268435456", "tcp_wmem": "4096 65536 268435456"}
"""Of both hosts, for all programs: no window of TCP's is the limit."""
SETTINGS = {**BUFFERS, "tcp_no_metrics_save": "1"}
"""No run has another one's slow start threshold. The default congestion control is elephan's cubic, as the kernel has
it, loaded for the namespaces: the kernel's own may not be allowed there.
"""
UNUSED = Line(1000, 10, 0)
"""Path between the hosts where the bound of a disk is measured."""
END_S = 3.0
"""Time for the programs of a run that was stopped."""


class Meter:
    """CPU time of the processes of one end: a control group of version 2, which goes with the context."""

    def __init__(self, name: str) -> None:
        """Make the group. Raises `RunError`."""
        self.folder = mounted() / f"elephan-copy-{os.getpid()}-{name}"
        try:
            self.folder.mkdir()
        except OSError as error:
            raise RunError(f"{self.folder}: {error.strerror}") from error

    def add(self, pid: int) -> None:
        """Count a process, and from now on its children."""
        (self.folder / "cgroup.procs").write_text(str(pid))

    def seconds(self) -> float:
        """Return the CPU time so far, s."""
        lines = (self.folder / "cpu.stat").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("usage_usec ")) / 1e6

    def remove(self) -> None:
        """Remove the group; its processes have ended."""
        deadline_s = time.monotonic() + END_S
        while self.folder.exists():
            try:
                self.folder.rmdir()
            except OSError:
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(0.05)


def mounted() -> Path:
    """Return where control groups of version 2 are mounted. Raises `RunError`."""
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, folder, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(folder)
    raise RunError("CPU time needs control groups of version 2: mount -t cgroup2 none /sys/fs/cgroup/unified")


@dataclass
class Server:
    """A program that waits for clients, beside the sshd."""

    process: subprocess.Popen[bytes]
    host: int


@dataclass
class Bench:
    """The hosts, and what programs need to know of them."""

    line: Line
    hosts: hosts.Hosts
    folder: Path
    meters: tuple[Meter, Meter]
    environment: dict[str, str]
    """Of a client: ssh knows `left` and `right` by the path's addresses, and nothing of the user's."""
    servers: list[Server] = field(default_factory=list)
    counters: list[dict[str, Any]] = field(default_factory=list)
    """Of the devices, when `carry` began."""

    @property
    def ssh_config(self) -> Path:
        """Return the configuration with which ssh goes over the path."""
        return self.folder / "ssh_path_config"

    def address(self, host: int) -> str:
        """Return a host's address on the path."""
        return testbed.ADDRESSES[host]

    def words(self, host: int, words: Sequence[str]) -> list[str]:
        """Return a command line that runs `words` at a host and counts its CPU time there."""
        group = self.meters[host].folder / "cgroup.procs"
        namespace = testbed.NAMESPACES / self.hosts.path.place.names[host]
        # Not by ip-netns(8), whose /sys has no /sys/fs/bpf.
        return ["sh", "-c", f'echo $$ >"{group}"; exec nsenter "--net={namespace}" "$@"', "sh", *words]

    def start(self, host: int, words: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a program at a host, in a session of its own."""
        options = {"stdin": subprocess.DEVNULL, "env": self.environment, "start_new_session": True, **options}
        return subprocess.Popen(self.words(host, words), **options)

    def serve(self, host: int, words: Sequence[str], port: int) -> None:
        """Start a server at a host, and return when it listens."""
        log = self.folder / f"server-{port}.log"
        process = self.start(host, words, stdout=log.open("wb"), stderr=subprocess.STDOUT)
        self.servers.append(Server(process, host))
        end = self.hosts.ends[host]
        hosts.waited(lambda: f":{port} " in end.run("ss", "-tlnH").stdout, lambda: log.read_text())

    def end_servers(self) -> None:
        """End the servers beside the sshd."""
        for server in self.servers:
            kill_session(server.process)
        self.servers.clear()

    def clear(self) -> None:
        """End everything at both hosts but for the two sshd."""
        self.end_servers()
        deadline_s = time.monotonic() + END_S
        while left := [pid for end in self.hosts.ends for pid in end.processes()]:
            if time.monotonic() > deadline_s:
                raise RunError(f"processes {left} cannot be ended")
            for pid in left:
                hosts.kill(pid)
            time.sleep(0.05)

    def carry(self, seed: int) -> None:
        """Begin to carry packets, with losses of this seed."""
        self.counters = self.hosts.path.place.counters()
        spec = deepcopy(self.hosts.spec)
        spec["seed"] = seed
        self.hosts.path.start(spec)

    def carried(self) -> report.Report:
        """Carry no more, and say what happened since `carry`."""
        core = self.hosts.path.emulator.stop()
        assert core is not None, "it was started"
        names = [link["name"] for link in self.hosts.spec["links"]]
        pairs = zip(self.counters, self.hosts.path.place.counters(), strict=True)
        return report.of(names, core, [less(*pair) for pair in pairs])


def less(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a device's counters have gained."""
    return {way: {"dropped": after[way]["dropped"] - before[way]["dropped"]} for way in ("tx", "rx")}


@contextmanager
def bench(line: Line, parent: Path) -> Iterator[Bench]:
    """Make the hosts on a path, below a folder; they go with the context."""
    folder = parent / "hosts"
    folder.mkdir()
    meters: list[Meter] = []
    try:
        with (
            hosts.hosts(folder, (line if line.rate_mbps else UNUSED).path, data=True) as made,
            congestion.as_default(made.path.place, made.spec) as control,
        ):
            if "elephan" not in control:
                raise RunError(f"programs are to run over cubic: {control}")
            for end in made.ends:
                meters.append(Meter(end.name))
                meters[-1].add(end.sshd.pid)
            made.path.emulator.stop()
            place = made.path.place
            for number in range(2):
                for name, value in SETTINGS.items():
                    place.set(number, name, value)
            opened = Bench(line, made, folder, (meters[0], meters[1]), {})
            opened.environment = clients(opened)
            try:
                yield opened
            finally:
                opened.clear()
    finally:
        for meter in meters:
            meter.remove()
        shutil.rmtree(folder, ignore_errors=True)


def clients(made: Bench) -> dict[str, str]:
    """Write what clients read: ssh's configuration, elephan's book of hosts; return their environment."""
    folder = made.folder
    config, known, book = "", "", ""
    for end in made.hosts.ends:
        config += f"Host {end.name}\n    HostName {end.data}\n"
        known += f"[{end.data}]:{PORT} {' '.join((folder / f'key-{end.name}.pub').read_text().split()[:2])}\n"
        book += f'[{end.name}]\nssh = "root@{end.name}"\naddress = "{end.data}"\n'
    (folder / "path_known_hosts").write_text(known)
    made.ssh_config.write_text(
        f"""\
{config}
Host *
    User root
    Port {PORT}
    IdentityFile {folder}/key-user
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile {folder}/path_known_hosts
    GlobalKnownHostsFile /dev/null
    ControlPath none
    Compression no
"""
    )
    tools = folder / "path-bin"
    tools.mkdir()
    for name in ("ssh", "scp", "sftp"):
        wrapper = tools / name
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which(name)} -F {made.ssh_config} "$@"\n')
        wrapper.chmod(0o755)
    (folder / "path_hosts.toml").write_text(book)
    home = folder / "client-home"
    home.mkdir()
    return {
        "PATH": f"{tools}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "ELEPHAN_HOSTS": str(folder / "path_hosts.toml"),
        "ELEPHAN_STORE": str(folder / "store.sqlite"),
    }


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill a program that was started in a session of its own, and its children there."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def timed(made: Bench, laid: Laid, host: int, words: Sequence[str], limit_s: float, row: Row) -> str:
    """Run a client at a host to its end, or to the limit; put what was measured into the row; return its output.

    Raises `RunError` when it fails.
    """
    log = made.folder / "client.log"
    before = [meter.seconds() for meter in made.meters]
    ticks = processor_ticks()
    made.carry(row.turn)
    with log.open("wb") as out:
        began_s = time.monotonic()
        process = made.start(host, words, stdout=out, stderr=subprocess.STDOUT)
        try:
            code = process.wait(limit_s)
            row.seconds, row.complete, row.bytes = time.monotonic() - began_s, True, laid.payload.bytes
        except subprocess.TimeoutExpired:
            row.seconds, row.complete, row.bytes = time.monotonic() - began_s, False, laid.arrived()
            code = 0
        finally:
            kill_session(process)
    idle, whole = (after - begin for begin, after in zip(ticks, processor_ticks(), strict=True))
    row.busy = 1 - idle / max(whole, 1)
    row.cpu_near_s, row.cpu_far_s = (
        meter.seconds() - began for meter, began in zip(made.meters, before, strict=True)
    )
    if host == 1:
        row.cpu_near_s, row.cpu_far_s = row.cpu_far_s, row.cpu_near_s
    began_s = time.monotonic()
    subprocess.run(["sync", "-f", str(laid.folder)], check=True)
    row.sync_s = time.monotonic() - began_s
    said = made.carried()
    made.clear()
    row.emulator_cpu, row.own_drops = said.cpu_share, said.own_drops
    late = said.metrics().get("emulator_late_p99_s")
    row.late_p99_ms = None if late is None else late * 1e3
    # Lateness alone is shown, and does not spoil a rate: it is beside the RTT's milliseconds.
    row.faults = [str(said.core["failure"])] if said.core["failure"] else []
    output = log.read_text(errors="replace")
    if code:
        raise RunError(f"{words[0]} ended with {code}: {' '.join(output.split())[-400:]}")
    return output
