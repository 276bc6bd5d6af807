"""Demands of programs on hosts with other rights and properties than this machine has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elephan import api
from elephan.backends.hosts import programs
from elephan.backends.hosts.demands import Demands
from elephan.backends.hosts.end import End
from elephan.errors import InputError
from tests.hosts.test_demands import demands, facts

SCP = 'workload = { kind = "program", program = "scp", bytes = "1MB" }\n'
CONTROLS = {"available": ["reno", "cubic"], "allowed": ["reno", "cubic"], "default": "cubic"}


def of(folder: Path, flow: str, **more: Any) -> Demands:
    """Demands of a flow between two hosts, of which one that lacks rights is named as such."""
    left = facts("left", root=more.get("root", True), congestion_controls=CONTROLS)
    return demands(folder, flow, left, facts("right", root=more.get("root", True), congestion_controls=CONTROLS))


def test_control_and_window_of_a_program_are_the_hosts_for_the_run(tmp_path: Path) -> None:
    found = of(tmp_path, f'{SCP}window = "8MB"\nrto_max = "60s"')
    sender, receiver = found.sysctls["left"], found.sysctls["right"]
    assert sender["net.ipv4.tcp_congestion_control"] == found.controls[0]["name"]
    assert sender["net.ipv4.tcp_wmem"] == "4096 16384 16000000"
    assert sender["net.ipv4.tcp_rto_max_ms"] == "60000"
    assert receiver.keys() == {"net.ipv4.tcp_rmem"}
    least, usual, most = map(int, receiver["net.ipv4.tcp_rmem"].split())
    # The kernel's tuning begins where it did, and ends at the window.
    assert (least, usual) == (4096, 131_072) and most > 8_000_000
    assert sum("all connections that begin there during the run" in note for note in found.notes) == 4
    assert "elephan_h" not in "".join(found.notes)


def test_a_small_window_bounds_the_receivers_tuning(tmp_path: Path) -> None:
    found = of(tmp_path, f'{SCP}window = "64KiB"')
    assert "net.ipv4.tcp_wmem" not in found.sysctls["left"]
    most = int(found.sysctls["right"]["net.ipv4.tcp_rmem"].split()[2])
    assert 65_536 < most < 6_291_456


def test_a_user_has_the_hosts_control_and_is_told_of_its_windows(tmp_path: Path) -> None:
    found = of(tmp_path, f'{SCP}window = "8MB"', root=False)
    # It is right already, and held so.
    assert found.sysctls == {"left": {"net.ipv4.tcp_congestion_control": "cubic"}, "right": {}}
    says = " | ".join(found.notes)
    assert "left: its programs keep at most about 2.10 MB in flight" in says
    assert "right: its programs offer a window of at most about 3.95 MB" in says
    with pytest.raises(InputError, match="left: flow .*which is cubic: .*tcp_congestion_control=reno"):
        of(tmp_path, f'{SCP}congestion_control = "reno"', root=False)
    with pytest.raises(InputError, match="sudo sysctl -w net.ipv4.tcp_rto_max_ms=60000"):
        of(tmp_path, f'{SCP}rto_max = "60s"', root=False)


def test_programs_that_disagree_and_pacing_are_refused(tmp_path: Path) -> None:
    two = f'name = "a"\n{SCP}[[flow]]\nname = "b"\ncongestion_control = "reno"\n{SCP}'
    with pytest.raises(InputError, match="flow b: its program and that of flow a ask for different .*_control on left"):
        of(tmp_path, two)
    with pytest.raises(InputError, match="pacing = true: only an option of the socket"):
        of(tmp_path, f"{SCP}pacing = true")


class Told:
    """An agent whose host has these properties."""

    def __init__(self, name: str, **told: Any) -> None:
        self.name = name
        commands = {command: {"path": f"/usr/bin/{command}"} for command in programs.COMMANDS}
        disk = {"folder": "/var/tmp", "free_bytes": 1 << 30, "file_system": "ext4", "device": "/dev/sda1"}
        self._told = {"commands": commands, "namespaces": "root", "disk": disk} | told

    def ask(self, request: str, **_: Any) -> dict[str, Any]:
        assert request == "check"
        return {"programs": self._told, "memory_available_bytes": 1 << 30}


def checked(folder: Path, program: str, keys: str = "", **told: Any) -> list[str]:
    """Check a flow of a program between a host that has all and one with these properties, which receives."""
    file = folder / "one.toml"
    head = '[run]\nduration = "4s"\n[path]\nbandwidth = "1Gbit/s"\nrtt = "32ms"\n'
    size = "" if program == "iperf3" else ', bytes = "1MB"'
    file.write_text(f'{head}[[flow]]\nworkload = {{ kind = "program", program = "{program}"{size}{keys} }}\n')
    spec = next(api.load(file).points_looked_at()).to_spec()
    ends = [End(agent(name, more), facts(name), "192.0.2.1") for name, more in (("left", {}), ("right", told))]
    return programs.check(spec, ends[0], ends[1])


def agent(name: str, told: dict[str, Any]) -> Any:
    return Told(name, **told)


NONE = {"namespaces": None, "why": "Operation not permitted"}


@pytest.mark.parametrize(
    ("program", "keys", "told", "says"),
    [
        ("scp", "", NONE, r"right: flow .*: scp needs namespaces of its own, .*Operation not permitted.*userns"),
        ("pget", "", NONE, "right: flow .*: pget needs namespaces of its own"),
        ("ftp", "", {"namespaces": "user"}, "right: flow .*: vsftpd needs root there"),
        ("rsync", "", {"commands": {}}, "right: .* rsync needs sshd, rsync, which are not installed: apt-get install"),
        ("scp", ', sink = "disk"', {"disk": {"folder": "/var/tmp", "error": "gone"}}, 'right: "disk": /var/tmp: gone'),
        (
            "scp",
            ', sink = "disk"',
            {"disk": {"folder": "/var/tmp", "free_bytes": 1 << 30, "file_system": "tmpfs"}},
            'right: "disk": /var/tmp is a tmpfs, which is memory',
        ),
        (
            "scp",
            ', sink = "disk"',
            {"disk": {"folder": "/var/tmp", "free_bytes": 64 << 20, "file_system": "ext4"}},
            'right: "disk": /var/tmp has room for 0 B',
        ),
    ],
)
def test_what_a_host_lacks_for_a_program_is_named(
    tmp_path: Path, program: str, keys: str, told: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        checked(tmp_path, program, keys, **told)


def test_what_needs_no_namespaces_runs_without_them(tmp_path: Path) -> None:
    assert any("takes whoever reaches its port" in note for note in checked(tmp_path, "iperf3", **NONE))
    assert checked(tmp_path, "pget", ', sink = "disk"', **NONE) == []
