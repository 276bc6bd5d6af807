"""In the virtual machine: a disk that fails, or loses its power, while a copy writes to it (dm-flakey).

    python -m tests.power_cut.errors WORK

Each round copies a stage of a source. At a random moment all writes fail ("error_writes"), or are acknowledged and lost
("drop_writes"). The file system is then mounted again with a disk that works: each name is wholly old or wholly new,
and the same command finishes the rest. A copy that met errors and ends with exit code 0 has copied all.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
from pathlib import Path

from tests.copy.model import command, judge
from tests.copy.model.predict import predict
from tests.copy.model.request import Request
from tests.power_cut import places
from tests.power_cut.copies import LIMIT_S, bind, finished, words_of, world

NAME = "flaky"
ROUNDS = 18
RATE = b"--rate=1MB/s"
"""A copy takes ten seconds: changing the device's table takes one."""
DEVICE = f"/dev/mapper/{NAME}"


def table(feature: str | None) -> str:
    """Return the table of the device: all writes with the feature, or as they are."""
    sectors = int(Path("/sys/block/vdb/size").read_text())
    if feature is None:
        return f"0 {sectors} linear /dev/vdb 0"
    # Up for 0 s, down for an hour.
    return f"0 {sectors} flakey /dev/vdb 0 0 3600 1 {feature}"


def switch(feature: str | None) -> None:
    """Change the table while the file system is mounted, which is not told to write anything before."""
    places.run("dmsetup", "load", NAME, "--table", table(feature))
    places.run("dmsetup", "suspend", "--nolockfs", "--noflush", NAME)
    places.run("dmsetup", "resume", NAME)


def one(number: int, request: Request, draw: random.Random) -> tuple[int, list[str]]:
    """Make a round; return the exit code of its copy, and what is wrong."""
    if number % 3:
        # Most rounds copy all, which takes some seconds.
        shutil.rmtree(places.DISK / "dst")
        (places.DISK / "dst").mkdir()
        os.sync()
    before = world()
    feature = ("error_writes", "drop_writes")[number % 2]
    child = command.start(words_of(request, RATE), places.STATE)
    after_s = draw.uniform(0.1, 8)
    time.sleep(after_s)
    switch(feature)
    result = child.wait(LIMIT_S)
    places.unmount(places.DISK)
    switch(None)
    places.mount(DEVICE, places.DISK)
    print(f"round {number}: {feature} after {after_s:.2f} s, exit code {result.code}", flush=True)
    tree = world()
    prediction = predict(before, request)
    lines = judge.torn(prediction, before, tree, b"disk/dst", lenient=feature == "error_writes")
    if feature == "error_writes" and result.code == 0:
        lines += [f"exit code 0: {line}" for line in judge.differences(prediction, tree, before, b"disk/dst")]
    if result.code not in (0, 1) or "Traceback" in result.output or "panicked" in result.output:
        lines.append(f"exit code {result.code}: {result.output.strip()[-1000:]}")
    if result.code == 1:
        print(f"    {result.output.strip()[-160:]!r}", flush=True)
    return result.code, lines + finished(request, tree)


def main() -> int:
    """Run all rounds."""
    work = Path(sys.argv[1])
    plan = json.loads((work / "plan.json").read_text())
    places.mount("/dev/vda", places.SOURCES, "ro")
    places.run("dmsetup", "create", NAME, "--table", table(None))
    places.mount(DEVICE, places.DISK)
    command.load(places.ROOT, LIMIT_S)
    for folder in (places.DISK / "dst", places.STATE):
        folder.mkdir()
    draw = random.Random(str(plan))
    # The kernel's errors are those that are made here.
    places.run("dmesg", "--console-off")
    failed = met = 0
    for number in range(ROUNDS):
        step = plan[number % len(plan)]
        bind(step["stage"])
        code, lines = one(number, Request.of_step(step["request"]), draw)
        met += code != 0
        failed += bool(lines)
        for line in lines[:8]:
            print(f"    {line}", flush=True)
        places.unmount(places.ROOT / "src")
    places.unmount(places.DISK)
    places.run("dmsetup", "remove", NAME)
    print(f"{ROUNDS} rounds, {met} copies that ended with an error, {failed} failed", flush=True)
    if met == 0:
        print("no copy was disturbed")
    return 1 if failed or not met else 0


if __name__ == "__main__":
    sys.exit(main())
