"""Programs of a run between two hosts: what each host has for them, their files, ports and comparison.

The agents give each run folders and ports (`place`), write the files (`prepare`) and, of data that stays on a disk,
tell the digests (`digest`). The keys of SSH are made here, and go to the hosts over the agents' channels alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from elephan import units
from elephan.backends.hosts.end import End
from elephan.backends.programs import End as ProgramEnd
from elephan.backends.programs import Ends, Place, ends_of, found, requirements
from elephan.backends.programs.files import IN_MEMORY, SPARE
from elephan.errors import ElephanError, InputError, RunError
from elephan.hosts.agent import Agent, Reply
from elephan.run_spec.types import ProgramWorkloadSpec, RunSpec
from elephan.scenario.program import PROGRAMS, notes_of, streams_of

if TYPE_CHECKING:
    from elephan._native import RunResult

FTP = frozenset({"ftp", "lftp", "pget"})
"""Programs with a vsftpd, which needs root, and a port of its own for each connection of data."""

SSH = frozenset({"scp", "sftp", "rsync", "rclone"})
"""Programs with an sshd, whose keys are made here."""

DATA_PORTS = (64, 8)
"""Ports for FTP's data, at most, and more for each stream: vsftpd draws one, and tries 9 times for one that is free."""

DATA_PORTS_LEAST = 4
"""And at least, for each stream: of nine draws one finds a free port, but for one run in 100,000."""

CHECK_S = 60.0
"""Time for a host to look at its programs, s."""

FULL = 1 << 20
"""Bytes below which a disk is full: a program could not write its next buffer."""

RIGHTS = "log in as root, or as a user whom sudo asks no password"

COUNTED = tuple(name for name, traits in PROGRAMS.items() if not traits.over_udp)
"""Programs whose bytes an agent can count: those of TCP, by its sockets. `layout_of` refuses others."""

COMMANDS = sorted({"env", *(command for name in COUNTED for command in requirements.NEEDS[name])} - {"ssh-keygen"})
"""Commands of all programs, and `env`, by which rclone gets an option that its older versions do not know."""

Wait = Callable[[list[Reply]], None]
"""Waits until all requests have ended, and raises the first error."""


def of(spec: RunSpec) -> dict[int, ProgramWorkloadSpec]:
    """Return the workloads that programs carry, by the number of their flow."""
    found: dict[int, ProgramWorkloadSpec] = {}
    for number, flow in enumerate(spec["flows"]):
        workload = flow["workload"]
        if workload["kind"] == "program":
            found[number] = workload
    return found


_told: WeakKeyDictionary[Agent, dict[str, Any]] = WeakKeyDictionary()
"""By agent: what its host has for programs."""


def look(agent: Agent) -> Mapping[str, Any]:
    """Return what a host has for programs, as `check` of docs/design/agent.md has it; asked once."""
    if agent not in _told:
        words = {name: requirements.VERSIONS[name][0] if name in requirements.VERSIONS else None for name in COMMANDS}
        _told[agent] = agent.ask("check", timeout_s=CHECK_S, programs=words)
    return {**_told[agent]["programs"], "memory_bytes": _told[agent].get("memory_available_bytes", 0)}


def as_lines(agent: Agent) -> list[str]:
    """Return what a host has for programs, for people: their versions, and those that it lacks something for."""
    told = look(agent)
    commands = told["commands"]
    versions = (f"{name} {found}" for name in requirements.VERSIONS if (found := _version(name, commands)) is not None)
    lines = [f"programs   {', '.join(versions) or 'none'}"]
    roles: tuple[requirements.Role, ...] = ("server", "client")
    lacking = {role: [name for name in COUNTED if requirements.lacks_at(name, role, commands)] for role in roles}
    lines += [f"no {role:<7} of {', '.join(names)}" for role, names in lacking.items() if names]
    if told.get("namespaces") is None:
        lines.append(f"namespaces none, which servers but iperf3's need: {told.get('why', '')}")
    elif told["namespaces"] != "root":
        lines.append("namespaces of users: no server of ftp, lftp and pget")
    return lines


def _version(name: str, commands: Mapping[str, Any]) -> str | None:
    return requirements.version_in(name, commands.get(name, {}).get("says", ""))


def check(spec: RunSpec, sender: End, receiver: End) -> list[str]:
    """Check that both hosts can run the programs of a specification; return the notes. Raises `InputError`."""
    carried = of(spec)
    for number, workload in carried.items():
        name, program = spec["flows"][number]["name"], workload["program"]
        serves, asks = (sender, receiver) if PROGRAMS[program].fetches else (receiver, sender)
        for end, role in ((serves, "server"), (asks, "client")):
            told = look(end.agent)
            lacking = requirements.lacks_at(program, "server" if role == "server" else "client", told["commands"])
            if lacking:
                raise InputError(f"{end.facts.name}: flow {name}: {lacking}")
            _check_rights(end, told, workload, role == "server", f"{end.facts.name}: flow {name}")
        if program in SSH:
            try:
                found("ssh-keygen")
            except FileNotFoundError:
                raise InputError(
                    f"flow {name}: {program} needs ssh-keygen here: apt-get install openssh-client"
                ) from None
    if carried:
        _check_room(sender, (w for w in carried.values() if w.get("source") == "disk"))
        _check_room(receiver, (w for w in carried.values() if w.get("sink") == "disk"))
        _check_memory(receiver, carried.values())
    notes = notes_of(spec["flows"])
    if any(workload["program"] == "iperf3" for workload in carried.values()):
        notes.append("iperf3 asks nobody who connects: for the run its server takes whoever reaches its port")
    return notes


def _check_rights(end: End, told: Mapping[str, Any], workload: ProgramWorkloadSpec, is_server: bool, who: str) -> None:
    program, rights = workload["program"], told.get("namespaces")
    if rights == "root" or program == "iperf3":
        return
    if is_server and program in FTP:
        raise InputError(f"{who}: vsftpd needs root there: {RIGHTS}; or take scp, rsync or iperf3")
    if rights is None and (is_server or (program == "pget" and workload.get("sink") != "disk")):
        why = told.get("why", "it does not say why")
        raise InputError(
            f"{who}: {program} needs namespaces of its own, and may not have them ({why}): {RIGHTS}; or an "
            "administrator there types: sudo sysctl -w kernel.unprivileged_userns_clone=1 (Debian) or "
            "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu)"
        )


def _check_room(end: End, workloads: Iterable[ProgramWorkloadSpec]) -> None:
    wanted = sum(workload["bytes"] or 0 for workload in workloads if workload["program"] != "iperf3")
    if not wanted:
        return
    disk, who = look(end.agent)["disk"], end.facts.name
    if "error" in disk:
        raise InputError(f'{who}: "disk": {disk["folder"]}: {disk["error"]}')
    if disk.get("file_system") in IN_MEMORY:
        kind = disk["file_system"]
        raise InputError(
            f'{who}: "disk": {disk["folder"]} is a {kind}, which is memory: mount a disk there, or take "memory"'
        )
    free = max(disk["free_bytes"] - SPARE, 0)
    if wanted > free:
        raise InputError(
            f'{who}: "disk": {disk["folder"]} has room for {units.size(free)}, and the programs have '
            f"{units.size(wanted)}"
        )


def _check_memory(end: End, workloads: Iterable[ProgramWorkloadSpec]) -> None:
    wanted = sum(w["bytes"] or 0 for w in workloads if w["program"] == "lftp" and w.get("sink") != "disk")
    free = look(end.agent)["memory_bytes"]
    if wanted > free // 2:
        raise InputError(
            f"{end.facts.name}: lftp cannot write to a device, so {units.size(wanted)} would stay in memory, of which "
            f'half of {units.size(free)} may be used: take sink = "disk", or program = "ftp"'
        )


@dataclass(frozen=True)
class Program:
    """The program of a flow, its files written at both hosts."""

    ends: Ends
    near: Place
    far: Place
    ports: list[list[int]]
    """Ranges of the server's ports."""
    apart: tuple[bool, bool]
    """True if the end at the source, and that at the destination, may have namespaces of their own."""

    def keys(self, *, at_source: bool) -> dict[str, Any]:
        """Return the keys of one end's `run`, as docs/design/agent.md has them."""
        serves = self.ends.fetches == at_source
        end = self.ends.server if serves else self.ends.client
        place = self.near if at_source else self.far
        return {
            "name": self.ends.program,
            "words": list(end.words),
            "serves": serves,
            "ports": self.ports,
            "streams": self.ends.streams,
            "confirmed": self.ends.confirmed,
            "folder": place.folder,
            "apart": _apart(end, place) if self.apart[not at_source] else None,
        }


def _apart(end: ProgramEnd, place: Place) -> dict[str, Any]:
    if end.apart is None:
        return {}
    data = end.apart.in_memory
    sink = (
        None if data is None else {"folder": data.folder, "discards": len(data.sizes) if data.kind == "devices" else 0}
    )
    return {"users": place.folder, "sink": sink, "own": end.apart.own or None}


class Programs:
    """The programs of one run, from their folders on both hosts until these are removed."""

    def __init__(self, spec: RunSpec, sender: End, receiver: End) -> None:
        """Make nothing yet."""
        self._spec = spec
        self._sender, self._receiver = sender, receiver
        self._carried = of(spec)
        self._made: dict[int, Program] = {}

    def __bool__(self) -> bool:
        """Return True if there is any."""
        return bool(self._carried)

    def prepare(self, limit_bps: int | None, wait: Wait) -> None:
        """Make folders, ports and files at both hosts; each program limits itself to `limit_bps`. Raises `InputError`
        and `RunError`.
        """
        numbers = list(self._carried)
        given = {}
        for end in (self._sender, self._receiver):
            served = [number for number in numbers if self._serves(number) is end]
            disk = any(self._carried[n].get("source" if end is self._sender else "sink") == "disk" for n in numbers)
            given[end.facts.name] = end.agent.ask(
                "place",
                local=end.local,
                ports=list(end.agent.host.ports or (0, 0)),
                servers=[_ports(self._carried[number]) for number in served],
                disk=disk,
            ) | {"served": served}
        with tempfile.TemporaryDirectory(prefix="elephan-keys-") as keys:
            for number in numbers:
                self._made[number] = self._program(number, given, limit_bps, Path(keys))
        wait(
            [
                end.agent.begin("prepare", ends=[_files(made, at_source=at_source) for made in self._made.values()])
                for end, at_source in ((self._sender, True), (self._receiver, False))
            ]
        )

    def _serves(self, number: int) -> End:
        return self._sender if PROGRAMS[self._carried[number]["program"]].fetches else self._receiver

    def _program(self, number: int, given: Mapping[str, Any], limit_bps: int | None, keys: Path) -> Program:
        flow = self._spec["flows"][number]
        server = self._serves(number)
        answer = given[server.facts.name]
        ports = answer["ports"][answer["served"].index(number)]
        near, far = (
            _place(end, given[end.facts.name], f"{number}/{role}")
            for end, role in ((self._sender, "source"), (self._receiver, "destination"))
        )
        if len(ports) > 1:
            first, last = ports[1]
            near, far = replace(near, data_ports=(first, last)), replace(far, data_ports=(first, last))
        ends = ends_of(flow, near, far, ports[0][0], self._spec["duration_ns"], keys, limit_bps)
        apart = tuple(look(end.agent).get("namespaces") is not None for end in (self._sender, self._receiver))
        return Program(ends, near, far, ports, (apart[0], apart[1]))

    def keys(self, number: int, *, at_source: bool) -> dict[str, Any]:
        """Return the keys of a flow that a program carries, empty for others."""
        made = self._made.get(number)
        return {} if made is None else {"program": made.keys(at_source=at_source)}

    def compare(self, result: RunResult, wait: Wait) -> None:
        """Compare what arrived on a disk with what was sent, of programs that have ended. Raises `RunError`."""
        for number, made in self._made.items():
            sent, received = made.ends.sent, made.ends.received
            if received is None or received.kind != "disk" or "completion_s" not in result.flows[number]:
                continue
            assert sent is not None, "what arrives was sent"
            replies = [
                self._sender.agent.begin("digest", files=sent.paths),
                self._receiver.agent.begin("digest", files=received.paths),
            ]
            wait(replies)
            pairs = zip(received.names, *(reply.result()["files"] for reply in replies), strict=True)
            who = f"flow {self._spec['flows'][number]['name']}: {made.ends.program}"
            for name, source, sink in pairs:
                if sink is None:
                    raise RunError(f"{who}: {name} did not arrive")
                if sink != source:
                    raise RunError(f"{who}: {name} arrived with {sink['bytes']} bytes that are not those of its source")

    def full_disks(self) -> list[str]:
        """Return which disks with data of the programs are full: few programs say so where they fail."""
        found = []
        for end, medium in ((self._sender, "source"), (self._receiver, "sink")):
            if not any(workload.get(medium) == "disk" for workload in self._carried.values()):
                continue
            with suppress(ElephanError):
                disk = end.agent.ask("check", folder=look(end.agent)["disk"]["folder"])["disk"]
                if disk.get("free_bytes", FULL) < FULL:
                    found.append(f"{end.facts.name}: {disk['folder']} is full")
        return found

    def leave(self) -> None:
        """Remove the folders at both hosts; an agent that has gone has done so."""
        for end in (self._sender, self._receiver):
            if self._carried and end.agent.is_alive():
                with suppress(ElephanError):
                    end.agent.ask("leave")


def _ports(workload: ProgramWorkloadSpec) -> dict[str, int]:
    """Return a server's ports beside that which it listens on, at most and at least."""
    if workload["program"] not in FTP:
        return {}
    streams = streams_of(workload)
    return {"more": DATA_PORTS[0] + DATA_PORTS[1] * streams, "least": DATA_PORTS_LEAST * streams}


def _place(end: End, given: Mapping[str, Any], folder: str) -> Place:
    commands = look(end.agent)["commands"]

    def command(name: str) -> str:
        if name not in commands:
            raise FileNotFoundError(f"{name} is not installed on {end.facts.name}")
        return str(commands[name]["path"])

    return Place(
        address=end.local,
        folder=f"{given['folder']}/{folder}",
        disk=f"{given.get('disk', given['folder'])}/{folder}",
        command=command,
        outside=end.facts.address,
        user=(given["uid"], given["gid"]),
    )


def _files(made: Program, *, at_source: bool) -> dict[str, Any]:
    """Return the files of one end, as docs/design/agent.md has them."""
    serves = made.ends.fetches == at_source
    end = made.ends.server if serves else made.ends.client
    data = end.data
    kinds = {"holes": "holes", "random": "random"}
    return {
        "folder": (made.near if at_source else made.far).folder,
        "files": [{"name": file.name, "text": file.text, "mode": file.mode} for file in end.files],
        "data": None
        if data is None
        else {"folder": data.folder, "sizes": list(data.sizes), "kind": kinds.get(data.kind, "folder")},
    }


def facts_of_record(spec: RunSpec, ends: Mapping[str, End]) -> dict[str, Any]:
    """Return what a record says of the programs of both hosts, by "left" and "right": their versions, and the disk."""
    carried = of(spec)
    if not carried:
        return {}
    names = dict.fromkeys(name for workload in carried.values() for name in requirements.CARRY[workload["program"]])
    facts: dict[str, Any] = {"programs": {}}
    for side, end in ends.items():
        commands = look(end.agent)["commands"]
        said = {name: _version(name, commands) for name in names}
        facts["programs"][side] = {name: version for name, version in said.items() if version is not None}
    if any("disk" in (workload.get("source"), workload.get("sink")) for workload in carried.values()):
        disks = {side: look(end.agent)["disk"] for side, end in ends.items()}
        facts["programs_disk"] = {
            side: f"{disk['folder']} ({disk.get('file_system', '?')} on {disk.get('device', '?')})"
            for side, disk in disks.items()
        }
    return facts
