"""`python -m evaluation.performance.sweep_command`: CPU time of `elephan run` by the points of a sweep, beside their
simulation. Writes the first table of docs/results/sweeps.md.

A point takes about a millisecond to simulate. Each command is a process of its own, from its start to its end, with a
store that is there and a folder that is not. Other work on the machine lengthens CPU time too, by what it takes from
the processors' caches: commands and simulations alone take turns, and the medians count.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from elephan.store import Store
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.performance.sweep import PAGE, Cost, say, simulated
from evaluation.requirements import exit_code

COMMAND = "python -m evaluation.performance.sweep_command"
POINTS = 1_000
TURNS = 5
BESIDE_MAX_MS = 2.0
"""Bound on the CPU time of a command by its points, beside their simulation, ms."""

TEXT = """
name = "millisecond"
[run]
duration = "1s"
repetitions = 2
[path]
bandwidth = "200Mbit/s"
rtt = "20ms"
[[flow]]
name = "copy"
workload = "bulk"
[measure]
series = {series}
[sweep]
"path.rtt" = {{ from = "10ms", to = "109ms", step = "1ms" }}
"path.bandwidth" = ["160Mbit/s", "200Mbit/s", "240Mbit/s", "280Mbit/s", "320Mbit/s"]
"""
SERIES = {"series every 10 ms": '"10ms"', "no series": "false"}


def by_command(title: str, file: Path, options: list[str]) -> Cost:
    """Return the cost of `elephan run` on a scenario, as a process of its own."""
    folder = Path(tempfile.mkdtemp(dir=file.parent))
    store = folder / "results.sqlite"
    Store(str(store)).close()
    command = [sys.executable, "-c", "from elephan.cli import main; main()", "run", str(file), "--store", str(store)]
    # Python that may keep no bytecode compiles each module at each start: 40 % of the command's time.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    wall_s, before_s = time.perf_counter(), cpu_of_children()
    subprocess.run([*command, "--out", str(folder / "out"), *options], check=True, capture_output=True, env=environment)
    return Cost(title, POINTS, time.perf_counter() - wall_s, cpu_of_children() - before_s)


def cpu_of_children() -> float:
    """Return the CPU time of the processes that have ended, s."""
    times = os.times()
    return times.children_user + times.children_system


def measured(turns: int) -> tuple[list[list[str]], float]:
    """Return the cells of each row, and the longest time of a point beside its simulation without a report, ms."""
    rows, most_ms = [], 0.0
    with tempfile.TemporaryDirectory(prefix="elephan-sweep-") as name:
        for title, series in SERIES.items():
            file = Path(name) / f"{title.replace(' ', '-')}.toml"
            file.write_text(TEXT.format(series=series), encoding="utf-8")
            for report, options in (("", ["--no-report"]), (", with its report", [])):
                alone_ms, cpu_s, beside_ms = [], [], []
                for _ in range(turns if not report else 1):
                    alone = simulated(file)
                    cost = by_command(title + report, file, options)
                    say(cost, alone)
                    alone_ms.append(alone.cpu_ms)
                    cpu_s.append(cost.here_s)
                    beside_ms.append(cost.overhead_ms(alone))
                if not report:
                    most_ms = max(most_ms, median(beside_ms))
                least, most = f"{min(beside_ms):.2f}", f"{max(beside_ms):.2f}"
                spread = "" if least == most else f" ({least} to {most})"
                cells = [f"{median(alone_ms):.2f}", f"{median(cpu_s):.2f}", f"{median(beside_ms):.2f}{spread}"]
                rows.append([title + report, *cells])
    return rows, most_ms


def main() -> int:
    """Measure, and write the page's part."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--turns", type=int, default=TURNS, help="commands of each kind")
    parser.add_argument("--dry", action="store_true", help="print the table, write no page")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    rows, most_ms = measured(options.turns)
    text = (
        fill(
            f"`elephan run` on {POINTS:,} points; medians of {options.turns} turns and their range, one turn with a "
            f"report. Without a report a point takes at most {most_ms:.2f} ms beside its simulation, "
            f"{'within' if most_ms <= BESIDE_MAX_MS else 'above'} the bound of {BESIDE_MAX_MS:g} ms. The machine's "
            f"load was {load:.1f} when this began, and {os.getloadavg()[0]:.1f} when it ended."
        )
        + "\n\n"
        + table(["sweep", "simulation of a point, ms", "CPU of the command, s", "a point beside it, ms"], rows)
    )
    if options.dry:
        print(text)
    else:
        write_parts(PAGE, COMMAND, {"command": text})
    return 0


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.sweep_command", main))
