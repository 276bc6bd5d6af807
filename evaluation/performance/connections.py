"""`python -m evaluation.performance.connections`: CPU time and memory of `elephan run`, whole, with many connections,
and of `check`.

Each row is a process of its own: file read, network set up, one second simulated, record stored, report written.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

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


CASES = (
    *(
        Case(f"run, {n:,} connections of one flow", "run", f"{PATH}[[flow]]\nconnections = {n}\n")
        for n in (1_000, 20_000, 100_000)
    ),
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


def main() -> None:
    """Print a table."""
    print("| command | CPU, s | memory, MB |\n| --- | ---: | ---: |")
    with tempfile.TemporaryDirectory(prefix="elephan-") as folder:
        # The first command makes the store.
        measured(CASES[0], Path(folder))
        for case in CASES:
            cpu_s, memory_mb = measured(case, Path(folder))
            print(f"| {case.title} | {cpu_s:.1f} | {memory_mb:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
