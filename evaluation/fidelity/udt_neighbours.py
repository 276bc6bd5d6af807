"""Harm of UDT and SRT to three CUBIC flows, by this machine's programs and simulated: a part of docs/results/udt.md.

`python -m evaluation.fidelity.udt_neighbours`; with --measure as root, on the backend kernel, with libudt and SRT. What
was measured is kept in udt_neighbours.jsonl beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from elephan.api import jobs_of, load
from elephan.backends.host import cpu_model
from elephan.backends.kernel.backend import FAULT
from elephan.backends.programs.requirements import installed, lacks
from elephan.errors import InputError, RunError
from elephan.record import Record
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code, require
from evaluation.runner import OUT, Runner, add_options

PAGE = "udt.md"
COMMAND = "python -m evaluation.fidelity.udt_neighbours"
MEASURED = Path(__file__).with_name("udt_neighbours.jsonl")
NEIGHBOURS = 3
RATE_MBPS = 100
BEGIN_S, WARMUP_S, END_S = 2, 8, 20
"""Start of the newcomer, and the interval that is measured, s."""
REPETITIONS = 3
"""Of each cell on the kernel that count; as many more are run in place of others."""

LOAD_MAX = 3.0
"""Largest load average of a minute before a run that counts: a program waits for a processor where others run."""
WAIT_S = 1800.0
"""Longest wait for that, s."""

SCENARIO = """\
[run]
duration = "{end}s"
[path]
bandwidth = "{rate}Mbit/s"
rtt = "{rtt}ms"
queue = "{queue}"
[[flow]]
name = "neighbours"
connections = {neighbours}
workload = "bulk"
[[flow]]
name = "newcomer"
start = "{begin}s"
{newcomer}
[measure]
warmup = "{warmup}s"
"""

CUBIC = 'workload = "bulk"'
PROGRAM = 'workload = {{ kind = "program", program = "{}", bytes = "10GB" }}'
LIVE = {"CUBIC": CUBIC, "UDT": PROGRAM.format("udt"), "SRT": PROGRAM.format("srt")}
"""Newcomers on the kernel, and their keys; no program ends within the run."""
SIMULATED = {"CUBIC": CUBIC, "UDT": f'transport = "udt4"\n{CUBIC}', "UDT of 2003": f'transport = "udt-2003"\n{CUBIC}'}


@dataclass(frozen=True)
class Cell:
    """A path."""

    rtt_ms: int
    queue: str

    def scenario(self, newcomer: str) -> str:
        """Return the scenario with the keys of a newcomer."""
        return SCENARIO.format(
            end=END_S, rate=RATE_MBPS, rtt=self.rtt_ms, queue=self.queue, neighbours=NEIGHBOURS, begin=BEGIN_S,
            newcomer=newcomer, warmup=WARMUP_S,
        )  # fmt: skip


CELLS = (Cell(10, "1bdp"), Cell(50, "1bdp"), Cell(50, "0.1bdp"))


@dataclass(frozen=True)
class Split:
    """Goodput of the neighbours together and of the newcomer, bit/s."""

    neighbours_bps: float
    newcomer_bps: float

    @classmethod
    def of(cls, record: Record) -> Split:
        """Return that of a run."""
        goodput = [float(flow["goodput_bps"]) for flow in record.flows]
        return cls(sum(goodput[:NEIGHBOURS]), goodput[NEIGHBOURS])


def run(cell: Cell, newcomer: str, backend: str, runner: Runner) -> Record:
    """Run a newcomer beside the neighbours. Raises `RunError`."""
    OUT.mkdir(parents=True, exist_ok=True)
    file = OUT / "udt-neighbours.toml"
    file.write_text(cell.scenario(newcomer), encoding="utf-8")
    (record,) = runner.run(jobs_of(load(file), backend=backend)).records
    return record


def measure() -> None:
    """Run on the kernel what lacks. Raises `InputError`, `RunError`."""
    require({}, root=True, path=True)
    lacking = [text for program in ("udt", "srt") if (text := lacks(program, installed()))]
    if lacking:
        raise InputError("; ".join(lacking))
    runner = Runner(None)
    # One round after the other, so that a busy time of the machine is not one newcomer's.
    for _ in range(2 * REPETITIONS):
        for cell in CELLS:
            for name, newcomer in LIVE.items():
                if len(counted(rows(), cell, name)) >= REPETITIONS:
                    continue
                wait_for_quiet()
                load_1min = os.getloadavg()[0]
                record = run(cell, newcomer, "kernel", runner)
                row = {
                    "cell": vars(cell),
                    "newcomer": name,
                    "split": vars(Split.of(record)),
                    "faults": [note.removeprefix(FAULT) for note in record.notes if note.startswith(FAULT)],
                    "load": round(load_1min, 2),
                    "programs": record.host.get("programs", {}),
                    "day": datetime.now(UTC).strftime("%Y-%m-%d"),
                    "machine": cpu_model(),
                }
                with MEASURED.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)


def wait_for_quiet() -> None:
    """Wait until the load average is low enough for a run. Raises `RunError` if that takes too long."""
    deadline_s = time.monotonic() + WAIT_S
    while os.getloadavg()[0] > LOAD_MAX:
        if time.monotonic() > deadline_s:
            raise RunError(f"the load average is {os.getloadavg()[0]:.1f}: measure where nothing else runs")
        time.sleep(1)


def rows() -> list[dict[str, Any]]:
    """Return what was measured."""
    if not MEASURED.is_file():
        return []
    return [json.loads(line) for line in MEASURED.read_text(encoding="utf-8").splitlines()]


def counted(measured: Sequence[dict[str, Any]], cell: Cell, newcomer: str) -> list[Split]:
    """Return the runs of a newcomer in a cell that count."""
    ours = (row for row in measured if row["cell"] == vars(cell) and row["newcomer"] == newcomer)
    return [Split(**row["split"]) for row in ours if counts(row)]


def counts(row: dict[str, Any]) -> bool:
    """Return True if the emulator honoured the path, on a machine that was free for the run."""
    return not row["faults"] and float(row["load"]) <= LOAD_MAX


def lines(
    cell: Cell, backend: str, newcomers: Sequence[str], splits: Callable[[str], list[Split]]
) -> list[list[str]]:
    """Return the table's lines of a cell on one backend."""
    found = {name: splits(name) for name in newcomers}
    beside_cubic = fmean(one.neighbours_bps for one in found["CUBIC"]) if found["CUBIC"] else None
    cells = []
    for name, runs in found.items():
        if not runs:
            continue
        kept = None if beside_cubic is None else fmean(one.neighbours_bps for one in runs) / beside_cubic
        cells.append(
            [
                f"{cell.rtt_ms} ms", cell.queue, backend, name,
                spread([one.neighbours_bps for one in runs]), spread([one.newcomer_bps for one in runs]),
                "" if kept is None else f"{100 * kept:.0f} %", str(len(runs)),
            ]
        )  # fmt: skip
    return cells


def spread(values_bps: Sequence[float]) -> str:
    """Return the mean, and the least and the most of several, Mbit/s."""
    mean = f"{fmean(values_bps) / 1e6:.1f}"
    return mean if len(values_bps) == 1 else f"{mean} ({min(values_bps) / 1e6:.1f} to {max(values_bps) / 1e6:.1f})"


def page(runner: Runner) -> None:
    """Simulate, and write the part of the page."""
    measured = rows()
    cells = []
    for cell in CELLS:
        cells += lines(cell, "kernel", list(LIVE), partial(counted, measured, cell))
        splits = {name: [Split.of(run(cell, keys, "sim", runner))] for name, keys in SIMULATED.items()}
        cells += lines(cell, "sim", list(SIMULATED), splits.__getitem__)
    head = [
        "RTT", "queue", "backend", "newcomer", f"{NEIGHBOURS} neighbours together, Mbit/s", "newcomer, Mbit/s",
        "neighbours keep", "runs",
    ]  # fmt: skip
    said = (
        f"Goodput from {WARMUP_S} to {END_S} s, mean and range over the runs; {RATE_MBPS} Mbit/s; {NEIGHBOURS} CUBIC "
        f"flows from the start, the newcomer from {BEGIN_S} s. *Neighbours keep*: their goodput as a part of that "
        "beside a CUBIC newcomer on the same backend."
    )
    if measured:
        refused = sum(not counts(row) for row in measured)
        loads = [row["load"] for row in measured if counts(row)]
        said += (
            f" On kernel, measured on {' and '.join(sorted({row['day'] for row in measured}))} ("
            f"{' and '.join(sorted({row['machine'] for row in measured}))}), {refused} of {len(measured)} runs do not "
            "count, because the emulator did not honour the path or the load average before the run was above "
            f"{LOAD_MAX:g}; before the others it was {min(loads):.1f} to {max(loads):.1f}, of earlier runs and of "
            "others. "
            + ", ".join(sorted({f"{name} {version}" for row in measured for name, version in row["programs"].items()}))
            + "; Debian's libudt 4.11."
        )
    write_parts(PAGE, COMMAND, {"neighbours": f"{table(head, cells)}\n\n{fill(said)}"})


def main() -> None:
    """Measure, or write the part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="run on the kernel what lacks")
    add_options(parser)
    options = parser.parse_args()
    if options.measure:
        measure()
    page(Runner.of(options))


if __name__ == "__main__":
    sys.exit(exit_code("udt_neighbours", main))
