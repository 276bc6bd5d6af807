"""Copies over long paths beside what people use: `python -m evaluation.performance.copy`, as root, with the programs.

Two hosts (network namespaces with an sshd each, tests/hosts/testbed.py) on elephan's emulated path; data goes from the
disk to the disk. Each run is stored when it ends (measured.jsonl beside this file), so that a matrix that was stopped
goes on. `--matrix short` takes about 20 minutes, `--matrix full` a night; options choose other cells. Writes the page
copy.md of docs/results, and its picture.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

from elephan.backends.programs import requirements
from elephan.errors import InputError, RunError
from elephan.path.testbed import DISK_FOLDERS
from evaluation.performance.copy import ours, page, resume
from evaluation.performance.copy.bench import Bench, bench
from evaluation.performance.copy.cells import MEASURED, NO_PATH, Line, Payload, Row, append, done, rows_in
from evaluation.performance.copy.payloads import Laid, laid
from evaluation.performance.copy.tools import B3SUM, TOOLS, Tool, chosen, paths_of
from evaluation.performance.programs import wait_for_quiet
from evaluation.requirements import exit_code, require


@dataclass(frozen=True)
class Matrix:
    """Cells: all that fit together of these."""

    rates_mbps: str
    rtts_ms: str
    losses: str
    payloads: str
    tools: str
    turns: int
    limit_s: float
    mtus: str = "1500"


WHOLE = ",".join(name for name in TOOLS if not name.startswith("engine"))

MATRICES = {
    "short": Matrix(
        "300", "50", "0,1e-4,1e-3", "1GB",
        "iperf3-8,scp,rsync,rclone,lftp,elephan-cubic-8,elephan-storage_friendly-8,elephan-quic-storage_friendly-8",
        1, 45,
    ),
    "full": Matrix("300,1000", "10,50,100,200", "0,1e-5,1e-4,1e-3", "1GB,10GB,small,device", WHOLE, 5, 180),
}  # fmt: skip


def numbers(name: str, text: str) -> list[float]:
    """Return the numbers of an option. Raises `InputError`."""
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        raise InputError(f"--{name} {text}: numbers with commas between them") from None
    if any(number < 0 for number in found):
        raise InputError(f"--{name} {text}: 0 or more")
    return found


def lines_of(options: argparse.Namespace) -> list[Line]:
    """Return the lines that options ask for, and none at all for the bounds of the disk."""
    asked = product(
        numbers("rate", options.rate), numbers("rtt", options.rtt), numbers("loss", options.loss),
        numbers("mtu", options.mtu),
    )  # fmt: skip
    return [NO_PATH, *(Line(int(rate), rtt, loss, int(mtu)) for rate, rtt, loss, mtu in asked)]


@dataclass
class Harness:
    """One invocation: what is to be measured, where it is stored."""

    options: argparse.Namespace
    file: Path
    tools: Sequence[Tool]
    failures: int = 0

    def missing(self, line: Line, payload: Payload, turn: int) -> list[Tool]:
        """Return the tools that have not run there in this turn, in an order that changes with it."""
        rows = rows_in(self.file)
        wanted = [
            tool
            for tool in self.tools
            if tool.suits(line, payload)
            and done(rows, (line, payload.name, tool.name), ours.build() if tool.ours else "") < turn
        ]
        shift = turn % max(len(wanted), 1)
        return wanted[shift:] + wanted[:shift]

    def measure(self, made: Bench, payload: Laid, tool: Tool, turn: int) -> None:
        """Run a tool once and store its row; a failure is told, and the others go on."""
        if not self.options.busy:
            wait_for_quiet()
        payload.reset()
        line = NO_PATH if tool.at == "disk" else made.line
        row = Row(line, payload.payload.name, tool.name, turn, 0.0, 0, False)
        row.version = requirements.version(tool.command) or "" if tool.command else ""
        row.date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        began_s = time.monotonic()
        try:
            tool.run(made, payload, self.options.limit, row)
            if row.complete and not tool.name.startswith("iperf3") and self.options.check:
                payload.check()
        except RunError as error:
            made.clear()
            self.failures += 1
            say(f"{line.text} | {payload.payload.name} | {tool.name}: {error}")
            return
        append(self.file, row)
        marks = "".join([*(f" [{name}]" for name in row.limits), "" if row.complete else " [stopped]"])
        say(
            f"{line.text} | {payload.payload.name} | {tool.name} {turn}: {row.goodput_mbps:.4g} Mbit/s, "
            f"{row.cpu_per_gb:.2f} CPU s/GB ({row.cpu_near_s:.2f} + {row.cpu_far_s:.2f} s), "
            f"{time.monotonic() - began_s:.0f} s{marks}"
        )

    def turns(self, payload: Laid, lines: Sequence[Line]) -> None:
        """Measure a payload on all lines, turn after turn."""
        for turn, line in product(range(1, self.options.turns + 1), lines):
            tools = self.missing(line, payload.payload, turn)
            if not tools:
                continue
            with tempfile.TemporaryDirectory(prefix="elephan-copy-", dir=DISK_FOLDERS) as folder:
                Path(folder).chmod(0o755)
                with bench(line, Path(folder)) as made:
                    if any(tool.ours for tool in tools):
                        ours.prepare(made)
                    for tool in tools:
                        self.measure(made, payload, tool, turn)


def say(text: str) -> None:
    """Progress goes to standard error."""
    print(text, file=sys.stderr, flush=True)


def parsed() -> argparse.Namespace:
    """Return the options, those of the matrix where none is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", choices=MATRICES, default="short", help="cells where no option says others (short)")
    parser.add_argument("--rate", metavar="MBPS,...", help="rates of the line, Mbit/s")
    parser.add_argument("--rtt", metavar="MS,...", help="round trips, ms")
    parser.add_argument("--loss", metavar="P,...", help="shares of packets that are lost")
    parser.add_argument("--mtu", metavar="BYTES,...", help="MTUs of the line")
    parser.add_argument("--payload", metavar="NAME,...", help="1GB (any size), small[:FILES], device[:SIZE]")
    parser.add_argument("--tools", metavar="NAME,...", help=f"names or their beginnings: {', '.join(TOOLS)}")
    parser.add_argument("--turns", type=int, metavar="N", help="runs of each cell, in turns")
    parser.add_argument("--limit", type=float, metavar="S", help="time after which a run is stopped, and counts so")
    parser.add_argument("--resume", metavar="SIZE", help="measure how soon a copy of one file of SIZE goes on, alone")
    parser.add_argument("--busy", action="store_true", help="do not wait for a quiet machine")
    parser.add_argument("--no-check", dest="check", action="store_false", help="do not compare copies with sources")
    parser.add_argument("--store", type=Path, default=MEASURED, metavar="FILE", help="rows (measured.jsonl)")
    parser.add_argument("--page", action="store_true", help="only write the page from the rows")
    options = parser.parse_args()
    matrix = MATRICES[options.matrix]
    for option, value in {
        "rate": matrix.rates_mbps, "rtt": matrix.rtts_ms, "loss": matrix.losses, "mtu": matrix.mtus,
        "payload": matrix.payloads, "tools": matrix.tools, "turns": matrix.turns, "limit": matrix.limit_s,
    }.items():  # fmt: skip
        if getattr(options, option) is None:
            setattr(options, option, value)
    return options


def main() -> int:
    """Measure what is missing, then write."""
    options = parsed()
    tools = chosen(options.tools)
    harness = Harness(options, options.store, tools)
    if not options.page:
        require({**paths_of(tools), "nsenter": "util-linux"}, path=True)
        if any(tool.name == "cp-b3sum" for tool in tools) and not B3SUM.exists():
            raise InputError(f"needs {B3SUM}: cargo install --root target/peers --version 1.8.2 --locked b3sum")
        lines = lines_of(options)
        if options.resume:
            resume.measure(lines[1:], Payload(options.resume), options, say)
        else:
            for payload in [Payload(name) for name in options.payload.split(",")]:
                with tempfile.TemporaryDirectory(prefix="elephan-copy-", dir=DISK_FOLDERS) as folder:
                    Path(folder).chmod(0o755)
                    with laid(payload, Path(folder)) as made:
                        harness.turns(made, lines)
    if options.store == MEASURED or options.page:
        page.write(rows_in(options.store))
    return 1 if harness.failures else 0


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.copy", main))
