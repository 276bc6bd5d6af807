"""Loads by depth and connections on a real target, and the knee that is marked among them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from elephan.cli.main import call
from elephan.report.knee import METHOD, LoadPoint, knee_of
from tests.iscsi.conftest import Target


def test_a_sweep_measures_each_depth_with_each_number_of_connections_and_marks_the_knee(
    target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--duration", "100ms", "--depth", "8,1,64", "--connections", "2,1", "--size", "4KiB"]
    assert call(["iscsi", "bench", target.url, *options]) == 0
    text = capsys.readouterr()
    heads, *lines = text.out.splitlines()
    assert heads.split() == [
        *("connections", "depth", "throughput", "per", "second", "read", "p50", "read", "p99"),
    ]
    rows = [line.split() for line in lines[:6]]
    assert [row[:2] for row in rows] == [[str(n), str(depth)] for n in (1, 2) for depth in (1, 8, 64)]
    assert sum(row[-1] == "knee" for row in rows) == 1
    assert f"knee: {METHOD}" in text.out
    assert len(text.err.splitlines()) == 6


def test_the_knee_in_json_is_that_of_the_points_beside_it(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    done = mixed_sweep(target, capsys, "100ms")
    loads = []
    for point in done["points"]:
        kinds = [point["reads"], point["writes"]]
        assert all(0 < kind["latency_p50_ns"] <= kind["latency_p99_ns"] <= kind["latency_max_ns"] for kind in kinds)
        moved = sum(kind["bytes"] for kind in kinds) / (point["elapsed_ns"] / 1e9)
        loads.append(LoadPoint(point["depth"], point["connections"], moved, mean_latency_s(point)))
    knee = knee_of(loads)
    assert knee is not None
    assert done["knee"] == {"depth": loads[knee.index].depth, "connections": loads[knee.index].connections}


@pytest.mark.measures_time
def test_latencies_and_rates_of_a_sweep_agree_by_littles_law(
    target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mean time is the number of outstanding commands over the rate, unless the sender is kept from sending."""
    for point in mixed_sweep(target, capsys, "300ms")["points"]:
        rate_per_s = sum(point[kind]["done"] for kind in ("reads", "writes")) / (point["elapsed_ns"] / 1e9)
        assert mean_latency_s(point) == pytest.approx(point["depth"] / rate_per_s, rel=0.2)


def mixed_sweep(target: Target, capsys: pytest.CaptureFixture[str], duration: str) -> dict[str, Any]:
    """Return what a sweep of reads and writes over six loads says in JSON."""
    options = ["--duration", duration, "--depth", "1,8,64", "--connections", "1,2", "--reads", "50", "--overwrite"]
    assert call(["iscsi", "bench", target.url, *options, "--json"]) == 0
    done: dict[str, Any] = json.loads(capsys.readouterr().out)
    return done


def mean_latency_s(point: dict[str, Any]) -> float:
    """Return the mean time of a command, of reads and writes together, in s."""
    kinds = [point["reads"], point["writes"]]
    total_ns: float = sum(kind["done"] * kind["latency_mean_ns"] for kind in kinds)
    return total_ns / sum(kind["done"] for kind in kinds) / 1e9


def test_one_load_has_no_knee(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--duration", "50ms", "--depth", "4", "--connections", "1", "--json"]
    assert call(["iscsi", "bench", target.url, *options]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (len(done["points"]), done["knee"]) == (1, None)


def test_more_connections_than_the_target_allows_are_measured_once_and_named(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Target(image, "--set", "max_connections=2")
    try:
        options = ["--duration", "50ms", "--depth", "1,8", "--connections", "1,4,8"]
        assert call(["iscsi", "bench", running.url, *options]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[:2] for line in lines[1:5]] == [["1", "1"], ["1", "8"], ["2", "1"], ["2", "8"]]
        assert "note: the target allows a session 2 connections (MaxConnections): more were not measured" in lines
    finally:
        running.kill()


def test_a_sweep_names_the_points_at_which_the_command_window_was_the_limit(
    image: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Target(image, "--command-window", "8")
    try:
        options = ["--duration", "200ms", "--size", "4KiB", "--depth", "4,32", "--connections", "1"]
        assert call(["iscsi", "bench", running.url, *options]) == 0
        (note,) = [line for line in capsys.readouterr().out.splitlines() if "command window" in line]
        assert note.startswith("note: depth 32, connections 1: the target's command window of 8")
    finally:
        running.kill()


@pytest.mark.parametrize("ending", ["load", "target"])
def test_a_sweep_that_ends_early_shows_what_it_measured(target: Target, ending: str) -> None:
    command = [sys.executable, "-c", "from elephan.cli import main; main()", "iscsi", "bench", target.url]
    command += ["--depth", "1,2,4,8,16,32", "--connections", "1", "--duration", "500ms"]
    load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert load.stderr is not None
    # Two points are there when the callback gets the second.
    told = [load.stderr.readline() for _ in range(2)]
    assert told[1].startswith("2 of 6: depth 2")
    time.sleep(0.1)
    if ending == "load":
        load.send_signal(signal.SIGTERM)
    else:
        target.kill()
    text, error = load.communicate(timeout=60)
    assert [line.split()[1] for line in text.splitlines()[1:3]] == ["1", "2"]
    assert f"knee: {METHOD}" in text
    assert load.returncode == (130 if ending == "load" else 1)
    assert "before its time" in error.splitlines()[-1]
