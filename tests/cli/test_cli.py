"""The command from end to end, with the real core: what goes to stdout, what to stderr, and with which exit code."""

import csv
import hashlib
import inspect
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import typer

from tests.cli.conftest import Run

SCENARIO = """
name = "small"
title = "A small copy"

[run]
duration = "3s"

[path]
bandwidth = "20Mbit/s"
rtt = "20ms"
loss = 1e-3

[[flow]]
name = "copy"

[measure]
series = "50ms"

[sweep]
"flow.congestion_control" = ["reno", "cubic"]
"""

LONG = SCENARIO.replace('"3s"', '"30min"').replace('"20Mbit/s"', '"1Gbit/s"').replace('"50ms"', '"1s"')


@pytest.fixture
def folder(folder: Path) -> Path:
    """With a scenario."""
    (folder / "small.toml").write_text(SCENARIO)
    return folder


def test_run_prints_a_table_stores_and_reports(elephan: Run, folder: Path) -> None:
    code, out, err = elephan("run", "small.toml", "--out", "report")
    assert code == 0, err
    assert "goodput" in out and "reno" in out and "cubic" in out
    assert "Mbit/s" in out
    assert "report: report/report.html" in err
    assert {"report.html", "goodput.png", "cwnd.png", "rtt.png", "queue.png"} <= {
        path.name for path in (folder / "report").iterdir()
    }
    assert "A small copy" in (folder / "report" / "report.html").read_text()
    _, _, err = elephan("run", "small.toml", "--no-report")
    assert "2 of 2 runs were in the store" in err


def test_json_is_one_array_of_records_and_nothing_else(elephan: Run, folder: Path) -> None:
    code, out, err = elephan("run", "small.toml", "--json", "--set", "path.loss=0", "--seed", "7")
    assert (code, err) == (0, "")
    records = json.loads(out)
    assert len(records) == 2
    for record in records:
        assert record["parameters"]["path.loss"] == 0
        assert record["seed"] == 7
        assert record["metrics"]["goodput_bps"] > 1e7
        assert record["metrics"]["cpu_s"] > 0
        assert record["flows"][0]["name"] == "copy"
        assert {"kernel", "cpu", "cores", "python", "machine"} <= record["host"].keys()
        assert record["version"]
    assert not (folder / "out").exists()


def test_workers_and_repetition_change_no_byte(elephan: Run) -> None:
    def strip(text: str) -> list[dict[str, object]]:
        records = json.loads(text)
        for record in records:
            del record["created"], record["metrics"]["cpu_s"]
        return records

    _, one, _ = elephan("run", "small.toml", "--json", "--workers", "1", "--store", "none")
    _, two, _ = elephan("run", "small.toml", "--json", "--workers", "2", "--store", "none")
    assert strip(one) == strip(two)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["run", "nothing.toml"], 2, "nothing.toml: cannot be read: No such file or directory"),
        (["run", "small.toml", "--set", "path.los=1"], 2, 'did you mean "loss"'),
        (["run", "small.toml", "--set", "path.rtt=20"], 2, "path.rtt = 20"),
        (["run", "small.toml", "--set", "nothing"], 2, "key=value"),
        (["run", "small.toml", "--store", "/proc/none/x.sqlite"], 2, "--store /proc/none/x.sqlite: cannot keep"),
        (["run", "small.toml", "--store", "."], 2, "--store .: cannot keep results there"),
        (["run", "small.toml", "--store", "small.toml"], 2, "--store small.toml: cannot keep results there: file is"),
        (["run", "small.toml", "--store", "small.toml/below/x.sqlite"], 2, "below/x.sqlite: cannot keep results there"),
        (["run", "small.toml", "--out", "/proc/none"], 2, "--out /proc/none: cannot write there"),
        (["run", "small.toml", "--out", "small.toml"], 2, "--out small.toml: cannot write there"),
        (["run", "small.toml", "--out", "small.toml/below"], 2, "--out small.toml/below: cannot write there"),
        (["results", "export", "--out", "small.toml/below"], 1, "cannot write small.toml/below"),
        (["run", "small.toml", "--workers", "0"], 2, "--workers"),
        (["run", "small.toml", "--nonsense"], 2, "No such option"),
        (["cc", "nonsense"], 2, "no congestion control 'nonsense'; there are"),
        (["results", "show", "deadbeef"], 2, "no run deadbeef"),
        (["results", "list", "--where", "path.loss"], 2, "expected KEY=VALUE"),
        (["results", "export", "--format", "parquet"], 2, "give a file with --out"),
    ],
)
def test_errors_are_one_line_with_an_exit_code(elephan: Run, arguments: list[str], code: int, text: str) -> None:
    found, out, err = elephan(*arguments)
    assert found == code
    assert text in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize("place", ["blocked.sqlite", "new/folder/blocked.sqlite"])
def test_a_store_that_cannot_take_a_run_is_refused_before_it(elephan: Run, folder: Path, place: str) -> None:
    """The folder for series is a file here: nothing is simulated, and nothing new is left behind."""
    series = (folder / place).with_suffix(".series")
    series.parent.mkdir(parents=True, exist_ok=True)
    series.write_text("not a folder")
    before = sorted(folder.rglob("*"))
    code, out, err = elephan("run", "small.toml", "--no-report", "--store", place)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: --store {place}: cannot keep results there: ") and err.count("\n") == 1
    assert sorted(folder.rglob("*")) == before


def test_the_environments_store_is_named_as_such(elephan: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELEPHAN_STORE", "small.toml")
    code, _, err = elephan("results", "list")
    assert code == 2
    assert err == "error: $ELEPHAN_STORE small.toml: cannot keep results there: file is not a database\n"
    assert (folder / "small.toml").read_text() == SCENARIO


def test_one_is_written_as_one(elephan: Run, folder: Path) -> None:
    one = ["run", "small.toml", "--set", "flow.congestion_control=reno", "--set", "measure.series=false"]
    elephan(*one, "--no-report")
    assert "1 of 1 run was in the store; --again runs it anew" in elephan(*one, "--no-report")[2]
    assert elephan("check", "small.toml", "--set", "flow.congestion_control=reno")[1] == "small.toml: valid, 1 run\n"
    assert "1 run is in all.csv" in elephan("results", "export", "--out", "all.csv")[2]


def test_check_says_what_would_run(elephan: Run) -> None:
    code, out, _ = elephan("check", "small.toml")
    assert (code, out) == (0, "small.toml: valid, 2 runs over flow.congestion_control (2)\n")


def test_ccs_list_parameters_with_range_and_default(elephan: Run) -> None:
    code, out, _ = elephan("cc")
    assert code == 0
    for name in ("reno", "cubic", "storage_friendly", "reduction", "congestion_avoidance"):
        assert name in out
    _, out, _ = elephan("cc", "storage_friendly", "--json")
    (cc,) = json.loads(out)
    assert {parameter["name"] for parameter in cc["parameters"]} == {"reduction", "congestion_avoidance", "cap"}


def test_stored_runs_are_listed_shown_and_exported(elephan: Run, folder: Path) -> None:
    elephan("run", "small.toml", "--no-report")
    code, out, _ = elephan("results", "list", "--json")
    records = json.loads(out)
    assert (code, len(records)) == (0, 2)
    ids = [record["id"] for record in records]
    for loss in ("1e-3", "0.001"):
        assert len(json.loads(elephan("results", "list", "--where", f"path.loss={loss}", "--json")[1])) == 2
    _, out, _ = elephan("results", "list", "--where", "flow.congestion_control=cubic")
    assert len(re.findall(r"^[0-9a-f]{10} ", out, re.MULTILINE)) == 1
    _, out, _ = elephan("results", "show", ids[0][:6])
    assert ids[0] in out and "dropped_packets" in out
    _, out, _ = elephan("results", "export")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["flow.congestion_control"] for row in rows} == {"reno", "cubic"}
    assert float(rows[0]["goodput_bps"]) > 0
    elephan("results", "export", "--format", "parquet", "--out", "all.parquet")
    assert pyarrow.parquet.read_table(folder / "all.parquet").num_rows == 2
    elephan("results", "export", "--series", "--out", "series")
    assert len(list((folder / "series").glob("*.flow.parquet"))) == 2
    code, _, err = elephan("results", "plot", *ids, "--out", "plots")
    assert code == 0 and "plots/report.html" in err


def test_rerun_is_the_same_to_the_byte_and_sees_a_difference(elephan: Run, folder: Path) -> None:
    elephan("run", "small.toml", "--no-report")
    ids = [record["id"] for record in json.loads(elephan("results", "list", "--json")[1])]
    code, out, _ = elephan("results", "rerun", *ids)
    assert code == 0
    assert out.count("same to the byte") == 2
    connection = sqlite3.connect(folder / "results.sqlite")
    (text,) = connection.execute("select record from run where id = ?", (ids[0],)).fetchone()
    record = json.loads(text)
    record["metrics"]["timeouts"] += 1
    # As by another build: with its digest. Without a matching digest the record is damaged.
    text = json.dumps(record)
    connection.execute("update run set record = ? where id = ?", (text, ids[0]))
    connection.commit()
    assert "it is not what was stored" in elephan("results", "rerun", ids[0])[2]
    connection.execute("update run set sha256 = ?", (hashlib.sha256(text.encode()).hexdigest(),))
    connection.commit()
    connection.close()
    code, out, _ = elephan("results", "rerun", ids[0])
    assert code == 1
    assert "metrics.timeouts: was" in out


def test_a_cc_of_ones_own_is_kept_in_the_record(elephan: Run, folder: Path) -> None:
    source = Path(__file__).parents[2] / "congestion" / "reno.c"
    (folder / "mine.c").write_text(source.read_text())
    code, _, err = elephan("run", "small.toml", "--set", "flow.congestion_control=./mine.c", "--no-report")
    assert code == 0, err
    (record,) = json.loads(elephan("results", "list", "--json")[1])
    assert record["flows"][0]["congestion_control"] == "mine.c"
    (folder / "mine.c").unlink()
    code, out, err = elephan("results", "rerun", record["id"])
    assert code == 0, out + err
    (folder / "mine.c").write_text("int broken(")
    code, _, err = elephan("run", "small.toml", "--set", "flow.congestion_control=./mine.c", "--no-report")
    assert code == 2
    assert "mine.c" in err and "error:" in err and "Traceback" not in err


def test_pcap_writes_a_capture_per_run(elephan: Run, folder: Path) -> None:
    assert elephan("run", "small.toml", "--pcap", "all.pcapng", "--no-report")[0] == 0
    for number in (1, 2):
        assert (folder / f"all-{number}.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"


@pytest.mark.parametrize("what", [["schema"], ["results", "show", "ID"], ["results", "list", "--json"]])
def test_a_reader_that_goes_early_is_no_failure(elephan: Run, folder: Path, what: list[str]) -> None:
    assert elephan("run", "small.toml", "--no-report")[0] == 0
    run_id = json.loads(elephan("results", "list", "--json")[1])[0]["id"]
    running = process(folder, *[run_id if part == "ID" else part for part in what])
    assert running.stdout is not None and running.stderr is not None
    running.stdout.close()
    assert (running.wait(timeout=60), running.stderr.read()) == (0, "")


def test_schema_is_the_committed_one(elephan: Run) -> None:
    code, out, _ = elephan("schema")
    assert code == 0
    assert out == (Path(__file__).parents[2] / "docs" / "reference" / "scenario.schema.json").read_text()


def test_version(elephan: Run) -> None:
    code, out, _ = elephan("--version")
    assert code == 0
    assert re.fullmatch(r"elephan \d+\.\d+\.\d+ \(core [0-9a-f]{16}\)\n", out)


def process(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the command as a user does."""
    return subprocess.Popen(
        [sys.executable, "-c", "from elephan.cli import main; main()", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stored(folder: Path) -> int:
    """Return the number of runs in the store."""
    try:
        connection = sqlite3.connect(f"file:{folder / 'results.sqlite'}?mode=ro", uri=True)
        try:
            return int(connection.execute("select count(*) from run").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return 0


def started(folder: Path) -> subprocess.Popen[str]:
    """A sweep of one short and one long run that has stored the short one."""
    sweep = '"run.duration" = ["1s", "6000min"]'
    (folder / "long.toml").write_text(re.sub(r'"flow.congestion_control" = .*', sweep, LONG))
    running = process(folder, "run", "long.toml", "--no-report", "--workers", "2")
    deadline = time.monotonic() + 40
    while stored(folder) < 1 and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running.poll() is None, running.communicate()
    return running


def test_a_store_is_one_file_between_commands(folder: Path) -> None:
    """So that it can be copied; SQLite keeps recent writes in files beside it while it is open."""
    for command in (["run", "small.toml", "--no-report"], ["results", "list"], ["run", "small.toml", "--no-report"]):
        running = process(folder, *command)
        assert running.wait(timeout=60) == 0, running.communicate()
        assert {path.name for path in folder.glob("results.sqlite*")} == {"results.sqlite"}
    connection = sqlite3.connect(f"file:{folder / 'results.sqlite'}?immutable=1", uri=True)
    assert connection.execute("select count(*) from run").fetchone() == (2,)
    connection.close()


def test_ctrl_c_keeps_what_ended_and_says_how_to_go_on(folder: Path) -> None:
    running = started(folder)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert running.returncode == 130
    assert "error: stopped: 1 of 2 runs had ended and is stored; the same command goes on from here" in err
    assert "Traceback" not in err
    assert stored(folder) == 1


def test_a_killed_sweep_keeps_what_ended(folder: Path) -> None:
    running = started(folder)
    running.kill()
    running.communicate(timeout=20)
    assert stored(folder) == 1
    again = process(folder, "run", "long.toml", "--set", "run.duration=1s", "--no-report")
    _, err = again.communicate(timeout=40)
    assert again.returncode == 0
    assert "1 of 1 run was in the store" in err


def commands(found: Any, context: Any) -> Iterator[tuple[str, Any]]:
    """Every command below a group, by its words."""
    for name in found.list_commands(context):
        command = found.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from ((f"{name} {words}", inner) for words, inner in commands(command, context))
        else:
            yield name, command


def test_every_command_shows_its_whole_help(elephan: Run) -> None:
    from elephan.cli.main import MODULES, app

    root = typer.main.get_command(app)
    found = dict(commands(root, root.make_context("elephan", [], resilient_parsing=True)))
    assert len(found) > 30 and {words.split()[0] for words in found} == set(MODULES)
    for words, command in found.items():
        # Its file stands before the words of `elephan backup`.
        code, out, err = elephan(*words.replace("backup ", "backup FILE ").split(), "--help")
        assert (code, err) == (0, "")
        # Words in brackets are no style, and nothing is cut off.
        assert " ".join(inspect.cleandoc(command.help).split()) in " ".join(out.split()), words
    out = elephan("--help")[1]
    assert "print one ranked table and why each stands there" in " ".join(out.split())
    assert elephan("chekc")[2] == "error: No such command 'chekc'. Did you mean 'check'?\n"


def test_a_transfer_that_has_ended_is_not_told_that_a_longer_run_says_more(elephan: Run, folder: Path) -> None:
    scenario = (
        '[run]\nduration = "30s"\n[path]\nbandwidth = "5Mbit/s"\nrtt = "40ms"\nqueue = "10 packets"\n'
        '[[flow]]\ncongestion_control = "reno"\n'
    )
    (folder / "ends.toml").write_text(scenario + 'workload = { kind = "bulk", bytes = "1MB" }\n')
    (folder / "goes_on.toml").write_text(scenario.replace("30s", "2s"))
    code, out, err = elephan("run", "ends.toml", "--no-report")
    assert code == 0 and "completion" in out and "longer run" not in out + err
    code, out, err = elephan("run", "goes_on.toml", "--no-report")
    assert code == 0 and "a longer run (run.duration) says more" in out + err
