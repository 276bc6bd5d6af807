"""Programs over UDP as the traffic of flows: libudt's, built from elephan's own source, and SRT's srt-file-transmit."""

from __future__ import annotations

import json
import os
import re
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from elephan import api
from elephan.api import jobs_of, load
from elephan.backends import programs
from elephan.backends.kernel.mapping import Machine
from elephan.backends.kernel.plan import layout_of
from elephan.backends.programs import Ends, Place, built, ends_of
from elephan.backends.programs.requirements import NEEDS
from elephan.errors import InputError, RunError
from elephan.path import testbed
from elephan.scenario.program import PROGRAMS
from tests.kernel_backend.conftest import Elephan, begun, left_of, sockets
from tests.processes import until

OVER_UDP = tuple(name for name, traits in PROGRAMS.items() if traits.over_udp)
BYTES = 2_000_001

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
name = "{program}"
workload = {{ kind = "program", program = "{program}", {keys} }}
{more}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "programs.toml"


def write(
    file: Path,
    keys: str = f'bytes = "{BYTES}B"',
    names: tuple[str, ...] = OVER_UDP,
    duration: str = "30s",
    path: str = "",
    more: str = "",
) -> Path:
    flows = [FLOW.format(program=name, keys=keys, more=more) for name in names]
    file.write_text(HEAD.format(duration=duration, path=path) + "".join(flows), encoding="utf-8")
    return file


@pytest.fixture
def installed(kernel: None) -> None:
    for program in OVER_UDP:
        lacking = programs.lacks(program, programs.installed())
        if lacking:
            pytest.skip(lacking)


# Runs


@pytest.mark.usefixtures("installed", "host_stays_as_it_was")
def test_each_delivers_its_bytes_to_the_byte_over_a_path_that_loses_some(elephan: Elephan, file: Path) -> None:
    done = elephan(
        "run", write(file, path="loss = { packets = [200, 300] }"), "--on", "kernel", "--json", "--no-report"
    )
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    flows = {flow["name"]: flow for flow in record["flows"]}
    assert flows.keys() == set(OVER_UDP)
    for flow in flows.values():
        assert flow["delivered_bytes"] == BYTES
        assert 8 * BYTES / 40e6 < flow["completion_s"] < 30
        # Nothing of TCP's is told of it.
        assert not {"rtt_min_s", "sent_segments", "retransmitted_segments"} & flow.keys()
    assert {name: flow["congestion_control"] for name, flow in flows.items()} == {"udt": "udt4", "srt": "srt"}
    assert record["links"][0]["dropped_by_loss"] == 2
    assert sum(flow["dropped_packets"] for flow in flows.values()) == record["metrics"]["dropped_packets"]
    assert record["host"]["programs"].keys() == {"srt-file-transmit"}


@pytest.mark.usefixtures("installed", "host_stays_as_it_was")
def test_a_file_goes_from_disk_to_disk_and_is_compared(elephan: Elephan, file: Path) -> None:
    keys = f'bytes = "{BYTES}B", source = "disk", sink = "disk", files = 2'
    done = elephan("run", write(file, keys), "--on", "kernel", "--json", "--no-report")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    assert [flow["delivered_bytes"] for flow in record["flows"]] == [BYTES] * len(OVER_UDP)
    assert [note for note in record["notes"] if "files = 2" in note] == [
        f"flow {name}: files = 2: {name} sends one file, of all bytes" for name in OVER_UDP
    ]


@pytest.mark.usefixtures("installed", "host_stays_as_it_was")
def test_large_packets_are_udts_and_srt_keeps_its_own(elephan: Elephan, file: Path) -> None:
    done = elephan(
        "run", write(file), "--set", "path.mtu=9000B", "--on", "kernel", "--json", "--no-report", "--store", "none"
    )
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    assert [flow["delivered_bytes"] for flow in record["flows"]] == [BYTES] * len(OVER_UDP)
    assert [note for note in record["notes"] if "mtu" in note] == [
        "flow srt: mtu = 9000B: srt has packets of 1500B at most"
    ]


@pytest.mark.usefixtures("installed", "host_stays_as_it_was")
def test_a_run_that_ends_first_has_what_arrived_until_then_and_leaves_nothing(file: Path) -> None:
    write(file, 'bytes = "1GB"', duration="3s")
    with begun(file, 2 * len(OVER_UDP), bound) as (process, run):
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert "of 1000000000 bytes had arrived at the end" in out
    until(lambda: left_of(run) == [] and not testbed.folder_of(run).exists())


def bound(run: str) -> bool:
    """Return True if the receivers of a run have their ports: they are the odd hosts."""
    return all(sockets(f"elephan-{run}-{2 * number + 1}", "-lun") for number in range(len(OVER_UDP)))


@pytest.mark.usefixtures("installed", "host_stays_as_it_was")
@pytest.mark.parametrize(
    ("program", "host", "words"),
    [
        # srt-file-transmit ends well when its receiver closes in the middle.
        ("srt", 1, r"it ended as if all had been sent, and \d+ of 1000000000 bytes have arrived"),
        ("udt", 0, r"signal: 15 \(SIGTERM\)"),
    ],
)
def test_a_transfer_that_breaks_off_is_an_error(file: Path, program: str, host: int, words: str) -> None:
    write(file, 'bytes = "1GB"', names=(program,), duration="60s")
    with begun(file, 2, lambda run: bool(sockets(f"elephan-{run}-0", "-una"))) as (process, run):
        for pid in testbed.processes([f"elephan-{run}-{host}"]):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1, errors
    assert re.fullmatch(f"error: flow {program}: {program}: {words}", errors.splitlines()[-1]), errors


def test_the_simulator_plays_them_as_bulk_of_udt4_and_says_so(file: Path) -> None:
    (record,) = api.run(write(file), on="sim", store="none").records
    assert record.notes == [
        f"udt was simulated as a bulk flow of {BYTES} bytes of UDT4: what the program itself does is not in it",
        f"srt was simulated as a bulk flow of {BYTES} bytes of UDT4, of which its file mode has a modified control: "
        "what the program itself does is not in it",
    ]
    assert [flow["delivered_bytes"] for flow in record.flows] == [BYTES] * 2


# Command lines and refusals; needs neither root nor a run

MACHINE = Machine((6, 18), frozenset(), frozenset(c for needs in NEEDS.values() for c in needs))


def ends(folder: Path, program: str, window: int = 1_000_000, mtu: int = 1500) -> Ends:
    flow: Any = {
        "name": "backup",
        "group": 0,
        "start_ns": 0,
        "stop_ns": None,
        "transport": {"window_bytes": window, "mtu_bytes": mtu},
        "workload": {"kind": "program", "program": program, "bytes": 1_000_001, "files": 3},
    }
    near, far = (
        Place(address, str(folder / role), str(folder / "disk"), f"/{role}/{{}}".format)
        for address, role in (("192.0.2.1", "near"), ("192.0.2.2", "far"))
    )
    return ends_of(flow, near, far, 10_000, 10_000_000_000, folder)


def test_the_window_and_the_mtu_of_the_flow_are_the_programs(tmp_path: Path) -> None:
    udt = ends(tmp_path, "udt", mtu=9000)
    assert udt.client.words[1:7] == ("send-file", "192.0.2.2", "10000", "1000000", "9000", "1000001")
    srt = ends(tmp_path, "srt", mtu=9000)
    for end in (srt.server, srt.client):
        # Of SRT 1.5.1 no more than 1500.
        assert "-chunk:1456" in end.words
        assert "transtype=file&mss=1500&fc=679&rcvbuf=1000000&sndbuf=2000000" in " ".join(end.words)
    # Least flow window of SRT, and the most that an int holds.
    assert "fc=32&" in " ".join(ends(tmp_path, "srt", window=1000).client.words)
    assert "sndbuf=2147483647" in " ".join(ends(tmp_path, "srt", window=1 << 31).client.words)
    for made in (udt, srt):
        assert made.sent is not None and made.sent.sizes == (1_000_001,) and made.over_udp


@pytest.mark.parametrize(
    ("program", "command", "words"),
    [
        ("udt", "g++", "g[+][+], which is not installed: apt-get install g[+][+]$"),
        ("udt", built.HEADER, "udt/udt.h, which is not installed: apt-get install libudt-dev$"),
        ("srt", "srt-file-transmit", "srt-file-transmit, which is not installed: apt-get install srt-tools$"),
    ],
)
def test_what_is_not_installed_is_named_with_its_package(file: Path, program: str, command: str, words: str) -> None:
    without = Machine(MACHINE.release, MACHINE.sysctls, MACHINE.commands - {command})
    (job,) = jobs_of(load(write(file, names=(program,))), backend="kernel")
    with pytest.raises(InputError, match=f"flow {program}: {program} needs {words}"):
        layout_of(job.spec, without)


@pytest.mark.parametrize(
    ("keys", "more", "words"),
    [
        ('duration = "5s"', "", "the size of the file that udt sends"),
        ('bytes = "1MB"', 'transport = "tcp"', "udt brings its own transport"),
        ('bytes = "1MB"', 'transport = "udt-2003"', "udt brings its own transport"),
        ('bytes = "1MB"', 'stop = "2s"', "a program ends by itself"),
    ],
)
def test_a_scenario_that_a_program_cannot_follow(file: Path, keys: str, more: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        load(write(file, keys, names=("udt",), more=more)).points()[0].to_spec()
    assert words in str(refused.value)


def test_keys_of_tcp_mean_nothing_to_them(file: Path) -> None:
    (job,) = jobs_of(load(write(file, more="pacing = true")), backend="kernel")
    found = layout_of(job.spec, MACHINE)
    assert all(not host.sysctls and not host.route for host in found.hosts) and found.notes == ()


# The program on libudt


def test_it_is_built_once_for_a_source_and_kept_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = programs.lacks("udt", programs.installed())
    if lacking:
        pytest.skip(lacking)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built.udt.cache_clear()
    try:
        first = built.udt()
        time_ns = os.stat(first).st_mtime_ns
        built.udt.cache_clear()
        assert built.udt() == first and os.stat(first).st_mtime_ns == time_ns
        assert [path.name for path in (tmp_path / "elephan" / "programs").iterdir()] == [Path(first).name]
        source = tmp_path / "udt.cc"
        source.write_text("#error not for this compiler\n")
        monkeypatch.setattr(built, "SOURCE", source)
        built.udt.cache_clear()
        with pytest.raises(RunError, match=r"udt.cc cannot be built \(Debian packages g\+\+ and libudt-dev\)"):
            built.udt()
    finally:
        built.udt.cache_clear()
