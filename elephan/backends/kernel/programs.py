"""Programs of a run whose both ends are on this machine: files in the run's folders, hosts' default control, plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephan.backends.kernel.plan import FIRST_PORT, Layout, address_of
from elephan.backends.programs import Ends, Place, ends_of, found, started, versions
from elephan.backends.programs.files import PASSABLE, file_system_of, write
from elephan.backends.programs.files import check as check_files
from elephan.errors import RunError
from elephan.path.testbed import DISK_FOLDERS, Site
from elephan.run_spec.types import RunSpec

if TYPE_CHECKING:
    from elephan._native import RunResult


@dataclass(frozen=True)
class Prepared:
    """The program of a flow, its files written."""

    folder: Path
    ends: Ends
    near: Place
    far: Place

    def plan(self) -> dict[str, Any]:
        """Return crates/kernel/src/plan.rs's ProgramPlan."""
        ends = self.ends
        serves, asks = (self.near, self.far) if ends.fetches else (self.far, self.near)
        return {
            "name": self.ends.program,
            "server": list(started(ends.server, serves)),
            "client": list(started(ends.client, asks)),
            "fetches": self.ends.fetches,
            "streams": self.ends.streams,
            "confirmed": self.ends.confirmed,
            "over_udp": ends.over_udp,
            "folder": str(self.folder),
        }


def prepare(spec: RunSpec, layout: Layout, site: Site, names: list[str]) -> dict[int, Prepared]:
    """Set the hosts' default control, and write the files of programs; return them by the number of their flow.

    `names` are those that the controls were given. Raises `RunError`.
    """
    made = {}
    for number, (flow, hosts) in enumerate(zip(spec["flows"], layout.ends, strict=True)):
        workload = flow["workload"]
        if workload["kind"] != "program":
            continue
        for host in hosts:
            site.set(host, "tcp_congestion_control", names[layout.control_of[number]])
        folder = site.folder() / str(number)
        disk = folder
        if "disk" in (workload.get("source"), workload.get("sink")):
            disk = site.folder(DISK_FOLDERS) / str(number)
        near, far = (
            Place(address_of(flow, layout.hosts[host]), str(folder / role), str(disk / role), found)
            for host, role in zip(hosts, ("source", "destination"), strict=True)
        )
        try:
            for parent in dict.fromkeys((folder, disk)):
                parent.mkdir()
                parent.chmod(PASSABLE)
            ends = ends_of(flow, near, far, FIRST_PORT + number, spec["duration_ns"], folder)
            by_role = (ends.server, ends.client) if ends.fetches else (ends.client, ends.server)
            for end, place in zip(by_role, (near, far), strict=True):
                write(end, place)
        except OSError as error:
            raise RunError(f"flow {flow['name']}: {workload['program']} cannot be set up: {error}") from error
        made[number] = Prepared(folder, ends, near, far)
    return made


def plans(made: Mapping[int, Prepared]) -> dict[int, dict[str, Any]]:
    """Return the plans of programs, by the number of their flow."""
    return {number: prepared.plan() for number, prepared in made.items()}


def check(spec: RunSpec, made: Mapping[int, Prepared], result: RunResult) -> None:
    """Compare what arrived on a disk with what was sent, of programs that have ended. Raises `RunError`."""
    for number, (flow, metrics) in enumerate(zip(spec["flows"], result.flows, strict=True)):
        if number not in made or "completion_s" not in metrics:
            continue
        sent, received = made[number].ends.sent, made[number].ends.received
        assert sent is not None and received is not None, "a program that ends by itself has files"
        try:
            check_files(sent, received)
        except RunError as error:
            raise RunError(f"flow {flow['name']}: {made[number].ends.program}: {error}") from error


def host_facts(spec: RunSpec) -> dict[str, Any]:
    """Return what a record says of the programs: their versions, and the disk of their files."""
    workloads = [flow["workload"] for flow in spec["flows"] if flow["workload"]["kind"] == "program"]
    facts: dict[str, Any] = {}
    if workloads:
        facts["programs"] = versions(dict.fromkeys(workload["program"] for workload in workloads))
    if any("disk" in (workload.get("source"), workload.get("sink")) for workload in workloads):
        kind, device = file_system_of(DISK_FOLDERS)
        facts["programs_disk"] = f"{DISK_FOLDERS} ({kind} on {device})"
    return facts
