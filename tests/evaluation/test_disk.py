"""The program of docs/results/disk.md: what it needs, and the random requests whose CPU time it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from elephan.disks import replay
from evaluation.fidelity import disk
from evaluation.parts import RESULTS


def test_without_the_data_one_line_says_which_file_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = RESULTS / disk.PAGE
    before = page.read_bytes()
    assert disk.main(["--data", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cheetah9LP.trace: is not there; --data names a folder with DiskSim's" in line
    assert page.read_bytes() == before


def test_random_requests_do_not_wait_for_each_other(tmp_path: Path) -> None:
    trace = tmp_path / "random.trace"
    disk.random_trace(trace, 3000)
    found = replay(trace, disk.CHEETAH)
    assert (found["reads"]["requests"], found["writes"]["requests"]) == (2000, 1000)
    assert found["most_outstanding"] == 1
    assert found["reads"]["service_mean_ns"] > 6e6, "seek and rotation, as of random blocks"


def test_the_speeds_table_has_both_times() -> None:
    text = disk.speed(requests=20_000, turns=1)
    assert "20,000 random requests" in text and "| reading and replaying it |" in text


def test_tables_where_the_measurements_are_to_be_had() -> None:
    if not disk.DATA.exists():
        pytest.skip(f"{disk.DATA} is not there: DiskSim's drives and HP's trace")
    rows = [row.split(" | ") for row in disk.validated(disk.DATA).splitlines()[2:]]
    assert rows[0][4] == "0.1072"
    assert all(float(row[5]) <= 1.05 * float(row[6]) for row in rows), "within 5 % of DiskSim's own"
    assert "| Cheetah 9LP | fcfs | 18.2 | 4.4 | 23.9 | 3.4 |" in disk.week(disk.DATA)
