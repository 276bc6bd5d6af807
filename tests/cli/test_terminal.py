"""Input from a terminal and output to it: Ctrl-C at any moment, control characters, an output that is gone."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.store.kills import FORMATS

SCENARIO = """
[run]
duration = "2s"
[path]
bandwidth = "20Mbit/s"
rtt = "20ms"
[[flow]]
name = "copy"
[measure]
series = false
"""

PLAIN = "import elephan.cli; elephan.cli.main()"
ANNOUNCED = PLAIN.replace(";", "; print('loading', flush=True);")
"""The command, which tells when Python itself has been loaded: the traceback of before is Python's."""


def started(folder: Path, *arguments: str, code: str = ANNOUNCED, **streams: object) -> subprocess.Popen[str]:
    """Start the command."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=folder, env=environment, text=True, **both)


@pytest.mark.parametrize("command", [["check", "small.toml"], ["run", "small.toml", "--no-report"]])
def test_ctrl_c_at_any_moment_of_the_start_is_no_traceback(folder: Path, command: list[str]) -> None:
    (folder / "small.toml").write_text(SCENARIO)
    draw = random.Random(7)
    began_s = time.monotonic()
    assert started(folder, *command).wait(timeout=60) == 0
    longest_s = time.monotonic() - began_s
    ended = []
    for _ in range(10):
        running = started(folder, *command)
        assert running.stdout is not None
        assert running.stdout.readline() == "loading\n"
        time.sleep(draw.uniform(0, longest_s))
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
        # After the last line a signal ends it as it ends any program.
        assert running.returncode in (0, 130, -signal.SIGINT), err
        assert "Traceback" not in err and "KeyboardInterrupt" not in err and "ignored" not in err
        assert running.returncode != 130 or err.endswith("error: stopped\n") or "error: stopped: " in err
        ended.append(running.returncode)
    assert 130 in ended


def test_an_interrupt_waits_for_the_end_of_an_import(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\nprint('begins', flush=True)\ntime.sleep(0.5)\nprint('ends', flush=True)\n"
    )
    script = "from elephan.signals import *; interrupt_between_imports()\ntry:\n  import slow\n  print('went on')\n"
    script += "  import time; time.sleep(20)\nexcept KeyboardInterrupt: print('interrupted')"
    environment = os.environ | {"PYTHONPATH": f"{Path(__file__).parents[2]}:{tmp_path}"}
    running = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "begins\n"
    running.send_signal(signal.SIGINT)
    assert running.communicate(timeout=10)[0].split() in (
        ["ends", "interrupted"],
        ["ends", "went", "on", "interrupted"],
    )


def test_control_characters_reach_no_terminal(elephan: Run, folder: Path) -> None:
    """Of a file's name, of a key, and of a record that another user has stored."""
    (folder / "red\x1b[31m.toml").write_text(SCENARIO)
    (folder / "wrong\x1b[31m.toml").write_text('"red\\u001b[31m" = 1\n' + SCENARIO)
    record = json.loads((FORMATS / "record-1.json").read_text())
    record["scenario"]["name"] = record["flows"][0]["congestion_control"] = "red\x1b]0;title\x07\x9b31m"
    record["notes"] = ["\x1b[2J"]
    elephan("results", "list")
    connection = sqlite3.connect(folder / "results.sqlite")
    connection.execute(
        "insert into run (id, format, created, scenario, backend, version, build, seed, record) "
        "values ('e80063e11f464d34', 1, '2026-01-02T03:04:05Z', 'x', 'sim', '0.1.0', 'b', '1', ?)",
        (json.dumps(record),),
    )
    connection.commit()
    connection.close()
    for command in (
        ["check", "red\x1b[31m.toml"],
        ["check", "wrong\x1b[31m.toml"],
        ["check", "none\x1b[31m.toml"],
        ["run", "red\x1b[31m.toml", "--no-report"],
        ["results", "list"],
        ["results", "show", "e80063e11f464d34"],
        ["results", "\x1b[31m"],
    ):
        _, out, err = elephan(*command)
        assert out + err and not [sign for sign in out + err if sign != "\n" and not sign.isprintable()], command


def test_a_file_whose_name_is_no_text_runs(elephan: Run, folder: Path) -> None:
    (folder / os.fsdecode(b"\xff.toml")).write_text(SCENARIO)
    assert elephan("run", os.fsdecode(b"\xff.toml"), "--no-report")[0] == 0
    (record,) = json.loads(elephan("results", "list", "--json")[1])
    assert record["scenario"]["name"] == "\\udcff"
    code, _, err = elephan("check", os.fsdecode(b"\xfe.toml"))
    assert (code, err) == (2, "error: \\udcfe.toml: cannot be read: No such file or directory\n")


@pytest.mark.parametrize("command", ["schema", "results list --json", "cc", "check small.toml", "--help"])
def test_an_output_that_takes_nothing_is_one_line(folder: Path, command: str) -> None:
    (folder / "small.toml").write_text(SCENARIO)
    with open("/dev/full", "w") as full:
        running = started(folder, *command.split(), code=PLAIN, stdout=full)
        _, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (1, "error: cannot write to stdout: No space left on device\n")


def test_no_output_at_all_is_no_failure(folder: Path) -> None:
    (folder / "small.toml").write_text(SCENARIO)
    script = f"exec {sys.executable} -c 'from elephan.cli import main; main()' check small.toml >&-"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_width_loses_a_word_or_breaks_one(folder: Path, width: int) -> None:
    sweep = '[sweep]\n"path.queue" = ["20 packets", "40 packets"]\n"flow.congestion_control" = ["reno", "cubic"]\n'
    (folder / "sweep.toml").write_text(SCENARIO.replace("series = false", "") + sweep)
    for words in (
        ["run", "sweep.toml", "--no-report"],
        ["results", "list"],
        ["compare", "sweep.toml", "--cc", "reno,cubic,vegas", "--no-report", "--set", "sweep={}"],
        ["disk", "list"],
    ):
        shown = []
        for columns in (400, width):
            environment = os.environ | {
                "PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": str(columns), "PYTHONDONTWRITEBYTECODE": "1",
            }  # fmt: skip
            done = subprocess.run([sys.executable, "-c", PLAIN, *words], cwd=folder, env=environment, text=True,
                                  capture_output=True, check=False)  # fmt: skip
            assert done.returncode == 0, done.stderr
            shown.append(done.stdout)
        wide, narrow = (set(text.replace("per row", "per column").split()) for text in shown)
        # Bars are drawn by the width, and a long path is folded; reasons and titles of blocks have no head.
        lost = {word for word in wide - narrow - {"why", "id"} if len(word) <= 20 and not set(word) & set("█▏▎▍▌▋▊▉")}
        assert not lost and "…" not in shown[1], (words, lost, shown[1])
