"""`elephan run --dry-run`: what a sweep would do and how long it takes; nothing is made."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from elephan import api
from elephan.cli.main import call
from elephan.store import Store
from elephan.sweep import dry_run
from elephan.sweep.costs import Estimate

SWEEP = """
name = "planned"
[run]
duration = "{duration}"
repetitions = 2
[path]
bandwidth = "20Mbit/s"
rtt = "20ms"
[[flow]]
name = "copy"
[sweep]
"flow.congestion_control" = ["reno", "cubic"]
"path.rtt" = ["10ms", "20ms", "30ms"]
"""

Plan = Callable[..., dict[str, object]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a working folder with a sweep of twelve runs, and a store that is not there yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELEPHAN_STORE", str(tmp_path / "results.sqlite"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "planned.toml").write_text(SWEEP.format(duration="1s"))
    return tmp_path


@pytest.fixture
def planned(folder: Path, capsys: pytest.CaptureFixture[str]) -> Plan:
    """Call the command with --dry-run --json; give what it prints."""

    def plan(*arguments: str) -> dict[str, object]:
        assert call(["run", "planned.toml", "--dry-run", "--json", *arguments]) == 0
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    return plan


def content(folder: Path) -> dict[str, tuple[int, int]]:
    """Return every file with its size and time."""
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_it_names_runs_loops_store_backend_and_time_and_makes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(folder)
    assert call(["run", "planned.toml", "--dry-run"]) == 0
    shown = capsys.readouterr()
    first, store, sim, last = shown.out.splitlines()
    assert first == (
        "planned: 12 runs: flow.congestion_control (2) > path.rtt (3), outer loop first; 2 repetitions of each point"
    )
    assert store == f"store: sqlite:///{folder}/results.sqlite, not there yet"
    assert sim.startswith("sim: 0 of 12 runs stored, 12 to run, ") and "points tried here" in sim
    assert last == "dry run: nothing was stored"
    assert shown.err == ""
    assert content(folder) == before


def test_stored_runs_are_counted_and_their_times_are_taken(folder: Path, planned: Plan) -> None:
    api.run("planned.toml", {"path.rtt": "10ms"})
    # Runs of the same points, some of them: those of one RTT are 4 of 12.
    with Store(str(folder / "results.sqlite")) as store:
        assert store.count() == 4
    before = content(folder)
    plan = planned()
    (sim,) = plan["forecasts"]  # type: ignore[misc]
    assert (sim["runs"], sim["stored"], sim["to_run"]) == (12, 4, 8)
    assert content(folder) == before
    api.run("planned.toml")
    (sim,) = planned()["forecasts"]  # type: ignore[misc]
    assert (sim["stored"], sim["to_run"], sim["seconds"]) == (12, 0, 0)
    # Other seeds of the same points: all times are known, and nothing is tried.
    (sim,) = planned("--seed", "100")["forecasts"]  # type: ignore[misc]
    assert (sim["stored"], sim["to_run"]) == (0, 12)
    assert sim["basis"] == "from 12 stored runs of this kind"
    with Store(str(folder / "results.sqlite")) as store:
        cpu_s = sum(float(record.metrics["cpu_s"] or 0) for record in store.list())
    expected = cpu_s / sim["at_once"] + 12 * dry_run.OVERHEAD_S
    assert sim["least_s"] <= sim["seconds"] <= sim["most_s"]
    assert sim["seconds"] == pytest.approx(expected, rel=0.5)
    # Another length is another kind.
    (sim,) = planned("--set", "run.duration=2s")["forecasts"]  # type: ignore[misc]
    assert "stored runs" not in sim["basis"]
    (sim,) = planned("--again")["forecasts"]  # type: ignore[misc]
    assert (sim["stored"], sim["to_run"]) == (0, 12)


def test_points_that_take_long_are_stopped_and_tell_their_time(
    folder: Path, planned: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day of 20 Mbit/s takes minutes: the two seconds of trying show which."""
    monkeypatch.setattr(dry_run, "TRY_S", 2.0)
    (folder / "planned.toml").write_text(
        SWEEP.format(duration="86400s").replace(
            'name = "copy"', 'name = "copy"\n[flow.workload]\nkind = "constant_rate"\nload = "15Mbit/s"'
        )
    )
    began_s = time.monotonic()
    (sim,) = planned()["forecasts"]  # type: ignore[misc]
    assert time.monotonic() - began_s < 20
    assert sim["seconds"] > 60
    assert sim["least_s"] < sim["seconds"] < sim["most_s"]


def test_a_copy_that_is_stopped_tells_its_time_by_its_bytes(
    folder: Path, planned: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its duration is a bound, 10,000 times as far off."""
    monkeypatch.setattr(dry_run, "TRY_S", 1.0)
    text = SWEEP.format(duration="10000h").replace(
        'name = "copy"', 'name = "copy"\nworkload = { kind = "bulk", bytes = "4GB" }'
    )
    (folder / "planned.toml").write_text(text.replace("[path]", "exact = true\n[path]"))
    (sim,) = planned()["forecasts"]  # type: ignore[misc]
    assert sim["basis"].endswith("tried here")
    began_s = time.monotonic()
    api.run("planned.toml", {"path.rtt": "10ms", "flow.congestion_control": "reno"}, store="none")
    took_s = (time.monotonic() - began_s) / 2
    # Wide, for a busy machine may hold up either; by its duration it would be 40,000 times as much.
    assert sim["least_s"] * sim["at_once"] / 12 < took_s * 100


def test_no_estimate_is_given_where_points_differ_by_too_much() -> None:
    looked = dry_run._Looked(4, [0, 1, 2, 3], [0, 1, 2, 3], 0.0)
    wide = dry_run._forecast("sim", looked, 2, Estimate(3600.0, 60.0, 3600.0 * 2 * dry_run.WIDEST), "from 4 points")
    assert (wide.seconds, wide.least_s, wide.most_s) == (None, 60.0, None)
    assert str(wide).endswith("at least 60.0 s, from 4 points, which differ by too much for more")


def test_a_real_network_takes_real_time(folder: Path) -> None:
    scenario = api.load("planned.toml", {"run.duration": "30s"})
    plan = dry_run.plan(
        scenario,
        {"kernel": api.jobs_of(scenario, backend="kernel")},
        store=None,
        workers=None,
        again=False,
        threads=None,
    )
    (kernel,) = plan.forecasts
    least, usual, most = (12 * (30 + value) for value in dry_run.SET_UP_S)
    assert (kernel.least_s, kernel.seconds, kernel.most_s) == pytest.approx((least, usual, most))
    assert kernel.at_once == 1 and kernel.to_run == 12


def test_a_store_that_is_not_elephans_yet_is_left_as_it_is(folder: Path, planned: Plan) -> None:
    (folder / "results.sqlite").write_bytes(b"")
    before = content(folder)
    plan = planned()
    (sim,) = plan["forecasts"]  # type: ignore[misc]
    assert sim["stored"] == 0 and "no run counts as stored" in str(plan["store"])
    assert content(folder) == before


def test_wrong_input_is_refused_as_by_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["run", "planned.toml", "--dry-run", "--set", "path.rtt=5"]) == 2
    assert "a time with a unit" in capsys.readouterr().err
    assert os.listdir(folder) == ["planned.toml"]
