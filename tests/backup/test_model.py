"""The model of backup jobs, with seeds that stay the same: `python -m tests.backup.model` searches with others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.copy.model import tracer
from tests.processes import quick

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.search
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.geteuid() != 0, reason="the model mounts file systems")
@pytest.mark.skipif(tracer.missing() is not None, reason=str(tracer.missing()))
def test_versions_and_restores_are_those_of_the_model() -> None:
    words = [sys.executable, "-m", "tests.backup.model", "--first", "3800", "--sequences", "4", "--length", "25"]
    done = subprocess.run(words, cwd=ROOT, env=quick(), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout and "killed" in done.stdout


IN_PLACE = [
    *(["folder", path.hex()] for path in (b"d", b"d/e")),
    *(["write", path.hex(), number, 5000] for number, path in enumerate((b"a", b"b", b"c", b"d/a", b"d/b", b"d/e/c"))),
    ["run"],
    ["write", b"d/c".hex(), 9, 300_001],
    ["run"],
]
"""A source with two versions."""


@pytest.mark.skipif(os.geteuid() != 0, reason="the model mounts file systems")
@pytest.mark.skipif(tracer.missing() is not None, reason=str(tracer.missing()))
@pytest.mark.parametrize(("source", "exclude"), [("data", ["data/a", "/*/d/b"]), ("data/", ["/a", "d/b"])])
def test_restores_over_damaged_entries_are_those_of_the_model(source: str, exclude: list[str], tmp_path: Path) -> None:
    """Damaged files keep size and time; entries that the job leaves out stay where others are removed."""
    restores = [["restore", number, {"place": "own", "exact": number > 0, "seed": number}] for number in range(4)]
    file = tmp_path / "steps.json"
    file.write_text(json.dumps({"job": ["incremental", None, source, exclude], "steps": [*IN_PLACE, *restores]}))
    words = [sys.executable, "-m", "tests.backup.model", "--steps", str(file)]
    done = subprocess.run(words, cwd=ROOT, env=quick(), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


LINKED = [
    ["write", b"a".hex(), 1, 100],
    ["hardlink", b"a".hex(), b"b".hex()],
    ["run"],
    ["write", b"a".hex(), 2, 300],
    ["hide", b"a".hex()],
    ["run"],
    ["restore", 0, {"place": "new", "at": 0}],
    ["restore", 0, {"place": "new", "at": 1}],
    ["restore", 1, {"place": "new", "at": 0}],
    ["show", b"a".hex()],
    ["break", b"b".hex()],
    ["attribute", b"a".hex(), 4],
    ["run"],
    ["restore", 2, {"place": "own", "seed": 4}],
]
"""A file of two names that cannot be read for a while, and is two files after that."""


@pytest.mark.skipif(os.geteuid() != 0, reason="the model mounts file systems")
@pytest.mark.skipif(tracer.missing() is not None, reason=str(tracer.missing()))
def test_all_names_of_a_file_and_its_attributes_are_in_each_version(tmp_path: Path) -> None:
    """A restore as of the second at which a version began is of that version, and so is one just before the next."""
    file = tmp_path / "steps.json"
    file.write_text(json.dumps({"job": ["incremental", None, "data/", []], "steps": LINKED}))
    words = [sys.executable, "-m", "tests.backup.model", "--steps", str(file)]
    done = subprocess.run(words, cwd=ROOT, env=quick(), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


JUDGED = {
    "what a killed run has copied stays, though its folder cannot be listed any more": (
        "data/",
        [
            ["folder", b"d".hex()],
            ["write", b"d/b".hex(), 0, 0],
            ["run"],
            ["write", b"d/b".hex(), 5, 262_144],
            ["kill", 127, [["remove", b"d/e".hex()], ["hide", b"a".hex()], ["hide", b"d".hex()]]],
        ],
    ),
    "a folder that cannot be listed is not copied where its attributes cannot be read either": (
        "data",
        [["folder", b"d".hex()], ["attribute", b"d".hex(), 820_285_810], ["hide", b"d".hex()], ["run"]],
    ),
    "an entry that cannot be read in run after run is of the run that copied it": (
        "data",
        [
            ["folder", b"d".hex()],
            ["run"],
            ["hide", b"a".hex()],
            *(["run"],) * 3,
            ["folder", b"d/e".hex()],
            ["hide", b"d/e".hex()],
            *(["run"],) * 2,
            ["restore", 5, {"place": "own", "seed": 1, "exact": True}],
        ],
    ),
    "a run is refused while a file system below its source is not mounted": (
        "data/",
        [
            ["folder", b"d".hex()],
            ["mount", b"d".hex(), 1],
            ["run"],
            ["unmount", True],
            ["run"],
            ["mount", b"d".hex(), 2],
            ["run"],
            ["unmount", False],
            ["kill", 40],
            ["remove", b"d".hex()],
            ["run"],
        ],
    ),
}


@pytest.mark.skipif(os.geteuid() != 0, reason="the model mounts file systems")
@pytest.mark.skipif(tracer.missing() is not None, reason=str(tracer.missing()))
@pytest.mark.parametrize("what", JUDGED)
def test_runs_are_those_of_the_model(what: str, tmp_path: Path) -> None:
    source, steps = JUDGED[what]
    file = tmp_path / "steps.json"
    file.write_text(json.dumps({"job": ["incremental", None, source, []], "steps": steps}))
    words = [sys.executable, "-m", "tests.backup.model", "--steps", str(file)]
    done = subprocess.run(words, cwd=ROOT, env=quick(), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
