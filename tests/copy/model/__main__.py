"""Changes and copies drawn at random, each result held against a model: the tree that the manual promises.

    make model MINUTES=60                        # seeds from the clock on, for so long
    python -m tests.copy.model --seed 17         # one sequence again; --steps FILE makes those of a file

A sequence has some hundred steps in a world of its own: trees change, then `elephan copy` runs with options drawn at
random. It may be killed before a system call, meet an error or a full disk, or run beside a second one; the same
command has to finish it then. Its clock may be set. Some sequences copy to, from or within a second host (`remote.py`),
of which the agent may be killed, and the connections cut. After each copy the whole world is compared with the model,
down to the nanosecond. A failure prints its seed, and the steps that are left when all that it does not need is gone.
Exit code 1 at the end.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.copy.model import clock, command, places
from tests.copy.model.changes import Step
from tests.copy.model.draw import WITHOUT
from tests.copy.model.remote import Remote
from tests.copy.model.remote import Unavailable as NoRemote
from tests.copy.model.search_parser import search_parser
from tests.copy.model.sequence import STEPS, Failed, Machine, drawn, missing_judges, replayed
from tests.copy.model.shrink import shrunk

ROOT = Path(__file__).resolve().parents[3]
REMOTE_SHARE = 0.25
REMOTE_HELP = "share of sequences whose copies are between two hosts"
FAILED = ROOT / "out" / "model"
"""Folder of the steps of sequences that failed."""
KINDS = {
    "none": 50.0,
    "kill": 22.0,
    "error": 6.0,
    "record": 8.0,
    "full": 3.0,
    "sibling": 3.0,
    "change": 7.0,
    "damage": 2.0,
    "dry": 4.0,
    "busy": 1.5,
    "cut": 5.0,
}
"""Weights of what happens to a copy."""


def options() -> frozenset[str]:
    """Return the names of options that `elephan copy --help` lists."""
    words = [sys.executable, "-c", "from elephan.cli import main; main()", "copy", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return frozenset(word.strip(" ,") for word in done.stdout.split() if word.startswith("--"))


def main() -> int:
    """Search for a time, or repeat one sequence."""
    parser = search_parser(__doc__, STEPS)
    parser.add_argument("--fs", default="tmpfs", metavar="NAMES", help="tmpfs,ext4,xfs: in turn (default: tmpfs)")
    parser.add_argument("--plant", default="", metavar="NAMES", help="plant faults: length, sync, mount")
    parser.add_argument("--kinds", metavar="JSON", help=f"weights of what happens to a copy (default: {KINDS})")
    parser.add_argument("--without", default="", metavar="NAMES", help="options that are not drawn")
    share = f"{REMOTE_HELP} (default: {REMOTE_SHARE})"
    parser.add_argument("--remote", type=float, default=REMOTE_SHARE, metavar="SHARE", help=share)
    parser.add_argument("--no-shrink", action="store_true", help="print failures as they are")
    parser.add_argument("--first-failure", action="store_true", help="stop at the first failure")
    chosen = parser.parse_args()
    clock_file = clock.own("tests.copy.model")
    if clock_file is None:
        print("note: no C compiler: the clock is not set", file=sys.stderr)
    WITHOUT.update(name for name in chosen.without.split(",") if name)
    for problem in missing_judges():
        print(f"note: {problem}", file=sys.stderr)
    try:
        places.private_mounts()
    except OSError as error:
        print(f"this needs the right to mount: {error}", file=sys.stderr)
        return 2
    known = options()
    kinds = json.loads(chosen.kinds) if chosen.kinds else KINDS
    plant = [name for name in chosen.plant.split(",") if name]
    state = places.mounted("tmpfs")
    machines = []
    remote = None
    try:
        if chosen.remote > 0:
            try:
                remote = Remote(state / "second-host")
            except NoRemote as reason:
                print(f"note: no copies between hosts: {reason}", file=sys.stderr)
        command.load(state)
        if remote is not None:
            remote.load(state)
        for name in chosen.fs.split(","):
            machine = Machine(places.mounted(name), state, known, kinds, plant)
            machine.max_steps, machine.remote, machine.clock = chosen.length, remote, clock_file
            machine.remote_share = chosen.remote if remote is not None else 0.0
            machines.append((name, machine))
        return search(chosen, machines)
    except places.Unavailable as reason:
        print(reason, file=sys.stderr)
        return 2
    finally:
        if remote is not None:
            remote.close()
        for _, machine in machines:
            places.removed(machine.folder)
        places.removed(state)
        if clock_file is not None:
            shutil.rmtree(clock_file.parent)


def search(chosen: argparse.Namespace, machines: list[tuple[str, Machine]]) -> int:
    """Make sequences, and print failures and counts."""
    end_s = time.monotonic() + 60 * chosen.minutes
    began_s = time.monotonic()
    failures = number = 0
    if chosen.steps is not None:
        steps = json.loads(chosen.steps.read_text())["steps"]
        for name, machine in machines:
            failure = replayed(machine, steps)
            print(f"{name}: " + ("\n  ".join(failure.lines) if failure else "no failure"))
            failures += failure is not None
            if failure is not None and not chosen.no_shrink:
                report(name, machine, chosen.steps.stem.partition("-")[0], steps, failure, chosen)
        return 1 if failures else 0
    first = int(time.time()) if chosen.first is None else chosen.first
    for seed in [chosen.seed] if chosen.seed is not None else itertools.count(first):
        if number and (time.monotonic() > end_s if chosen.sequences is None else number >= chosen.sequences):
            break
        name, machine = machines[number % len(machines)]
        number += 1
        steps, failure = drawn(machine, seed)
        if failure is not None:
            failures += 1
            report(name, machine, seed, steps, failure, chosen)
            if chosen.first_failure:
                break
    total = sum((machine.counts for _, machine in machines), type(machines[0][1].counts)())
    parts = ", ".join(f"{count} {what}" for what, count in sorted(total.items()))
    print(f"{number} sequences in {time.monotonic() - began_s:.0f} s: {parts}; {failures} failed", flush=True)
    return 1 if failures else 0


def report(
    name: str, machine: Machine, seed: int | str, steps: list[Step], failure: Failed, chosen: argparse.Namespace
) -> None:
    """Print a failure, shrunk."""
    counts = machine.counts.copy()
    if not chosen.no_shrink:
        steps, failure = shrunk(steps, failure, lambda shorter: replayed(machine, shorter), chosen.shrink_for)
    machine.counts = counts
    FAILED.mkdir(parents=True, exist_ok=True)
    file = FAILED / f"{seed}-{name}.json"
    lines = ["{", f' "failure": {json.dumps(failure.lines)},', ' "steps": [']
    lines += [",\n".join(f"  {json.dumps(step)}" for step in steps), " ]", "}"]
    file.write_text("\n".join(lines) + "\n")
    print(
        f"seed {seed} on {name}: {failure.lines[0]}"
        + f" (and {len(failure.lines) - 1} more)" * (len(failure.lines) > 1)
    )
    for step in steps:
        print(f"  {json.dumps(step)}")
    own = os.path.relpath(file, ROOT)
    print(f"  again: {sys.executable} -m tests.copy.model --steps {own} --fs {name}", flush=True)


if __name__ == "__main__":
    tempfile.tempdir = tempfile.gettempdir()
    sys.exit(main())
