"""A store that elephan 0.1.0 wrote is read, compared and run again by this version (formats/by-0.1.0/README.md)."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from elephan.cli.main import call

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = Path(__file__).parent / "formats" / "by-0.1.0"

FOLDER_THEN = "/src/elephan/"
"""The repository as the records name it."""

CHANGED_SINCE = {"14be87c7075f0476": "latency of the warm-up stands apart (Warm-up for messages)"}
"""Runs that this version simulates differently from 0.1.0: id and the entry of CHANGELOG.md with the reason."""

Run = Callable[..., tuple[int, str, str]]


def stored(column: str, where: str = "1") -> list[str]:
    """Return a column of the runs as 0.1.0 wrote it."""
    connection = sqlite3.connect(f"file:{WRITTEN / 'results.sqlite'}?mode=ro&immutable=1", uri=True)
    values = [value for (value,) in connection.execute(f"select {column} from run where {where} order by scenario, id")]
    connection.close()
    return values


IDS = stored("id")
SIMULATED = stored("id", "ground = 'sim' and id not in (select run_id from metric where name = 'cpu_s' and value > 3)")
"""Those of the simulator that take under 3 s each."""
WITH_SERIES = stored("id", "flow_series is not null")


@pytest.fixture
def elephan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command with a copy of that store, whose input files lie where this repository has them."""
    from elephan.cli.console import console

    shutil.copytree(WRITTEN, tmp_path, dirs_exist_ok=True)
    connection = sqlite3.connect(tmp_path / "results.sqlite")
    with connection:
        connection.execute("update run set record = replace(record, ?, ?)", (FOLDER_THEN, f"{ROOT}/"))
    connection.close()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELEPHAN_STORE", str(tmp_path / "results.sqlite"))

    def run(*arguments: str) -> tuple[int, str, str]:
        console.cache_clear()
        code = call(list(arguments))
        done = capsys.readouterr()
        return code, done.out, done.err

    return run


def test_every_run_is_listed(elephan: Run) -> None:
    code, out, err = elephan("results", "list", "--json")
    assert (code, err) == (0, "")
    assert sorted(record["id"] for record in json.loads(out)) == sorted(IDS)
    code, out, err = elephan("results", "list")
    assert (code, err) == (0, "")
    assert all(scenario in out for scenario in set(stored("scenario")))


def test_every_run_is_shown(elephan: Run) -> None:
    code, out, err = elephan("results", "show", *IDS)
    assert (code, err) == (0, "")
    assert all(run in out for run in IDS)


def test_every_record_and_its_series_are_checked(elephan: Run) -> None:
    """0.1.0 stored no digest of a record, so the check gives the number of records that it could not compare."""
    code, out, err = elephan("results", "check")
    assert code == 0, out + err
    assert str(len(IDS)) in out + err and "damaged" not in err


def test_every_run_is_exported(elephan: Run, tmp_path: Path) -> None:
    code, out, err = elephan("results", "export")
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert sorted(row["id"] for row in rows) == sorted(IDS)
    assert all(float(row["goodput_bps"]) > 0 for row in rows)
    code, _, err = elephan("results", "export", "--series", "--out", "series")
    assert code == 0, err
    exported = {path.name.split(".")[0] for path in (tmp_path / "series").rglob("*.parquet")}
    assert exported == set(WITH_SERIES)


def test_two_runs_are_compared(elephan: Run) -> None:
    (one, other) = stored("id", "scenario = 'own-stack'")
    code, out, err = elephan("results", "diff", one, other, "--json")
    assert (code, err) == (0, "")
    assert "goodput_bps" in out
    code, out, err = elephan("results", "diff", one, other)
    assert (code, err) == (0, "")


def test_a_report_is_made_of_every_run(elephan: Run, tmp_path: Path) -> None:
    code, _, err = elephan("results", "plot", "--out", "report")
    assert code == 0, err
    assert all(run in (tmp_path / "report" / "report.html").read_text() for run in IDS)


@pytest.mark.parametrize("run", SIMULATED)
def test_a_simulated_run_is_the_same_when_it_is_run_again(elephan: Run, run: str) -> None:
    """In all that it holds; this version may record more."""
    code, out, err = elephan("results", "rerun", run)
    assert (code, f"{run}: same to the byte" in out) == ((1, False) if run in CHANGED_SINCE else (0, True)), out + err


def test_a_run_of_the_kernel_is_not_run_again(elephan: Run) -> None:
    (run,) = stored("id", "scenario = 'bulk'")
    code, _, err = elephan("results", "rerun", run)
    assert code == 2 and "in real time" in err


def test_the_records_name_no_place_of_a_machine() -> None:
    named = [path for text in stored("record") for path in strings(json.loads(text)) if path.startswith("/")]
    assert [path for path in named if not path.startswith((FOLDER_THEN, "/*"))] == []


def strings(value: object) -> list[str]:
    """Return every text at any depth."""
    if isinstance(value, str):
        return [value]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for child in children for text in strings(child)]
