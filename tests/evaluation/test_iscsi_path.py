"""The measurement of the iSCSI paper's figure 6 over the kernel: what is left to do, and what its lines say."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from evaluation.performance import iscsi_path
from evaluation.performance.iscsi_point import Point


def _line(point: Point, rate: float = 5.0, faults: Sequence[str] = ()) -> dict[str, Any]:
    side = {"TcpRetransSegs": 3, "TcpExtTCPTimeouts": 1}
    return {
        "key": point.key,
        "point": asdict(point),
        "MBps": rate,
        "reads_MBps": rate / 2,
        "writes_MBps": rate / 2,
        "queue_drops": [1, 2],
        "tcp": [side, side],
        "faults": list(faults),
        "emulator": {"emulator_late_p99_s": 3e-5, "emulator_own_drops": 0, "emulator_cpu_share": 0.25},
        "machine": {"busy_share": 0.5, "steal_share": 0.0, "waited_share": 0.1, "load": 1.0},
        "date": "2026-11-26T10:00:00+00:00",
        "kernel": "6.18",
        "version": "0.1.0",
    }


def test_the_same_command_goes_on_where_it_was_ended(tmp_path: Path) -> None:
    points = list(iscsi_path.grid(["base"], 2, 30))
    assert len(points) == 2 * 4 * 6
    assert len({point.key for point in points}) == len(points)
    file = tmp_path / "runs.jsonl"
    iscsi_path.append(file, _line(points[0]))
    iscsi_path.append(file, _line(points[1], faults=["late"]))
    iscsi_path.append(file, _line(points[2], faults=["late"]))
    iscsi_path.append(file, _line(points[2], faults=["late"]))
    with file.open("a") as out:
        out.write('{"key": "cut off')
    left = iscsi_path.to_do(iter(points), iscsi_path.lines_of(file))
    assert left == [points[1], *points[3:]], "done, or tried twice, is not done again"


def test_a_run_that_the_emulator_did_not_honour_is_not_used(tmp_path: Path) -> None:
    lines = [_line(Point("reno", 1, repetition=n), rate) for n, rate in ((1, 5.0), (2, 6.0), (3, 7.0))]
    lines += [_line(Point("reno", 1, repetition=4), 99.0, ["late"])]
    text = iscsi_path.tables(lines)
    assert "| reno | 6.00 (5.00 to 7.00) |" in text
    assert "4 runs, 1 of them not honoured by the emulator and not used" in text
    file = tmp_path / "runs.csv"
    iscsi_path.write_csv(lines, file)
    rows = list(csv.DictReader(file.open()))
    assert [(row["MBps"], row["honoured"], row["resent"]) for row in rows][2:] == [
        ("7.000", "yes", "6"),
        ("99.000", "no", "6"),
    ]


def test_each_complete_setting_is_held_against_the_claim() -> None:
    rates = {"reno": 6.0, "fast": 9.0, "bic": 5.0, "htcp": 5.0}
    points = [point for n in (1, 2) for point in iscsi_path.grid(["base"], n, 30)]
    lines = [_line(point, rates[point.control]) for point in points]
    lines += [_line(Point("fast", 1, 8), 4.0)]
    # Of one run no range is known.
    lines += [_line(point, rates[point.control]) for point in iscsi_path.grid(["writes"], 1, 30)]
    text = iscsi_path.orders(lines)
    assert text.splitlines()[0] == "| statement; setting, alpha, repetitions | 50 packets, 20, 2 |"
    assert "| 1 connection: Reno < FAST | holds |" in text
    assert "| BIC: 1 < 2 < 3 < 5 < 8 < 10 connections | not so |" in text
    assert iscsi_path.reference(lines).splitlines()[1] == "fast_1 = [9.00, 9.00]"


def test_a_repetition_that_was_cut_short_is_left_out_and_named() -> None:
    points = list(iscsi_path.grid(["base"], 2, 30))
    lines = [_line(point) for point in points[:-1]]
    kept, cut = iscsi_path.whole(lines)
    assert {line["point"]["repetition"] for line in kept} == {1}
    assert cut == ["base, repetition 2 of 30 s: 23 of 24 points"]
    # One that the emulator did not honour was tried: the others of its repetition count.
    kept, cut = iscsi_path.whole([*lines, _line(points[-1], faults=["late"])])
    assert (len(kept), cut) == (48, [])
    # FAST's other alphas are a stage of their own.
    alphas = [_line(point) for point in iscsi_path.grid(["alpha"], 1, 30)]
    assert iscsi_path.whole([*lines, *alphas])[0] == [*lines[:24], *alphas]


def test_a_window_is_the_routes_and_its_buffer_is_larger() -> None:
    sysctls, route = Point("reno", 1, window_kib=64).limits()
    assert route == "window 65535"
    assert sysctls["tcp_moderate_rcvbuf"] == "0"
    assert int(sysctls["tcp_rmem"].split()[-1]) > 2 * 65536
    assert Point("reno", 1).limits() == ({}, "")
    assert json.loads(json.dumps(asdict(Point("fast", 1, 20))))["alpha"] == 20


def test_an_unknown_stage_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["iscsi_path", "--stages", "base,rest"])
    with pytest.raises(SystemExit):
        iscsi_path.main()
    assert "--stages rest: expected some of base, alpha" in capsys.readouterr().err
