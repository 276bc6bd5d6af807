"""Path tests `hops` and `mtu` over emulated paths of three links: `python -m evaluation.path_tests.hops`, as root.

The middle link is the slowest and has the cross traffic. Writes parts of docs/results/hops.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.errors import RunError
from elephan.path import shell
from elephan.path.report import Report
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code, require

PAGE = "hops.md"
COMMAND = "python -m evaluation.path_tests.hops"
RUNS = 2
RATES_BPS = (10_000_000, 100_000_000, 1_000_000_000)
MORE_PACKETS = 96
"""Of a size to a router, where the default is not enough: on the middle one of these rates."""
PACKETS = 24
"""The default."""
LOADS = (0.0, 0.3, 0.6)
"""Share of the middle link that cross traffic takes."""
DELAYS_MS = (1, 8, 3)
MTUS = (1280, 1400, 1500)
"""Of the middle link, where the others have 1500."""
ON_MS = 5
"""Mean time for which a source of cross traffic sends, at the middle link's rate."""
PORT = 8862

NODES = "".join(f'[[node]]\nname = "{name}"\n' for name in ("a", "r1", "r2", "b"))
LINK = '[[link]]\nfrom = "{}"\nto = "{}"\nbandwidth = "{}bit/s"\ndelay = "{}ms"\nqueue = "2MB"\nmtu = "{}B"\n'
FLOW = '[[flow]]\nfrom = "a"\nto = "b"\ncongestion_control = "reno"\n'
CROSS = '[[background]]\nfrom = "{}"\nto = "{}"\nrate = "100%"\non = "{}ms"\noff = "{}us"\npacket = "1000B"\n'

REFLECT = """\
import sys
from elephan.core import native
reflector = native.PathReflector([sys.argv[1]])
print("ready", flush=True)
reflector.serve(lambda timeout_s: False)
"""
MEASURE = """\
import os, subprocess, sys
from elephan.core import native
towards = f"{os.environ['ELEPHAN_PATH_FAR']}:" + sys.argv[3]
there = ["ip", "netns", "exec", os.environ["ELEPHAN_PATH_FAR_NETNS"], sys.executable, "-c", sys.argv[4], towards]
with subprocess.Popen(there, stdout=subprocess.PIPE) as reflector:
    try:
        assert reflector.stdout.readline() == b"ready\\n"
        test = sys.argv[1].replace("TOWARDS", towards)
        outcome = native.path_test(test, lambda timeout_s: False)
    finally:
        reflector.terminate()
open(sys.argv[2], "w").write(outcome)
"""


@dataclass(frozen=True)
class Cell:
    """A path: rate of its middle link, cross traffic on it there and back, its MTU."""

    rate_bps: int
    load: float = 0.0
    mtu_bytes: int = 1500

    @property
    def rates_bps(self) -> tuple[int, int, int]:
        """Of the three links."""
        return 10 * self.rate_bps, self.rate_bps, 2 * self.rate_bps

    def scenario(self) -> str:
        """Return its scenario."""
        ends = (("a", "r1"), ("r1", "r2"), ("r2", "b"))
        mtus = (1500, self.mtu_bytes, 1500)
        links = [
            LINK.format(*end, rate, delay, mtu)
            for end, rate, delay, mtu in zip(ends, self.rates_bps, DELAYS_MS, mtus, strict=True)
        ]
        cross = []
        if self.load:
            # Two sources each way, each on for half of the load: together they exceed the link now and then.
            share = self.load / 2
            off_us = round(ON_MS * 1000 * (1 - share) / share)
            cross = [CROSS.format(*way, ON_MS, off_us) for way in (("r1", "r2"), ("r2", "r1")) for _ in range(2)]
        return f'[run]\nduration = "1h"\n{NODES}{"".join(links)}{"".join(cross)}{FLOW}'


def measured(cell: Cell, test: dict[str, Any]) -> tuple[dict[str, Any], Report]:
    """Run a path test over a cell's path; return its outcome and the path's report. Raises `RunError`."""
    with tempfile.TemporaryDirectory(prefix="elephan-hops-") as folder:
        file, out = Path(folder, "path.toml"), Path(folder, "outcome.json")
        file.write_text(cell.scenario(), encoding="utf-8")
        given = json.dumps({**test, "towards": "TOWARDS"})
        command = [sys.executable, "-c", MEASURE, given, str(out), str(PORT), REFLECT]
        code, report = shell.run(file, command)
        if code != 0 or not out.exists():
            raise RunError(f"{cell}: the test ended with {code}")
        assert isinstance(report, Report), "elephan's own emulator carried it"
        outcome: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return outcome, report


def error_of(outcome: dict[str, Any], quantity: str, truth: float) -> str:
    """Return by how much an estimate differs from the truth, percent, and whether its interval has the truth."""
    found = [one for one in outcome["estimates"] if one["quantity"] == quantity]
    if not found:
        return "refused"
    one = found[0]
    held = "" if one["low"] <= truth <= one["high"] else "*"
    return f"{100 * (one['value'] - truth) / truth:+.1f}{held}"


def row_of(cell: Cell, packets: int, outcomes: Sequence[tuple[dict[str, Any], Report]]) -> list[str]:
    """Return the row of a cell."""

    def each(quantity: str, truths: Sequence[float]) -> list[str]:
        return [
            ", ".join(error_of(outcome, f"hop_{hop}_{quantity}", truth) for outcome, _ in outcomes)
            for hop, truth in enumerate(truths, 1)
        ]

    rates, delays = each("capacity_bps", cell.rates_bps), each("delay_s", [delay / 1e3 for delay in DELAYS_MS])
    cost = outcomes[0][0]["cost"]
    share = 100 * max(outcome["cost"]["bytes"] * 8 / outcome["cost"]["seconds"] for outcome, _ in outcomes)
    unhonoured = sum(bool(report.faults()) for _, report in outcomes)
    return [
        f"{cell.rate_bps / 1e6:g} Mbit/s",
        f"{100 * cell.load:.0f} %",
        str(packets),
        *rates,
        *delays,
        f"{cost['seconds']:.0f} s, {share / cell.rate_bps:.2f} %",
        f"{unhonoured} of {len(outcomes)}",
    ]


HEADS = ["middle link", "cross traffic", "packets", "rate 1, %", "rate 2, %", "rate 3, %", "delay 1, %", "delay 2, %"]
HEADS += ["delay 3, %", "cost", "not honoured"]
MTU_HEADS = ["MTU of the middle link", "found", "packets", "seconds"]


def mtu_row(mtu_bytes: int) -> list[str]:
    """Search a path's MTU and return its row."""
    outcome, _ = measured(Cell(100_000_000, 0.0, mtu_bytes), {"test": "mtu"})
    found = [one["value"] for one in outcome["estimates"]]
    return [
        str(mtu_bytes),
        *(f"{value:.0f}" for value in found),
        str(outcome["cost"]["packets"]),
        f"{outcome['cost']['seconds']:.1f}",
    ]


def main() -> None:
    """Measure all, then write."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    require({}, path=True)
    rows = []
    plans = [(Cell(rate, load), PACKETS, RUNS) for rate in RATES_BPS for load in LOADS]
    plans += [(Cell(RATES_BPS[1], load), MORE_PACKETS, 1) for load in LOADS]
    for cell, packets, runs in plans:
        outcomes = [measured(cell, {"test": "hops", "packets": packets}) for _ in range(runs)]
        rows.append(row_of(cell, packets, outcomes))
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    mtus = [mtu_row(mtu_bytes) for mtu_bytes in MTUS]
    delays = ", ".join(map(str, DELAYS_MS))
    sentence = (
        f"Three links: ten times the middle link's rate, that, twice that; {delays} ms one way. Errors of each run, in "
        "percent of the truth; *: outside of the interval that the test gave; refused: the test gave no value. Cross "
        f"traffic: two sources each way that are on for {ON_MS} ms in the mean, at the link's rate. *Packets*: of each "
        "of ten sizes to each router. *Cost*: time, and share of the middle link. *Not honoured*: runs whose report "
        "says that the emulator did not honour the path."
    )
    texts = {"hops": f"{fill(sentence)}\n\n{table(HEADS, rows)}", "mtu": table(MTU_HEADS, mtus)}
    write_parts(PAGE, COMMAND, texts)


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.path_tests.hops", main))
