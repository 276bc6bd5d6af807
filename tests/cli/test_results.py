"""`elephan results` over a store with damaged, old, and unwanted records."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import elephan as package
from elephan.record import Record
from elephan.store import Series, Store
from elephan.store.series import write_parquet
from tests.cli.conftest import Run

Make = Callable[..., Record]
MakeSeries = Callable[..., Series]


@pytest.fixture
def runs(folder: Path, make_record: Make, make_series: MakeSeries) -> list[Record]:
    """Three runs with series in the folder's store."""
    series = make_series(count=20)
    records = [
        make_record(seed=seed, goodput=1e8 * seed, series=series, parameters={"path.loss": seed / 1000})
        for seed in (1, 2, 3)
    ]
    with Store(str(folder / "results.sqlite")) as store:
        for record in records:
            store.save(record, series)
    return records


def change(folder: Path, statement: str, *values: object) -> None:
    """Change the store by hand."""
    connection = sqlite3.connect(folder / "results.sqlite")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


DAMAGE: list[object] = ["{", "[1, 2", '{"format": 1}', "[" * 100_000, 7, b"\xff\xfe{}", '{"format": 99}']
"""Damaged records: cut off, of another form, not text at all, not UTF-8, of a newer elephan."""


def test_a_list_of_a_sweep_has_the_swept_key(elephan: Run, folder: Path) -> None:
    (folder / "s.toml").write_text(
        'run.duration = "1s"\npath = { bandwidth = "10Mbit/s", rtt = "10ms" }\nsweep."path.loss" = [0, 1e-3]\n'
        '[[flow]]\nname = "copy"\n'
    )
    assert elephan("run", "s.toml", "--no-report")[0] == 0
    code, out, _ = elephan("results", "list")
    assert code == 0 and "differs in" in out
    assert "path.loss=0.001" in out.replace("1e-3", "0.001") and "path.loss=0" in out
    assert "path.rtt" not in out



@pytest.mark.parametrize("damage", DAMAGE, ids=[str(item)[:12] for item in DAMAGE])
def test_a_damaged_record_is_named_and_the_others_are_listed_and_exported(
    elephan: Run, folder: Path, runs: list[Record], damage: object
) -> None:
    # As text, also where its bytes are none.
    statement = "update run set record = cast(? as text) where id = ?"
    change(
        folder,
        statement if isinstance(damage, bytes) else statement.replace("cast(? as text)", "?"),
        damage,
        runs[1].id,
    )
    whole = {runs[0].id, runs[2].id}
    code, out, err = elephan("results", "list", "--json")
    assert (code, {record["id"] for record in json.loads(out)}) == (1, whole)
    assert err.startswith(f"error: run {runs[1].id}: its record ") and "Traceback" not in err
    assert err.endswith(f"1 run could not be read; to remove them: elephan results delete {runs[1].id[:10]}\n")
    code, out, err = elephan("results", "list")
    assert code == 1 and all(run_id[:10] in out for run_id in whole) and f"error: run {runs[1].id}: " in err
    code, out, err = elephan("results", "export")
    assert (code, {row["id"] for row in csv.DictReader(io.StringIO(out))}) == (1, whole)
    assert f"error: run {runs[1].id}: " in err
    code, _, err = elephan("results", "export", "--series", "--out", "series")
    assert code == 1 and f"error: run {runs[1].id}: " in err
    assert {path.name.partition(".")[0] for path in (folder / "series").iterdir()} == whole
    code, out, err = elephan("results", "show", *(record.id for record in runs))
    assert code == 1 and all(run_id in out for run_id in whole) and f"error: run {runs[1].id}: " in err
    code, out, err = elephan("results", "check")
    assert code == 1 and f"error: run {runs[1].id}: " in err and out == "3 runs checked, 1 damaged\n"
    with pytest.warns(UserWarning, match=f"run {runs[1].id}: .*; left out"):
        results = package.open_results()
    assert {record.id for record in results} == whole and [one.id for one in results.damaged] == [runs[1].id]
    assert elephan("results", "delete", runs[1].id, "--yes")[0] == 0
    assert elephan("results", "list")[0] == elephan("results", "check")[0] == 0


def test_a_series_file_that_is_gone_or_damaged_hides_no_other(
    elephan: Run, folder: Path, runs: list[Record], make_series: MakeSeries
) -> None:
    gone, damaged = (folder / "results.series" / one.id[:2] / f"{one.id}.link.parquet" for one in runs[:2])
    gone.unlink()
    write_parquet(make_series(count=21).link, damaged)
    code, out, err = elephan("results", "check")
    assert (code, out) == (1, "3 runs checked, 2 damaged\n")
    assert f"error: run {runs[0].id}: the series {gone} is missing" in err
    assert f"error: run {runs[1].id}: its series are damaged: " in err and f"run {runs[2].id}" not in err
    damaged.write_bytes(damaged.read_bytes()[:100])
    assert f"error: run {runs[1].id}: cannot read the series {damaged}: " in elephan("results", "check")[2]
    code, _, err = elephan("results", "export", "--series", "--out", "series")
    assert code == 1 and f"error: run {runs[0].id}: " in err
    assert list((folder / "series").glob(f"{runs[2].id}.*"))


def test_a_record_that_was_changed_by_hand_is_found_by_its_digest(
    elephan: Run, folder: Path, runs: list[Record]
) -> None:
    change(folder, "update run set record = replace(record, '300000000.0', '400000000.0') where id = ?", runs[2].id)
    code, _, err = elephan("results", "list")
    assert code == 1 and f"run {runs[2].id}: its record is damaged: it is not what was stored (SHA-256)" in err
    assert elephan("results", "show", runs[2].id)[0] == 1
    code, out, err = elephan("results", "check")
    assert (code, out) == (1, "3 runs checked, 1 damaged\n")
    assert err == f"error: run {runs[2].id}: its record is damaged: it is not what was stored (SHA-256)\n"
    assert elephan("results", "check", runs[0].id[:8], runs[1].id)[:2] == (0, "2 runs checked, 0 damaged\n")


def test_a_row_that_says_something_else_than_its_record_is_found(
    elephan: Run, folder: Path, runs: list[Record]
) -> None:
    """`prune` chooses by the row."""
    change(folder, "update run set created = 'gar\x1b[31mbage' where id = ?", runs[1].id)
    code, _, err = elephan("results", "check")
    assert code == 1 and f"run {runs[1].id}: its row is damaged: created is " in err
    out = "".join(elephan("results", "prune", "--keep", "0", "--dry-run")[1:])
    assert "\\x1b[31m" in out and "\x1b" not in out


def test_records_of_the_first_revision_are_said_to_have_no_digest(
    elephan: Run, folder: Path, runs: list[Record]
) -> None:
    change(folder, "update run set sha256 = null where id = ?", runs[0].id)
    code, _, err = elephan("results", "check")
    assert code == 0 and "1 record of elephan 0.1.0 came without a digest" in err


def test_a_damaged_record_does_not_keep_its_run_from_being_run_again(elephan: Run, folder: Path) -> None:
    (folder / "small.toml").write_text(
        '[run]\nduration = "1s"\n[path]\nbandwidth = "10Mbit/s"\nrtt = "20ms"\n[[flow]]\nname = "copy"\n'
    )
    assert elephan("run", "small.toml", "--no-report")[0] == 0
    change(folder, "update run set record = '{'")
    code, _, err = elephan("run", "small.toml", "--no-report")
    assert code == 0 and "was in the store" not in err
    assert elephan("results", "check")[0] == 0


def test_delete_takes_the_series_along_and_asks_unless_told_not_to(
    elephan: Run, folder: Path, runs: list[Record]
) -> None:
    code, _, err = elephan("results", "delete", runs[0].id[:6])
    assert code == 2 and "give --yes" in err
    assert elephan("results", "delete", "deadbeef", "--yes")[0] == 2
    code, out, err = elephan("results", "delete", runs[0].id[:6], runs[0].id, runs[1].id, "--yes")
    assert (code, out, err) == (0, "", "removed 2 runs and their series\n")
    assert {path.name.partition(".")[0] for path in (folder / "results.series").glob("*/*")} == {runs[2].id}
    connection = sqlite3.connect(folder / "results.sqlite")
    assert {row[0] for row in connection.execute("select run_id from metric union select run_id from parameter")} == {
        runs[2].id
    }
    connection.close()


@pytest.mark.parametrize(("answer", "left"), [("n\n", 3), ("\n", 3), ("y\n", 2)])
def test_a_person_is_asked_before_anything_is_removed(folder: Path, runs: list[Record], answer: str, left: int) -> None:
    outer, inner = pty.openpty()
    command = [sys.executable, "-c", "from elephan.cli import main; main()", "results", "delete", runs[0].id]
    asked = subprocess.Popen(
        command, cwd=folder, stdin=inner, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    os.close(inner)
    os.write(outer, answer.encode())
    _, err = asked.communicate(timeout=60)
    os.close(outer)
    assert runs[0].id[:10] in err and "Remove 1 run and its series? [y/N]" in err
    with Store(str(folder / "results.sqlite")) as store:
        assert store.count() == left


def test_prune_needs_to_be_told_what_is_to_go(elephan: Run, runs: list[Record]) -> None:
    for arguments in ([], ["--scenario", "replicate-oltp"], ["--older-than", "soon"], ["--older-than", "9" * 30 + "d"]):
        code, out, err = elephan("results", "prune", "--yes", *arguments)
        assert (code, out) == (2, "") and err.startswith("error: ") and err.count("\n") == 1
    assert len(json.loads(elephan("results", "list", "--json")[1])) == 3


def test_prune_removes_what_fits_every_option(elephan: Run, folder: Path, runs: list[Record]) -> None:
    change(folder, "update run set created = '2020-01-01T00:00:00Z' where seed in ('1', '2')")
    change(folder, "update run set version = '0.0.9' where seed = '2'")
    rule = ["results", "prune", "--older-than", "30d", "--other-versions"]
    code, out, err = elephan(*rule, "--dry-run")
    assert (code, err) == (0, "") and out.startswith(runs[1].id[:10]) and out.count("\n") == 1
    assert elephan(*rule, "--yes")[2] == "removed 1 run and its series\n"
    assert elephan(*rule, "--yes")[2] == "nothing to remove\n"
    assert elephan("results", "prune", "--older-than", "2021-01-01", "--where", "path.loss=0.003", "--yes")[2] == (
        "nothing to remove\n"
    )
    assert elephan("results", "prune", "--older-than", "2021-01-01", "--yes")[2] == "removed 1 run and its series\n"
    assert [record["seed"] for record in json.loads(elephan("results", "list", "--json")[1])] == [3]


def test_prune_keeps_the_newest_of_each_point_and_no_repetition_for_another(
    elephan: Run, folder: Path, runs: list[Record], make_record: Make
) -> None:
    """Of a point and seed there are several runs where elephan, or a default, has changed."""
    with Store(str(folder / "results.sqlite")) as store:
        for number, created in enumerate(("2025-05-01", "2026-07-01")):
            again = runs[0].model_copy(update={"id": f"{number}" * 16, "created": f"{created}T00:00:00Z"})
            store.save(again, None)
    code, out, _ = elephan("results", "prune", "--keep", "1", "--dry-run")
    assert code == 0 and {line.split()[0] for line in out.splitlines()} == {"0" * 10, runs[0].id[:10]}
    assert elephan("results", "prune", "--keep", "2", "--yes")[2] == "removed 1 run and its series\n"
    assert "0" * 16 not in elephan("results", "list", "--json")[1]


def test_prune_finds_files_without_a_run_and_runs_without_files(elephan: Run, folder: Path, runs: list[Record]) -> None:
    series = folder / "results.series"
    (series / "ab").mkdir()
    old, young = series / "ab" / f"{'ab' * 8}.flow.parquet", series / "ab" / f"{'ac' * 8}.flow.parquet"
    half = series / "ab" / f"{'ad' * 8}.flow.parquet.77.tmp"
    for path in (old, young, half):
        path.write_bytes(b"x" * 1000)
    for path in (old, half):
        os.utime(path, (time.time() - 3600,) * 2)
    (series / runs[0].id[:2] / f"{runs[0].id}.flow.parquet").unlink()
    assert "2 files of series belong to no run: elephan results prune --stray-files" in elephan("results", "check")[2]
    code, out, _ = elephan("results", "prune", "--stray-files", "--dry-run")
    assert (code, out.split()) == (0, [str(old), str(half)])
    code, _, err = elephan("results", "prune", "--stray-files", "--without-series", "--yes")
    assert (code, err) == (0, "removed 1 run and its series and 2 files (2.00 kB) of no run\n")
    assert young.exists() and not old.exists() and not half.exists()
    assert {record["seed"] for record in json.loads(elephan("results", "list", "--json")[1])} == {2, 3}


def test_diff_shows_both_values_and_the_relative_difference(elephan: Run, runs: list[Record]) -> None:
    code, out, err = elephan("results", "diff", runs[0].id[:8], runs[1].id[:8])
    assert (code, err) == (0, "")
    lines = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
    assert lines["goodput_bps"] == ["goodput_bps", "100", "Mbit/s", "200", "Mbit/s", "+100", "%"]
    assert lines["path.loss"] == ["path.loss", "0.001", "0.002", "+100", "%"]
    assert lines["seed"] == ["seed", "1", "2"]
    assert "lag_p99_s" not in lines and "kernel" not in lines
    data = json.loads(elephan("results", "diff", runs[0].id, runs[1].id, "--json")[1])
    assert data["metrics"]["goodput_bps"] == {"old": 1e8, "new": 2e8, "relative": 1.0}
    assert elephan("results", "diff", runs[0].id, "deadbeef")[0] == 2


@pytest.mark.parametrize(
    "command", [["list"], ["export"], ["check"], ["delete", "abcd", "--yes"], ["prune", "--keep", "1"]]
)
def test_a_store_that_is_not_there_is_not_made_to_be_read(elephan: Run, folder: Path, command: list[str]) -> None:
    code, _, err = elephan("results", *command, "--store", "resluts.sqlite")
    assert code == 2
    assert err.startswith("error: --store resluts.sqlite: there is no such store") and err.count("\n") == 1
    assert not (folder / "resluts.sqlite").exists()
