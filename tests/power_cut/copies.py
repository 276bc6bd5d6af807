"""Copies of trees that change in between, some of them killed."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.copy.model import changes, command, judge
from tests.copy.model.draw import Draw
from tests.copy.model.predict import predict
from tests.copy.model.request import Request
from tests.copy.model.walk import Tree, walk
from tests.power_cut import places

if TYPE_CHECKING:
    from tests.power_cut.recording import Recorder

STAGES = 6
ENTRIES, CHANGES = 45, 25
"""In the first tree, and before each further stage."""
LARGE_BYTES = 3 << 20
"""Of some files: several commits write them."""
RATE = "6MB/s"
"""A stage takes some seconds, and a commit is made each second."""
LIMIT_S = 900.0
"""For a copy in the virtual machine."""
SWITCHES = ("checksum", "whole", "verify_read", "one_stream", "many_streams", "quic")
SKIP = frozenset({b"state", b"lost+found"})
SRC = places.ROOT / "src"


def grow(folder: Path, draw: random.Random, seed: int, count: int) -> None:
    """Change the tree `folder/src` at random."""
    steps = Draw(seed, os.fsencode(folder), {"none": 1.0}, frozenset())
    steps.user, steps.stealth = None, False
    for _ in range(count):
        changes.apply(os.fsencode(folder), steps.change(b"src"))
    for number in range(3):
        path = os.fsencode(folder) + b"/src/large%d" % number
        if draw.random() < 0.6:
            changes.apply(os.fsencode(folder), ["replace", f"src/large{number}", seed + number, LARGE_BYTES])
        elif os.path.exists(path):
            changes.apply(os.fsencode(folder), ["resize", f"src/large{number}", draw.randrange(LARGE_BYTES), 1, False])


def stages(folder: Path, draw: random.Random, count: int) -> None:
    """Make trees `folder/NUMBER/src`, each from the one before."""
    for number in range(count):
        stage = folder / str(number)
        if number:
            places.run("cp", "-a", "--sparse=auto", folder / str(number - 1), stage)
        else:
            (stage / "src").mkdir(parents=True)
        grow(stage, draw, draw.randrange(1 << 20), CHANGES if number else ENTRIES)


class Copies:
    """A destination that follows the stages of a source."""

    def __init__(self) -> None:
        """Nothing was judged yet."""
        self.before: dict[int, Tree] = {}

    def prepare(self, work: Path, draw: random.Random) -> None:
        """Make the stages, and a request for each."""
        stages(places.SOURCES, draw, STAGES)
        plan = []
        for number in range(STAGES):
            switches = {"mirror"} | set(draw.sample(SWITCHES, draw.randrange(3)))
            request = Request((b"src/",), b"disk/dst", frozenset(switches), max_removals=10_000)
            kills_s = [round(draw.uniform(0.3, 4), 2) for _ in range(draw.choice((0, 0, 1, 2)))]
            plan.append({"request": request.as_step(), "kills_s": kills_s, "stage": number})
        (work / "plan.json").write_text(json.dumps(plan))

    def record(self, recorder: Recorder) -> None:
        """Copy each stage; a copy may be killed, and is run again."""
        plan = json.loads((recorder.work / "plan.json").read_text())
        command.load(places.ROOT, LIMIT_S)
        for folder in (places.DISK / "dst", places.STATE):
            folder.mkdir()
        os.sync()
        for number, step in enumerate(plan):
            bind(step["stage"])
            recorder.mark(f"begin {number}")
            words = words_of(Request.of_step(step["request"]))
            for after_s in step["kills_s"]:
                child = command.start(words, places.STATE)
                time.sleep(after_s)
                os.kill(child.pid, signal.SIGKILL)
                child.wait(LIMIT_S)
            result = command.start(words, places.STATE).wait(LIMIT_S)
            recorder.mark(f"done {number} {result.code}")
            if result.code != 0:
                print(result.output)
            places.unmount(SRC)

    def judge(self, work: Path, marks: list[str]) -> list[str]:
        """Each name is wholly old or wholly new; after the end all is new; the same command finishes the rest."""
        if not marks:
            return []
        plan = json.loads((work / "plan.json").read_text())
        what, number, *code = marks[-1].split()
        step = plan[int(number)]
        bind(step["stage"])
        try:
            return self._judge(int(number), Request.of_step(step["request"]), what == "done", code)
        finally:
            places.unmount(SRC)

    def _judge(self, number: int, request: Request, is_done: bool, code: list[str]) -> list[str]:
        tree = world()
        if not is_done:
            if number not in self.before:
                # The first cut behind the mark: nothing was written since the end of the last stage.
                self.before[number] = tree
            before = self.before[number]
            lines = judge.torn(predict(before, request), before, tree, b"disk/dst")
        else:
            prediction = predict(self.before[number], request)
            lines = judge.differences(prediction, tree, self.before[number], b"disk/dst")
            if code != ["0"] or prediction.codes != {0}:
                lines.append(f"exit code {code[0]}, should be {prediction.codes}")
        if lines:
            return lines
        return finished(request, tree)


def finished(request: Request, tree: Tree) -> list[str]:
    """Run a copy over what is there, and return what is wrong then."""
    tree = {path: node for path, node in tree.items() if not judge.is_own(path, b"disk/dst")}
    prediction = predict(tree, request)
    receipt = places.ROOT / "receipt.json"
    words = words_of(request, b"--receipt", os.fsencode(receipt))
    result = command.start(words, places.STATE).wait()
    after = world()
    lines = [f"run again: {line}" for line in judge.differences(prediction, after, tree, b"disk/dst")]
    if result.code not in prediction.codes:
        lines.append(f"run again: exit code {result.code}: {result.output.strip()[-400:]}")
    elif result.code == 0:
        verified = command.start([[b"copy", b"verify", os.fsencode(receipt)]], places.STATE).wait()
        if verified.code != 0:
            lines.append(f"copy verify: exit code {verified.code}: {verified.output.strip()[-400:]}")
    return lines


def bind(stage: object) -> None:
    """Let `src` be a stage of the source."""
    SRC.mkdir(exist_ok=True)
    places.run("mount", "--bind", places.SOURCES / str(stage) / "src", SRC)


def words_of(request: Request, *more: bytes) -> list[list[bytes]]:
    """Return the command of a request."""
    extra: tuple[bytes, ...] = (b"--quiet", b"--retry-for=1s")
    # On the machine that judges nothing is to be stretched.
    extra += more or (b"--rate=" + RATE.encode(),)
    return [request.words(os.fsencode(places.ROOT), extra)]


def world() -> Tree:
    """Return source and destination."""
    tree = {}
    for name, folder in ((b"src", SRC), (b"disk", places.DISK)):
        for path, node in walk(os.fsencode(folder), SKIP).items():
            tree[name + b"/" + path if path else name] = node
    # Its time is that of names that a copy makes beside the destination.
    tree[b"disk"] = tree[b"disk"].but(unjudged=frozenset({"modified_ns"}))
    return tree
