"""Workload `program`: its keys, what the simulator plays, and notes on keys that a program cannot follow."""

from __future__ import annotations

from typing import Any

import pytest

from elephan import api
from elephan.scenario.problem import ScenarioError
from elephan.scenario.program import PROGRAMS, notes_of, streams_of
from tests.scenario.conftest import BASE, NETWORK, Load

EVENT = """
[[event]]
when = { flow = "one", reaches = "1Mbit/s" }
link_down = "b-d"
"""


def workload(program: str, keys: str = "") -> str:
    amount = "" if program == "iperf3" else ', bytes = "8MB"'
    return f'flow.workload={{ kind = "program", program = "{program}"{amount}{keys} }}'


def flows(scenario: Load, *changes: str, runs_programs: bool = True) -> list[dict[str, Any]]:
    (point,) = scenario(BASE, *changes).points()
    return point.to_spec(runs_programs=runs_programs)["flows"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_keys_that_are_not_given_are_absent_so_that_stored_runs_keep_their_ids(scenario: Load, program: str) -> None:
    (flow,) = flows(scenario, workload(program))
    assert flow["workload"] == {
        "kind": "program",
        "program": program,
        "bytes": None if program == "iperf3" else 8_000_000,
    }
    assert notes_of([flow]) == []


def test_all_keys_reach_the_specification(scenario: Load) -> None:
    keys = ', files = 4, streams = 2, buffer = "64KiB", requests = 16, source = "disk", sink = "disk"'
    (flow,) = flows(scenario, workload("rclone", keys))
    assert flow["workload"] == {
        "kind": "program",
        "program": "rclone",
        "bytes": 8_000_000,
        "files": 4,
        "streams": 2,
        "buffer_bytes": 65_536,
        "requests": 16,
        "source": "disk",
        "sink": "disk",
    }
    assert notes_of([flow]) == []


@pytest.mark.parametrize(
    ("program", "keys", "streams"),
    [
        ("iperf3", ", streams = 3", 3),
        ("pget", ", streams = 3", 3),
        ("rclone", ", streams = 3, files = 9", 3),
        ("lftp", ", streams = 3, files = 2", 2),
        ("scp", ", streams = 3, files = 9", 1),
    ],
)
def test_a_program_is_one_flow_where_it_runs_and_its_streams_are_connections_where_it_is_simulated(
    scenario: Load, program: str, keys: str, streams: int
) -> None:
    (flow,) = flows(scenario, workload(program, keys))
    assert streams_of(flow["workload"]) == streams and "distribution" not in flow
    played = flows(scenario, workload(program, keys), runs_programs=False)
    assert [one["workload"] for one in played] == [flow["workload"]] * streams
    names = ["backup"] if streams == 1 else [f"backup.{number}" for number in range(1, streams + 1)]
    assert [one["name"] for one in played] == names
    assert {one.get("distribution") for one in played} == {"striped" if streams > 1 and program != "iperf3" else None}


@pytest.mark.parametrize(
    ("program", "keys", "note"),
    [
        ("scp", ", streams = 4", "streams = 4: scp has one connection for data; the flow's connections = 4 starts 4"),
        ("rclone", ", streams = 4", "streams = 4: rclone has a connection for each file at a time, and files = 1"),
        ("rsync", ', buffer = "64KiB"', "buffer = 65536B: rsync has no option for it, and keeps its own"),
        ("sftp", ', buffer = "1MiB"', "buffer = 1048576B: sftp has 261120B, the nearest that it takes"),
        ("ftp", ', buffer = "1KiB"', "buffer = 1024B: ftp has 4096B, the nearest that it takes"),
        ("ftp", ', buffer = "8KiB"', "buffer = 8192B is vsftpd's, which receives; curl's own stays 64 KiB"),
        ("pget", ', buffer = "1MiB"', "buffer = 1048576B: pget has no option for it, and keeps its own"),
        ("pget", ", requests = 8", "requests = 8: pget has no option for it"),
        ("iperf3", ', sink = "disk"', 'sink = "disk": iperf3 reads and writes memory alone'),
        ("iperf3", ", files = 2", "files = 2: iperf3 sends no files"),
    ],
)
def test_a_key_that_a_program_cannot_follow_is_a_note(scenario: Load, program: str, keys: str, note: str) -> None:
    notes = notes_of(flows(scenario, workload(program, keys)))
    assert any(one.startswith(f"flow backup: {note}") for one in notes), notes


def test_a_note_names_the_flow_and_not_each_of_its_connections(scenario: Load) -> None:
    given = flows(scenario, workload("rsync", ', buffer = "1KiB"'), "flow.connections=3")
    assert notes_of(given) == ["flow backup: buffer = 1024B: rsync has no option for it, and keeps its own"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([workload("pget", ", streams = 2"), "flow.connections=2"], "flow.backup.connections = 2: 1, as"),
        ([workload("scp", ", files = 10000"), "flow.workload.bytes=9kB"], "files = 10000: at most 9000"),
        (
            [workload("scp", ", files = 8"), "flow.workload.bytes=9B", "flow.connections=2"],
            "connections = 2: at most 1",
        ),
        ([workload("scp", ", streams = 0")], "streams = 0: "),
        ([workload("scp", ', source = "tape"')], 'source = "tape": one of "memory", "disk"'),
        ([workload("bbftp")], 'one of "iperf3", "scp", "sftp", "rsync", "rsyncd", "rclone", "ftp", "lftp", "pget"'),
    ],
)
def test_keys_that_cannot_be_are_refused(scenario: Load, changes: list[str], words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        scenario(BASE, *changes)
    assert words in str(refused.value)


def test_a_program_of_several_streams_is_no_flow_to_wait_for(scenario: Load) -> None:
    with pytest.raises(ScenarioError, match="when.flow.*workload.streams = 1"):
        scenario(NETWORK + EVENT, workload("pget", ", streams = 2"))


def test_streams_share_the_bytes_in_the_simulator_and_a_note_says_so(scenario: Load) -> None:
    loaded = scenario(BASE, workload("pget", ", streams = 4"), "run.stop_when_done=true", "path.loss=1e-4")
    (record,) = api.run(loaded.file, list(loaded.overrides), store="none").records
    assert sum(flow["delivered_bytes"] for flow in record.flows) == 8_000_000
    assert all(flow["delivered_bytes"] > 500_000 and flow["workload"] == "pget" for flow in record.flows)
    assert record.metrics["completion_s"] > 0
    assert record.notes[0] == (
        "pget was simulated as a bulk flow of 8000000 bytes over 4 connections that share it: "
        "what the program itself does is not in it"
    )
