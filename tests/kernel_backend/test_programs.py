"""Real programs as the traffic of flows: their requirements, their measurements, and that they leave nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest

from elephan import api
from elephan.api import jobs_of, load
from elephan.backends import programs
from elephan.backends.kernel.mapping import Machine
from elephan.backends.kernel.plan import Layout, layout_of
from elephan.backends.programs.requirements import NEEDS
from elephan.errors import InputError
from elephan.path import testbed
from elephan.scenario.program import PROGRAMS
from tests.kernel_backend.conftest import Elephan, begun, left_of, sockets
from tests.processes import end, until

HEAD = """\
[run]
duration = "{duration}"
stop_when_done = true

[path]
bandwidth = "40Mbit/s"
rtt = "20ms"
{path}
"""
FLOW = """
[[flow]]
name = "{name}"
congestion_control = {{ name = "storage_friendly", reduction = "1/8" }}
workload = {{ kind = "program", program = "{program}"{size} }}
{more}
"""
ALL = tuple(name for name in NEEDS if not PROGRAMS[name].over_udp)
"""Those whose data goes over TCP; of the others test_udp_programs.py."""
BYTES = 1_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "programs.toml"


TIMED = 'duration = "1s"'


def write(file: Path, names: tuple[str, ...], size: str, duration: str = "20s", path: str = "", more: str = "") -> Path:
    sizes = {name: TIMED if name == "iperf3" and "bytes" in size and len(names) > 1 else size for name in names}
    flows = [FLOW.format(name=name, program=name, size=sizes[name] and f", {sizes[name]}", more=more) for name in names]
    file.write_text(HEAD.format(duration=duration, path=path) + "".join(flows), encoding="utf-8")
    return file


@pytest.fixture
def installed(kernel: None) -> None:
    for program in ALL:
        lacking = programs.lacks(program, programs.installed())
        if lacking:
            pytest.skip(lacking)


def layout(file: Path, machine: Machine) -> Layout:
    return layout_of(jobs_of(load(file), backend="kernel")[0].spec, machine)


# A run of programs


@pytest.mark.usefixtures("installed", "host_stays_as_it_was")
def test_each_program_carries_its_bytes_and_is_measured_as_own_traffic_is(elephan: Elephan, file: Path) -> None:
    write(file, ALL, f'bytes = "{BYTES}B"', path="loss = { packets = [600] }")
    done = elephan("run", file, "--on", "kernel", "--json", "--no-report")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    flows = {flow["name"]: flow for flow in record["flows"]}
    for name, flow in flows.items():
        if name == "iperf3":
            # A part of a second of the line.
            assert 50_000 < flow["delivered_bytes"] < 5_000_000 and "completion_s" not in flow
        else:
            # SSH adds less than 1 %, and a round trip on which its keys are exchanged.
            assert BYTES <= flow["delivered_bytes"] <= 1.02 * BYTES + 10_000, flow
            assert 0.4 < flow["completion_s"] < 20
        assert flow["workload"] == name and flow["congestion_control"].startswith("storage_friendly")
        assert 0.019 < flow["rtt_min_s"] <= flow["rtt_mean_s"]
        assert flow["sent_segments"] >= flow["delivered_bytes"] / 1448 - 10
    assert sum(flow["retransmitted_segments"] for flow in flows.values()) >= record["links"][0]["dropped_by_loss"] == 1
    assert sum(flow["dropped_packets"] for flow in flows.values()) == record["metrics"]["dropped_packets"]
    assert record["host"]["programs"].keys() == {"iperf3", "ssh", "rsync", "rclone", "vsftpd", "curl", "lftp"}
    assert all(re.match(r"\d+\.\d+", version) for version in record["host"]["programs"].values())
    assert record["series"]["flow_rows"] > 20
    assert not [note for note in record["notes"] if "no connection" in note or "had arrived" in note]


STREAMS = """
[[flow]]
name = "{program}"
workload = {{ kind = "program", program = "{program}", {keys} }}
"""


@pytest.mark.usefixtures("installed", "host_stays_as_it_was")
def test_a_program_has_as_many_connections_with_data_as_streams(file: Path) -> None:
    keys = {
        "iperf3": 'duration = "5s", streams = 3',
        "pget": 'bytes = "4MB", streams = 4',
        "lftp": 'bytes = "4MB", streams = 2, files = 2',
    }
    text = HEAD.format(duration="20s", path="")
    file.write_text(text + "".join(STREAMS.format(program=program, keys=keys[program]) for program in keys))
    wanted = {"iperf3": 3, "pget": 4, "lftp": 2}
    most = dict.fromkeys(keys, 0)
    with begun(file, 6, lambda run: with_data(run, 0) > 0) as (process, run):
        while process.poll() is None and most != wanted:
            # Sources are the even hosts.
            most = {program: max(most[program], with_data(run, 2 * place)) for place, program in enumerate(keys)}
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert most == wanted
    assert "carried data at once" not in out


def with_data(run: str, host: int) -> int:
    """Return how many connections of a host have carried more than commands."""
    seen = sockets(f"elephan-{run}-{host}", "-tin", "state", "connected", "exclude", "fin-wait-2")
    return sum(int(acked) > 32 << 10 for acked in re.findall(r"bytes_acked:(\d+)", seen))


@pytest.mark.usefixtures("installed", "host_stays_as_it_was")
def test_files_go_from_disk_to_disk_and_are_compared(elephan: Elephan, file: Path) -> None:
    keys = ', bytes = "300kB", files = 3, source = "disk", sink = "disk"'
    flows = [name for name in ALL if name != "iperf3"]
    text = HEAD.format(duration="20s", path="loss = { packets = [200] }")
    file.write_text(text + "".join(STREAMS.format(program=name, keys=keys.removeprefix(", ")) for name in flows))
    done = elephan("run", file, "--on", "kernel", "--json", "--no-report")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    for flow in record["flows"]:
        # rclone fills the last SFTP request of each file.
        assert 300_000 <= flow["delivered_bytes"] < 300_000 + 3 * (32 << 10) + 10_000, flow
        assert flow["completion_s"] > 0
    assert not [note for note in record["notes"] if "carried data at once" in note]
    assert record["host"]["programs_disk"].startswith("/var/tmp (")


def test_the_simulator_plays_a_program_as_bulk_and_says_so(file: Path) -> None:
    write(file, ("iperf3", "ftp"), 'bytes = "2MB"')
    (record,) = api.run(file, on="sim", store="none").records
    assert record.notes == [
        "iperf3 was simulated as a bulk flow: what the program itself does is not in it",
        "ftp was simulated as a bulk flow of 2000000 bytes: what the program itself does is not in it",
    ]
    (iperf3, ftp) = record.flows
    assert (iperf3["workload"], ftp["workload"], ftp["delivered_bytes"]) == ("iperf3", "ftp", 2_000_000)
    # A second of the line at most.
    assert 100_000 < iperf3["delivered_bytes"] < 5_000_000


# Failures and their remains


def running(file: Path) -> AbstractContextManager[tuple[subprocess.Popen[str], str]]:
    """Begin a run of one program's flow and wait until that one sends; its process and its id."""
    return begun(file, 2, carries)


def carries(run: str) -> bool:
    """Return True if bytes were acknowledged under the run's own control: a server's answers have the host's."""
    seen = sockets(f"elephan-{run}-0", "-tin", "state", "established")
    return f"elephan_k{run[:4]}00" in seen and "bytes_acked" in seen


def gone(run: str) -> bool:
    folders = [testbed.folder_of(run, parent) for parent in (testbed.FOLDERS, testbed.DISK_FOLDERS)]
    return left_of(run) == [] and not any(folder.exists() for folder in folders)


@pytest.mark.usefixtures("installed", "host_stays_as_it_was")
def test_a_program_that_fails_is_an_error_with_its_own_words(file: Path) -> None:
    with running(write(file, ("scp",), 'bytes = "1GB"')) as (process, run):
        assert testbed.folder_of(run).is_dir()
        # The server may be about to begin a process for the connection.
        while left := testbed.processes([f"elephan-{run}-1"]):
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        _, errors = process.communicate(timeout=30)
        # Beside it there may be progress.
        last = errors.splitlines()[-1]
        assert process.returncode == 1 and last.startswith("error: flow scp: scp: exit status: "), errors
        assert "onnection" in last
        assert gone(run)


@pytest.mark.usefixtures("installed", "host_stays_as_it_was")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_programs_and_their_files_go_with_the_run(elephan: Elephan, file: Path, number: signal.Signals) -> None:
    program = "pget" if number == signal.SIGKILL else "rsync"
    with running(write(file, (program,), 'bytes = "1GB", sink = "disk"')) as (process, run):
        programs_there = testbed.processes(testbed.namespaces_of(run))
        written = [path.name for path in (testbed.folder_of(run) / "0" / "source").iterdir()]
        assert len(programs_there) >= 2 and "source" in written
        assert (testbed.folder_of(run, testbed.DISK_FOLDERS) / "0").is_dir()
        process.send_signal(number)
        process.communicate(timeout=30)
        if number == signal.SIGKILL:
            assert testbed.folder_of(run).exists()
            assert elephan("path", "clean").returncode == 0
        assert gone(run)
        assert end(programs_there)
        until(lambda: not naming(str(testbed.folder_of(run))))


def naming(folder: str) -> list[int]:
    """Return the processes whose command lines name a folder: a server may have moved to another namespace."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder in (process / "cmdline").read_text(errors="replace"):
                found.append(int(process.name))
    return found


@pytest.mark.usefixtures("installed", "host_stays_as_it_was")
def test_a_run_that_ends_before_its_programs_leaves_none_of_them(file: Path) -> None:
    flows = tuple(name for name in ALL if name != "lftp")
    write(file, flows, 'bytes = "10GB"', duration="3s")
    # Servers listen before the run's time begins; iperf3's command line names no file.
    servers = len(flows) - 1
    with begun(file, 2 * len(flows), lambda run: len(naming(str(testbed.folder_of(run)))) >= servers) as begun_:
        process, run = begun_
        folder = str(testbed.folder_of(run))
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert "had arrived at the end" in out
    assert gone(run)
    until(lambda: not naming(folder))


# Refusals, and the translation of each key; needs neither root nor a run

MACHINE = Machine((6, 18), frozenset({"tcp_rto_max_ms"}), frozenset(c for needs in NEEDS.values() for c in needs))


@pytest.mark.parametrize(
    ("program", "command", "package"),
    [("scp", "sshd", "openssh-server"), ("rsync", "rsync", "rsync"), ("rclone", "rclone", "rclone")]
    + [("lftp", "lftp", "lftp"), ("pget", "vsftpd", "vsftpd"), ("sftp", "sftp", "openssh-client")],
)
def test_a_program_that_is_not_installed_is_named_with_its_package(
    file: Path, program: str, command: str, package: str
) -> None:
    without = Machine(MACHINE.release, MACHINE.sysctls, MACHINE.commands - {command})
    line = f"flow {program}: {program} needs {command}, which is not installed: apt-get install {package}$"
    with pytest.raises(InputError, match=line):
        layout(write(file, (program,), 'bytes = "1MB"'), without)


def test_every_program_has_hosts_of_its_own(file: Path) -> None:
    found = layout(write(file, ALL, 'bytes = "1MB"'), MACHINE)
    assert found.ends == tuple((2 * number, 2 * number + 1) for number in range(len(ALL))) and len(found.controls) == 1


@pytest.mark.parametrize(
    ("more", "sysctl", "value"),
    [
        ('window = "1MB"', "tcp_rmem", "4096 1591161 1591161"),
        ('send_buffer = "4MB"', "tcp_wmem", "4096 5000000 5000000"),
        ('rto_max = "60s"', "tcp_rto_max_ms", "60000"),
        ('window = "1MB"\nreceive_autotuning = true', "tcp_rmem", "4096 131072 4000000"),
    ],
)
def test_what_is_an_option_of_own_sockets_is_the_namespaces(file: Path, more: str, sysctl: str, value: str) -> None:
    found = layout(write(file, ("ftp",), 'bytes = "1MB"', more=more), MACHINE)
    assert [host.sysctls[sysctl] for host in found.hosts] == [value, value]


def test_pacing_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match="flow ftp: pacing = true"):
        layout(write(file, ("ftp",), 'bytes = "1MB"', more="pacing = true"), MACHINE)


@pytest.mark.parametrize(
    ("name", "size", "more", "words"),
    [
        ("scp", "", "", "the size of the file that scp sends"),
        ("ftp", 'duration = "5s"', "", "the size of the file that ftp sends"),
        ("scp", 'bytes = "1MB", duration = "5s"', "", "scp ends with its file"),
        ("iperf3", 'bytes = "1MB"', "", "iperf3 ends when it has written them"),
        ("iperf3", 'duration = "1500ms"', "", "whole seconds"),
        ("scp", 'bytes = "1MB"', 'stop = "2s"', "a program ends by itself"),
        ("bbftp", 'bytes = "1MB"', "", 'one of "iperf3", "scp", "sftp", "rsync"'),
    ],
)
def test_a_scenario_that_a_program_cannot_follow(file: Path, name: str, size: str, more: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        load(write(file, (name,), size, more=more)).points()[0].to_spec()
    assert words in str(refused.value)
