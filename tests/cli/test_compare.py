"""`elephan compare` from end to end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run

SCENARIO = """
title = "A small copy"

[run]
duration = "20s"

[path]
bandwidth = "20Mbit/s"
rtt = "40ms"

[[flow]]
name = "copy"

[measure]
series = "100ms"

[sweep]
"flow.congestion_control" = ["reno", "cubic"]
"""


@pytest.fixture
def folder(folder: Path) -> Path:
    """With a scenario."""
    (folder / "small.toml").write_text(SCENARIO)
    return folder


CCS = ("--cc", "reno,vegas,storage_friendly(congestion_avoidance=off)")


def test_ccs_are_ranked_with_reasons_and_a_report(elephan: Run, tmp_path: Path) -> None:
    code, out, err = elephan("compare", "small.toml", *CCS, "--out", "report")
    assert code == 0, err
    rows = re.findall(r"^ +(\d) +(\S+(?: \S+=\S+)?) +([\d.]+) Mbit/s", out, re.MULTILINE)
    assert {name.split("(")[0] for _, name, _ in rows} == {"reno", "vegas", "storage_friendly"}
    assert "Ranked by goodput, highest first; within 1 % equal" in out
    assert "a reno neighbour" in out and "why" in out and "█" in out
    assert "report: report/compare.html" in err
    assert {"compare.html", "trade.png", "cwnd.png"} <= {path.name for path in (tmp_path / "report").iterdir()}
    page = (tmp_path / "report" / "compare.html").read_text()
    assert "A small copy: every congestion control" in page and "By goodput all are equal" in page
    none = "None is proposed: no congestion control is better than the others by more than 1 %."
    assert none in out and none in page and "kernel load" not in out + page
    # Both kinds of run are stored, told apart by the scenario's name.
    stored = json.loads(elephan("results", "list", "--json")[1])
    names = [record["scenario"]["name"] for record in stored]
    assert sorted(names) == ["small"] * 3 + ["small-beside-reno"] * 3


def test_json_has_the_numbers_behind_the_words(elephan: Run, tmp_path: Path) -> None:
    code, out, err = elephan("compare", "small.toml", *CCS, "--json", "--seed", "3")
    assert (code, err) == (0, "")
    rows = {row["congestion_control"].split("(")[0]: row for row in json.loads(out)}
    reno, vegas, flood = rows["reno"], rows["vegas"], rows["storage_friendly"]
    assert reno["neighbour_kept"] == 1.0 and reno["by"] == "goodput"
    assert flood["in_use"][0].startswith("elephan kernel load storage_friendly --set congestion_avoidance=off ")
    assert vegas["neighbour_kept"] > 1.25 and "gives way to a reno neighbour" in vegas["why"]
    assert vegas["queue_s"] < reno["queue_s"]
    assert flood["neighbour_kept"] < 0.5 and flood["caused_drops"] > 10 * reno["caused_drops"]
    assert any(text.startswith("overflows queues") for text in flood["why"])
    assert all(len(row["runs_alone"]) == len(row["runs_beside_reno"]) == 1 for row in rows.values())
    (record,) = json.loads(
        elephan("results", "list", "--json", "--where", "flow.neighbour.congestion_control=reno", "--newest", "1")[1]
    )
    assert [flow["name"] for flow in record["flows"]] == ["copy", "neighbour"] and record["seed"] == 3
    assert not (tmp_path / "out").exists()


def test_the_same_command_again_runs_nothing_and_says_the_same(elephan: Run, tmp_path: Path) -> None:
    arguments = ("compare", "small.toml", "--cc", "cubic", "--json", "--set", "run.duration=3s")
    first = elephan(*arguments)[1]
    stored = elephan("results", "list", "--json")[1]
    assert elephan(*arguments)[1] == first
    # Processor times are in the records: run again, they would have changed.
    assert elephan("results", "list", "--json")[1] == stored
    # The yardstick, reno beside reno, is run for it although it was not asked for.
    assert [row["congestion_control"] for row in json.loads(first)] == ["cubic"]
    assert len(json.loads(elephan("results", "list", "--json")[1])) == 3
    assert elephan(*arguments, "--workers", "1", "--store", "none")[1] == first


def test_the_winner_is_put_into_use_and_nobody_is_who_delivered_nothing(elephan: Run, tmp_path: Path) -> None:
    code, out, err = elephan("compare", "small.toml", *CCS, "--by", "drops", "--out", "report")
    assert code == 0, err
    page = (tmp_path / "report" / "compare.html").read_text()
    assert "vegas in use, as root at both ends\n  elephan kernel load vegas " in out
    # The running kernel may have more than Linux 6.16.
    assert re.search(r"    net\.ipv4\.tcp_rmem = \d+ \d+ (\d{8,})\n", out), out
    assert "elephan kernel enable vegas" in page
    out = elephan("compare", "small.toml", "--cc", "reno,cubic", "--set", "path.loss=1", "--no-report")[1]
    assert "note: flow copy: nothing was delivered" in out and "None is proposed" in out


def test_repetitions_are_means_and_a_file_of_ones_own_takes_part(elephan: Run, tmp_path: Path) -> None:
    assert elephan("cc", "new", "mine")[0] == 0
    short = ("--set", "run.duration=3s", "--set", "path.loss=1e-3", "--store", "none")
    code, out, err = elephan("compare", "small.toml", "--cc", "reno,./mine.c", "--json", *short)
    assert code == 0, err
    mine, reno = (
        next(row for row in json.loads(out) if row["congestion_control"] == name) for name in ("mine.c", "reno")
    )
    # The template is Reno: same numbers, same rank.
    assert mine["rank"] == reno["rank"] == 1
    assert mine["goodput_bps"] == reno["goodput_bps"] and mine["neighbour_kept"] == 1.0
    out = elephan("compare", "small.toml", "--cc", "reno", *short, "--set", "run.repetitions=3", "--json")[1]
    (row,) = json.loads(out)
    assert row["repetitions"] == 3 and len(row["runs_alone"]) == 3
    assert row["goodput_bps"] != reno["goodput_bps"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--cc", "renoo"], "no congestion control 'renoo'; there are"),
        (["--cc", "cubic(beta=7)"], "--cc cubic(beta=7): flow.copy.congestion_control.beta"),
        (["--by", "speed"], "--by speed: one of goodput"),
        (
            ["--by", "lag", "--cc", "reno", "--set", "run.duration=1s"],
            '--by lag: no flow of small.toml has a workload of kind "replicate"',
        ),
        (["--set", "sweep.path.loss=[0, 1e-3]"], "small.toml sweeps path.loss: a rank is of one path"),
        (["--store", "/proc/none/x.sqlite"], "--store /proc/none/x.sqlite: cannot keep results there"),
        (["--out", "/proc/none"], "--out /proc/none: cannot write there"),
    ],
)
def test_errors_are_one_line(elephan: Run, arguments: list[str], text: str) -> None:
    code, out, err = elephan("compare", "small.toml", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and text in err and err.count("\n") == 1
