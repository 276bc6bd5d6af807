"""`python -m evaluation.fidelity.disk`: drives beside measurements of them, a week's trace, and speed; half a minute.

Writes the parts of docs/results/disk.md. DiskSim's drives, their measured traces and the HP trace are not of this
repository: --data names their folder.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan import blocktrace
from elephan.disks import describe, replay, validate
from elephan.errors import InputError
from elephan.units import count
from evaluation.markdown import fill, spread, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code
from evaluation.runner import ROOT

COMMAND = "python -m evaluation.fidelity.disk"
PAGE = "disk.md"
DATA = ROOT.parent / "shared" / "data"

CHEETAH = "cheetah-9lp"
WEEK = "traces/hp-ajw-1week.srt"
ORDERS = ("fcfs", "sstf", "look", "c-look", "sptf")
REQUESTS = 1_000_000
INTERVAL_NS = 20_000_000
"""Between two random requests: twice what the slowest take, so that none waits for another."""
SEED = 1
TURNS = 5


@dataclass(frozen=True)
class Validation:
    """A drive, its measurements, and DiskSim's own figure of them."""

    name: str
    disk: str
    """Built in, or a file below the data's folder."""
    trace: str
    disksim_ms: float
    """Figure that DiskSim 4's own validation prints (its program `rms`)."""


VALIDATIONS = (
    Validation("Cheetah 9LP", CHEETAH, "disk/cheetah9LP.trace", 0.107),
    Validation("HP C2247A", "disk/hp_c2247a.parv", "disk/hp_c2247a.trace", 0.090),
    Validation("HP C2490A", "disk/hp_c2490a.parv", "disk/hp_c2490a.trace", 0.254),
)
WEEK_DRIVES = VALIDATIONS[:2]


def disk_of(data: Path, validation: Validation) -> str:
    """Return the drive's name or the path of its file."""
    return validation.disk if validation.disk == CHEETAH else str(data / validation.disk)


def require(data: Path) -> None:
    """Check that the data are there. Raises `InputError`."""
    needed = [validation.trace for validation in VALIDATIONS]
    needed += [validation.disk for validation in VALIDATIONS if validation.disk != CHEETAH]
    for file in (*needed, WEEK):
        if not (data / file).is_file():
            raise InputError(f"{data / file}: is not there; --data names a folder with DiskSim's drives and HP's trace")


def validated(data: Path) -> str:
    """Return the table of the drives whose requests were measured, one a row."""
    rows = []
    for one in VALIDATIONS:
        found = validate(data / one.trace, disk_of(data, one))
        figures = [_ms(found[key], 4) for key in ("demerit_ns", "disksim_rms_ns")]
        off = found["disksim_rms_ns"] / 1e6 / one.disksim_ms - 1
        means = [_ms(found[key], 3) for key in ("simulated_ns", "measured_ns")]
        rows.append([one.name, count(found["requests"]), *means, *figures, f"{one.disksim_ms:.3f}", f"{off:+.1%}"])
    return table(HEADS, rows)


HEADS = [
    "drive",
    "requests",
    "mean, simulated, ms",
    "mean, measured, ms",
    "demerit, all requests, ms",
    "in classes of 1 %, ms",
    "DiskSim's own, ms",
    "difference",
]


def week(data: Path) -> str:
    """Return the table of the week on both drives, and what decides."""
    rows, found = [], {}
    for drive in WEEK_DRIVES:
        for order in ORDERS:
            one = found[drive.name, order] = replay(data / WEEK, disk_of(data, drive), scheduler=order)
            times = [one[kind][f"{time}_mean_ns"] for kind, time in COLUMNS]
            rows.append([drive.name, order, *(_ms(value, 1) for value in times)])
    first = found[WEEK_DRIVES[0].name, ORDERS[0]]
    about = [describe(disk_of(data, drive)) for drive in WEEK_DRIVES]
    turns = " and ".join(f"{one['rpm']:,}" for one in about)
    ends = " and ".join("in the buffer" if one["write_back"] else "on the medium" for one in about)
    said = (
        f"{count(first['all']['requests'])} requests to {first['disks']} disks. The drives turn {turns} times a "
        f"minute, and a write ends {ends}. At most {spread([one['most_outstanding'] for one in found.values()], 'd')} "
        "requests are under way on a disk."
    )
    heads = ["drives", "order", "response, ms", "of reads", "of writes", "service, ms"]
    return f"{fill(said)}\n\n{table(heads, rows)}"


COLUMNS = (("all", "response"), ("reads", "response"), ("writes", "response"), ("all", "service"))


def random_trace(path: Path, requests: int) -> None:
    """Write random requests of 4 KiB over the whole Cheetah, two of three reads, in MQSim's format."""
    draw = random.Random(SEED)
    blocks = describe(CHEETAH)["blocks"] - 8
    with path.open("w", encoding="utf-8") as file:
        for number in range(requests):
            file.write(f"{number * INTERVAL_NS} 0 {draw.randrange(blocks)} 8 {1 if number % 3 else 0}\n")


def speed(requests: int = REQUESTS, turns: int = TURNS) -> str:
    """Return the table of CPU times, which are of the whole process."""
    reading, replaying = [], []
    with tempfile.TemporaryDirectory(prefix="elephan-disk-") as folder:
        trace = Path(folder) / "random.trace"
        random_trace(trace, requests)
        for _ in range(turns):
            reading.append(_cpu_s(lambda: blocktrace.read(trace)))
            replaying.append(_cpu_s(lambda: replay(trace, CHEETAH)))
    rest_s = statistics.median(replaying) - statistics.median(reading)
    rows = [
        [name, f"{statistics.median(times):.2f}", spread(times, ".2f")]
        for name, times in (("reading the trace alone", reading), ("reading and replaying it", replaying))
    ]
    said = fill(
        f"{count(requests)} random requests of 4 KiB to a Cheetah. Drive, queue and sums are the difference: "
        f"{requests / rest_s / 1e6:.1f} million requests per CPU second."
    )
    return f"{said}\n\n{table(['', f'CPU s, median of {turns}', 'least to most'], rows)}"


def _cpu_s(work: Callable[[], Any]) -> float:
    began_s = time.process_time()
    work()
    return time.process_time() - began_s


def _ms(value_ns: float, digits: int) -> str:
    return f"{value_ns / 1e6:.{digits}f}"


def measure(data: Path) -> Mapping[str, str]:
    """Return the parts. Raises `InputError`."""
    require(data)
    return {"validation": validated(data), "week": week(data), "speed": speed()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write; return the exit code."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--data", type=Path, metavar="FOLDER", default=DATA, help=f"folder of the data ({DATA})")
    options = parser.parse_args(arguments)
    return exit_code(COMMAND, lambda: write_parts(PAGE, COMMAND, measure(options.data)))


if __name__ == "__main__":
    sys.exit(main())
