"""Versions of a backup job whose source changes in between; some runs are killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.copy.model import command, judge
from tests.copy.model.walk import Tree, walk
from tests.power_cut import places
from tests.power_cut.copies import LIMIT_S, SRC, bind, stages

if TYPE_CHECKING:
    from tests.power_cut.recording import Recorder

STAGES = 6
KEEP = 3
DESTINATION = places.DISK / "copies"
STORE = places.STATE / "results.sqlite"
FILE = places.ROOT / "job.toml"
TEXT = f"""\
name = "power"

[retry]
attempts = 1

[[job]]
name = "job"
kind = "incremental"
sources = ["{SRC}/"]
destination = "{DESTINATION}"
keep = {KEEP}
"""


def words(*more: object) -> list[list[bytes]]:
    """Return a command of the backup."""
    return [[b"backup", *(os.fsencode(str(word)) for word in (FILE, *more, "--store", STORE))]]


RUN = ("run", "job", "--once")


class Backups:
    """A job that runs once for each stage of its source."""

    def prepare(self, work: Path, draw: random.Random) -> None:
        """Make the stages."""
        stages(places.SOURCES, draw, STAGES)
        kills_s = [[round(draw.uniform(0.5, 8), 2)] if draw.random() < 0.4 else [] for _ in range(STAGES)]
        (work / "plan.json").write_text(json.dumps(kills_s))

    def record(self, recorder: Recorder) -> None:
        """Run the job for each stage."""
        plan = json.loads((recorder.work / "plan.json").read_text())
        command.load(places.ROOT, LIMIT_S)
        FILE.write_text(TEXT)
        for folder in (DESTINATION, places.STATE):
            folder.mkdir()
        os.sync()
        for number, kills_s in enumerate(plan):
            bind(number)
            recorder.mark(f"begin {number}")
            for after_s in kills_s:
                child = command.start(words(*RUN), places.STATE)
                time.sleep(after_s)
                os.kill(child.pid, signal.SIGKILL)
                child.wait(LIMIT_S)
            result = command.start(words(*RUN), places.STATE).wait(LIMIT_S)
            if result.code != 0:
                raise RuntimeError(result.output)
            recorder.mark(f"done {number}")
            places.unmount(SRC)

    def judge(self, work: Path, marks: list[str]) -> list[str]:
        """Versions of runs that have ended are there; each that is marked complete is; the next run ends well."""
        if not marks:
            return []
        FILE.write_text(TEXT)
        what, last = marks[-1].split()
        number = int(last)
        newest = [number] if what == "done" else [number, number - 1]
        versions = complete()
        # A run that was killed and run again may have made two.
        lines = []
        expected = min(number + 1 if what == "done" else number, KEEP)
        if len(versions) < expected:
            lines.append(f"{len(versions)} complete versions, should be {expected} at least")
        stage = number
        for name in reversed(versions):
            found = walk(os.fsencode(DESTINATION / name))
            wrong = {}
            for candidate in range(stage, -1, -1):
                wrong[candidate] = differences(tree_of(candidate), found)
                if not wrong[candidate]:
                    break
            else:
                best = min(wrong, key=lambda candidate: len(wrong[candidate]))
                lines += [f"version {name}, nearest to stage {best}: {line}" for line in wrong[best]]
                continue
            if name == versions[-1] and candidate not in newest:
                lines.append(f"the newest version is stage {candidate}, should be one of {newest}")
            stage = candidate
        if lines:
            return lines
        bind(number)
        try:
            return self.used(number, versions)
        finally:
            places.unmount(SRC)
            shutil.rmtree(places.ROOT / "restored", ignore_errors=True)

    def used(self, number: int, versions: list[str]) -> list[str]:
        """Restore a version, run the job again, and restore the newest."""
        lines = []
        target = places.ROOT / "restored"
        if versions:
            # Before anything else has repaired something.
            name = versions[number % len(versions)]
            tree = walk(os.fsencode(DESTINATION / name))
            result = command.start(words("restore", "job", "--version", name, "--to", target), places.STATE).wait()
            if result.code != 0:
                lines.append(f"restore of {name}: exit code {result.code}: {result.output.strip()[-400:]}")
            else:
                lines += [f"restore of {name}: {line}" for line in differences(tree, walk(os.fsencode(target)))]
            shutil.rmtree(target, ignore_errors=True)
        result = command.start(words(*RUN), places.STATE).wait()
        if result.code != 0:
            return [*lines, f"run again: exit code {result.code}: {result.output.strip()[-600:]}"]
        newest = complete()[-1]
        found = walk(os.fsencode(DESTINATION / newest))
        return lines + [f"run again: {line}" for line in differences(tree_of(number), found)]


def complete() -> list[str]:
    """Return the versions that are marked complete, oldest first."""
    found = []
    for path in (DESTINATION / ".elephan-backup").glob("*.json"):
        marker = json.loads(path.read_text())
        if marker["state"] == "complete":
            found.append(marker["version"])
    return sorted(found)


def tree_of(stage: int) -> Tree:
    """Return a stage of the source as a version has it: without sockets."""
    tree = walk(os.fsencode(places.SOURCES / str(stage) / "src"))
    return {path: node for path, node in tree.items() if node.kind != "socket"}


def differences(expected: Tree, found: Tree) -> list[str]:
    """Return how a tree differs from a stage."""
    lines = []
    for path in sorted((expected.keys() | found.keys()) - {b""}):
        if path.startswith((b".elephan-backup", b".elephan-copy")):
            continue
        if path not in found or path not in expected:
            lines.append(f"{judge.shown(path)}: is {'missing' if path in expected else 'too much'}")
        else:
            wrong = judge.fields_that_differ(expected[path], found[path])
            lines += [f"{judge.shown(path)}: {line}" for line in wrong]
    return lines
