"""Jobs of backup under changes, kills, faults, full disks and clocks that are set, held against a model.

    python -m tests.backup.model --minutes 10          # seeds from the clock on, for so long
    python -m tests.backup.model --seed 17             # one sequence again; --steps FILE makes those of a file

For every file that was ever whole in a kept version, a restore of that version gives exactly those bytes; a version
that has ended never changes; and none goes that the rule keeps. A failure prints its seed and the steps that are left
when all that it does not need is gone. Exit code 1 at the end.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import sys
import time
from importlib import import_module
from pathlib import Path

from tests.backup.model.machine import Machine, Step, drawn, replayed
from tests.copy.model import clock, command, places, tracer
from tests.copy.model.search_parser import search_parser

ROOT = Path(__file__).resolve().parents[3]
FAILED = ROOT / "out" / "backup-model"
LENGTH = 30


def shrunk(machine: Machine, job: list[object], steps: list[Step], how: str, limit_s: float) -> tuple[list[Step], str]:
    """Return fewer steps that fail alike."""
    end_s, kind = time.monotonic() + limit_s, how[:12]
    size = max(1, len(steps) // 2)
    while time.monotonic() < end_s:
        at, is_shorter = 0, False
        while at < len(steps) and time.monotonic() < end_s:
            fewer = steps[:at] + steps[at + size :]
            failure = replayed(machine, job, fewer)
            if failure is not None and failure[1][:12] == kind:
                steps, how, is_shorter = fewer[: failure[0] + 1], failure[1], True
            else:
                at += size
        if size == 1 and not is_shorter:
            break
        size = max(1, size // 2)
    return steps, how


def search(chosen: argparse.Namespace, clock_file: Path | None) -> int:
    """Make sequences; print failures and counts."""
    places.private_mounts()
    folder = places.mounted("tmpfs")
    folder.chmod(0o755)
    # The time since boot goes by as the machine says.
    (folder / "uptime").write_text(Path("/proc/uptime").read_text())
    places.bind(os.fsencode(folder / "uptime"), b"/proc/uptime")
    command.load(folder)
    for name in ("elephan.cli.backup", "elephan.backup.daemon", "elephan.backup.restoring", "elephan.backup.reading",
                 "elephan.backup.planning", "elephan.store.migrate", "sqlite3", "alembic"):  # fmt: skip
        import_module(name)
    machine = Machine(folder, clock_file)
    failures = number = 0
    began_s = time.monotonic()
    try:
        if chosen.steps is not None:
            told = json.loads(chosen.steps.read_text())
            failure = replayed(machine, told["job"], told["steps"])
            print(f"step {failure[0]}: {failure[1]}" if failure else "no failure")
            return 1 if failure else 0
        first = int(time.time()) if chosen.first is None else chosen.first
        for seed in [chosen.seed] if chosen.seed is not None else itertools.count(first):
            is_over = time.monotonic() - began_s > 60 * chosen.minutes
            if number and (is_over if chosen.sequences is None else number >= chosen.sequences):
                break
            number += 1
            job, steps = drawn(random.Random(seed), chosen.length)
            steps = [step for step in steps if step[0] not in chosen.without.split(",")]
            failure = replayed(machine, job, steps)
            if failure is None:
                continue
            failures += 1
            steps, how = steps[: failure[0] + 1], failure[1]
            if not chosen.no_shrink:
                steps, how = shrunk(machine, job, steps, how, chosen.shrink_for)
            FAILED.mkdir(parents=True, exist_ok=True)
            file = FAILED / f"{seed}.json"
            file.write_text(json.dumps({"failure": how, "job": job, "steps": steps}, indent=1) + "\n")
            print(f"seed {seed}, {job}: {how}")
            for step in steps:
                print(f"  {json.dumps(step)}")
            print(f"  again: {sys.executable} -m tests.backup.model --steps {file}", flush=True)
    finally:
        machine.end()
        places.unmount(b"/proc/uptime")
        places.removed(folder)
    total = ", ".join(f"{count} {what}" for what, count in sorted(machine.counts.items()))
    print(f"{number} sequences in {time.monotonic() - began_s:.0f} s: {total}; {failures} failed", flush=True)
    return 1 if failures else 0


def main() -> int:
    """Search for a time, or repeat one sequence."""
    parser = search_parser(__doc__, LENGTH)
    parser.add_argument("--without", default="", metavar="NAMES", help="steps that are left out")
    parser.add_argument("--no-shrink", action="store_true", help="print failures as they are")
    chosen = parser.parse_args()
    if (reason := tracer.missing()) is not None or os.geteuid() != 0:
        print(f"this needs root, to mount file systems: {reason or ''}", file=sys.stderr)
        return 2
    file = clock.own("tests.backup.model")
    if file is None:
        print("note: no C compiler: the clock is not set", file=sys.stderr)
    try:
        return search(chosen, file)
    finally:
        if file is not None:
            shutil.rmtree(file.parent)


if __name__ == "__main__":
    sys.exit(main())
