"""Load of the emulator on this machine: `python -m evaluation.performance.emulator`, as root, with iperf3.

One TCP connection of iperf3 within `elephan path shell` on three lines, with nothing beside it and with processes that
compute. Writes a part of docs/results/emulator.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from elephan.errors import RunError
from elephan.path import shell
from elephan.path.report import Report
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code, require

PAGE = "emulator.md"
COMMAND = "python -m evaluation.performance.emulator"
RUNS = 3
SECONDS = 4
"""Of a run, after one second that is left out."""
BUSY_PER_CORE = 2
"""Processes that compute, where the machine is to be busy."""

SCENARIO = """\
[run]
duration = "1h"
[path]
bandwidth = "{bandwidth}"
rtt = "25ms"
queue = "2bdp"
mtu = "{mtu_bytes}B"
[[flow]]
congestion_control = "reno"
"""
SCRIPT = f"""\
for n in $ELEPHAN_PATH_NEAR_NETNS $ELEPHAN_PATH_FAR_NETNS; do
  ip netns exec $n sysctl -qw net.ipv4.tcp_wmem="4096 65536 268435456" net.ipv4.tcp_rmem="4096 131072 268435456"; done
ip netns exec $ELEPHAN_PATH_FAR_NETNS iperf3 -s -D -1
until ip netns exec $ELEPHAN_PATH_FAR_NETNS ss -Hltn | grep -q :5201; do sleep 0.1; done
iperf3 -c $ELEPHAN_PATH_FAR -t {SECONDS} -O 1 -Z -C reno -J >$0
"""


@dataclass(frozen=True)
class Line:
    """A line to be emulated."""

    bandwidth: str
    mtu_bytes: int

    @property
    def title(self) -> str:
        """Return its name in the table."""
        return f"{self.bandwidth}, {self.mtu_bytes} B"


LINES = (Line("100 Mbit/s", 1500), Line("1 Gbit/s", 1500), Line("5 Gbit/s", 9000))


@dataclass(frozen=True)
class Run:
    """Result of a run: iperf3's rate at the receiver, bit/s, and the emulator's report."""

    received_bps: float
    report: Report

    @property
    def late_p99_ms(self) -> float:
        """Lateness of a packet at its delivery, ms."""
        return float(self.report.core["late_p99_ns"]) / 1e6

    @property
    def stood_still_ms(self) -> float:
        """Time for which the machine kept the emulator's thread from its work, ms, in pauses of 5 ms or more."""
        return float(self.report.core["stalled_ns"]) / 1e6


def measured(line: Line) -> Run:
    """Run iperf3 over a line. Raises `RunError`."""
    with tempfile.TemporaryDirectory(prefix="elephan-bench-") as folder:
        file, out = Path(folder, "line.toml"), Path(folder, "iperf3.json")
        file.write_text(SCENARIO.format(bandwidth=line.bandwidth, mtu_bytes=line.mtu_bytes), encoding="utf-8")
        code, report = shell.run(file, ["sh", "-c", SCRIPT, str(out)])
        said = json.loads(out.read_text(encoding="utf-8") or "{}") if out.exists() else {}
    if code != 0:
        raise RunError(f"{line.title}: iperf3 ended with {code}: {said.get('error', 'no reason given')}")
    assert isinstance(report, Report), "elephan's own emulator carried it"
    return Run(float(said["end"]["sum_received"]["bits_per_second"]), report)


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Have so many processes of normal priority that compute while the block runs."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def processor_ticks() -> tuple[int, int]:
    """Return the time that a host took from this virtual machine (steal), and all processors' time; proc_stat(5)."""
    first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    ticks = [int(field) for field in first.split()[1:9]]
    return ticks[7], sum(ticks)


def between(runs: Sequence[Run], value: Callable[[Run], float], form: str) -> str:
    """Return the least and the greatest value of some runs, once where they are written alike."""
    values = [value(run) for run in runs]
    return " to ".join(dict.fromkeys(format(one, form) for one in (min(values), max(values))))


def row(line: Line, processes: int, runs: Sequence[Run]) -> list[str]:
    """Return the row of a line: values of all runs, and how many the emulator itself declares not honoured."""
    return [
        line.title,
        f"{processes} processes" if processes else "nothing",
        between(runs, lambda run: run.received_bps / 1e6, ".1f"),
        between(runs, lambda run: run.late_p99_ms, ".2f"),
        between(runs, lambda run: run.stood_still_ms, ".0f"),
        between(runs, lambda run: 100 * run.report.cpu_share, ".0f"),
        f"{sum(bool(run.report.faults()) for run in runs)} of {len(runs)}",
    ]


HEADS = ["line", "beside it", "received, Mbit/s", "late, p99, ms", "stood still, ms", "CPU of the thread, %"]
HEADS += ["not honoured"]


def main() -> None:
    """Measure all, then write."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    require({"iperf3": "iperf3", "ss": "iproute2"}, path=True)
    rows, (stolen, whole) = [], processor_ticks()
    for processes in (0, BUSY_PER_CORE * (os.cpu_count() or 1)):
        for line in LINES:
            with busy(processes):
                runs = [measured(line) for _ in range(RUNS)]
            rows.append(row(line, processes, runs))
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    stolen, whole = (end - begin for begin, end in zip((stolen, whole), processor_ticks(), strict=True))
    sentence = (
        f"{RUNS} runs of {SECONDS} s each. *Beside it*: processes of normal priority that compute. *Stood still*: "
        "pauses of 5 ms or more of the emulator's thread, in one run. *Not honoured*: runs whose report says that the "
        f"emulator did not honour the path. A host took {100 * stolen / whole:.1f} % of the processors' time meanwhile."
    )
    write_parts(PAGE, COMMAND, {"load": f"{fill(sentence)}\n\n{table(HEADS, rows)}"})


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.emulator", main))
