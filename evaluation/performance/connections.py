"""`python -m evaluation.performance.connections`: CPU time and memory of `elephan run`, whole, with many connections,
and of `check`. Writes the table of docs/results/connections.md.

Each row is a process of its own: file read, network set up, one second simulated, record stored, report written.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from evaluation.markdown import fill, table
from evaluation.requirements import exit_code

PAGE = "connections.md"
COMMAND = "python -m evaluation.performance.connections"
PATH = '[run]\nduration = "1s"\n[path]\nbandwidth = "10Gbit/s"\nrtt = "20ms"\n'
SWEEP = """
[sweep]
"path.loss" = { from = 0.0001, to = 0.1, count = 1000 }
"path.rtt" = { from = "1ms", to = "1000ms", step = "1ms" }
"""


@dataclass(frozen=True)
class Case:
    """A command to be timed."""

    title: str
    command: str
    text: str


FEW, MANY = 1_000, 100_000
"""Connections of two cases, whose difference is the cost of a connection."""


def of_one_flow(count: int) -> Case:
    """Return a run of so many connections of one flow."""
    return Case(f"run, {count:,} connections of one flow", "run", f"{PATH}[[flow]]\nconnections = {count}\n")


CASES = (
    *(of_one_flow(count) for count in (FEW, 20_000, MANY)),
    *(Case(f"run, {n:,} flows of one connection", "run", PATH + "[[flow]]\n" * n) for n in (1_000, 20_000)),
    Case("check, a sweep of 1,000,000 points", "check", f"{PATH}[[flow]]\n{SWEEP}"),
)


def measured(case: Case, folder: Path) -> tuple[float, float]:
    """Return CPU seconds and the most memory in MB of a command with all that it does."""
    file = folder / "case.toml"
    file.write_text(case.text, encoding="utf-8")
    program = str(Path(sys.executable).with_name("elephan"))
    arguments = [program, case.command, str(file)]
    if case.command == "run":
        arguments += ["--store", str(folder / "store.sqlite"), "--again", "--out", str(folder / "out")]
    log = os.open(folder / "log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    actions = [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    child = os.posix_spawn(program, arguments, os.environ, file_actions=actions)
    _, status, usage = os.wait4(child, 0)
    os.close(log)
    if status:
        raise SystemExit(f"{case.title}: {(folder / 'log').read_text(encoding='utf-8')}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def text_of(found: dict[Case, tuple[float, float]]) -> str:
    """Return the part of the page: CPU seconds and memory in MB of each case, and a connection's share of both."""
    rows = [[case.title, f"{cpu_s:.1f}", f"{memory_mb:,.0f}"] for case, (cpu_s, memory_mb) in found.items()]
    (few_s, few_mb), (many_s, many_mb) = found[of_one_flow(FEW)], found[of_one_flow(MANY)]
    more = MANY - FEW
    sentence = (
        f"From {FEW:,} to {MANY:,} connections of one flow each takes {(many_s - few_s) / more * 1e3:.2f} ms of CPU "
        f"time and {(many_mb - few_mb) / more * 1e3:.1f} kB."
    )
    return f"{fill(sentence)}\n\n{table(['command', 'CPU, s', 'memory, MB'], rows)}"


def main() -> None:
    """Measure all cases, then write."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    found = {}
    with tempfile.TemporaryDirectory(prefix="elephan-") as folder:
        # The first command makes the store.
        measured(CASES[0], Path(folder))
        for case in CASES:
            found[case] = measured(case, Path(folder))
            print(f"{case.title}: {found[case][0]:.1f} s, {found[case][1]:,.0f} MB", file=sys.stderr)
    # A child's ru_maxrss is at least what its parent had when it started it: the core is imported after all of them.
    from evaluation.parts import write_parts

    write_parts(PAGE, COMMAND, {"cost": text_of(found)})


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.connections", main))
