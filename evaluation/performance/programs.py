"""Goodput of real programs against RTT: `python -m evaluation.performance.programs`, as root, with the programs.

Each program sends from memory to memory over the backend kernel (evaluation/performance/programs.toml), so that its own
window is the limit where there is one. A run counts if the emulator honoured the path and nothing else ran before and
after it: a program that waits for a processor waits on every round trip. Writes the page programs.md of
docs/results, and its picture.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from elephan import api
from elephan.backends.kernel.backend import FAULT
from elephan.backends.programs.requirements import NEEDS
from elephan.errors import RunError
from elephan.papers.drawing import framed
from elephan.record import Record
from elephan.report.draw import Ink, rendered
from elephan.store.files import write_atomically
from evaluation.markdown import filled, spread, table
from evaluation.parts import RESULTS, circumstances
from evaluation.requirements import exit_code, require
from evaluation.runner import ROOT

PAGE = RESULTS / "programs.md"
COMMAND = "python -m evaluation.performance.programs"
SCENARIO = Path(__file__).with_name("programs.toml")
PICTURE = ROOT / "docs" / "img" / "programs.png"

RATE_MBPS = 500
RTTS_MS = (1, 10, 20, 40, 80, 160)
PAYLOAD_SHARE = 1448 / 1500
"""Share of a packet that is payload, with time stamps."""
RUNS = 3
MORE_RUNS = 3
"""Runs beside those, of a cell whose runs do not count."""

CHANNEL_BYTES = 2 << 20
"""Window of a channel of OpenSSH: CHAN_SES_WINDOW_DEFAULT of channels.h, 64 packets of 32 KiB."""

QUIET = 0.85
"""Share of the processors' time that is idle where nothing else runs."""
LOOK_S = 1.0
WAIT_S = 1800.0
"""Longest wait for a quiet machine, s."""

TEXT = """# What does a program's own window cost on a long path?

<!-- Written by `python -m evaluation.performance.programs`; do not edit. -->

At {longest_ms} ms programs over OpenSSH get {by_ssh} Mbit/s of {rate_mbps} Mbit/s, {share} % of 2 MiB per round trip:
a channel of OpenSSH has a window of 2 MiB (CHAN_SES_WINDOW_DEFAULT of channels.h), whatever TCP's window, the number
of SFTP requests or the program. Programs with TCP alone get {others} Mbit/s there. More connections at once, each with
a window of its own, or a program without SSH's window are the remedy ([real
programs](../howto/real-programs.md)).

![Goodput of programs against RTT, with the ceiling of 2 MiB per round trip](../img/programs.png)

{circumstances}

Each program sends from memory to memory over the [backend kernel](../howto/kernel-backend.md); {rate_mbps} Mbit/s, a
queue of one bandwidth-delay product, CUBIC without HyStart, TCP's window twice the bandwidth-delay product. The median
of {runs} runs, goodput from 4 s to 8 s after the start. {refused} of {total} runs did not count, because the emulator
did not honour the path or something else ran beside them; in brackets: fewer runs that count than that. *In italics*:
the window over the RTT, at most the line's rate. A goodput above what the line carries beside headers, {payload_mbps}
Mbit/s, has bytes that came before the fourth second, behind a gap that was filled after it. At 1 ms no program
fills the line, iperf3 neither, over a queue of 62 kB; that was not examined. {versions}.

{table}
"""


@dataclass(frozen=True)
class Case:
    """A program with its settings."""

    name: str
    program: str
    keys: str = ""
    """As a scenario has them."""
    window_bytes: int | None = None
    """The program's own window; None where it has none."""
    drawn: bool = True

    @property
    def workload(self) -> str:
        """Return the workload as a scenario has it: more bytes than the run can carry."""
        amount = "" if self.program == "iperf3" else ', bytes = "100GB"'
        return f'{{ kind = "program", program = "{self.program}"{amount}{self.keys} }}'


CASES = (
    Case("iperf3", "iperf3", drawn=False),
    Case("ftp (curl)", "ftp"),
    Case("pget, 1 stream", "pget", drawn=False),
    Case("pget, 8 streams", "pget", ", streams = 8"),
    Case("rsyncd", "rsyncd", drawn=False),
    Case("scp", "scp", window_bytes=CHANNEL_BYTES),
    Case("sftp", "sftp", window_bytes=CHANNEL_BYTES),
    Case("sftp, 256 requests", "sftp", ", requests = 256", CHANNEL_BYTES, drawn=False),
    Case("sftp, 16 requests of 32 KiB", "sftp", ', requests = 16, buffer = "32KiB"', 16 * (32 << 10)),
    Case("rsync over ssh", "rsync", window_bytes=CHANNEL_BYTES),
    Case("rclone over SFTP", "rclone", window_bytes=CHANNEL_BYTES),
)


@dataclass
class Cell:
    """Goodputs of a program at one RTT, bit/s."""

    honoured_bps: list[float] = field(default_factory=list)
    others_bps: list[float] = field(default_factory=list)
    """Of runs that do not count."""

    @property
    def mbps(self) -> float:
        """Return the median, of the runs that count if there are any, Mbit/s."""
        return median(self.honoured_bps or self.others_bps) / 1e6

    def text(self, runs: int) -> str:
        """Return the median as the table has it: in brackets with fewer runs that count than there were to be."""
        value = f"{self.mbps:.3g}"
        return value if len(self.honoured_bps) >= runs else f"({value})"


Cells = Mapping[tuple[str, int], Cell]
"""By name of the case, and RTT in ms."""


def processor_ticks() -> tuple[int, int]:
    """Return the processors' ticks since the machine's start, idle ones and all (proc_stat(5))."""
    fields = [int(field) for field in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    return fields[3] + fields[4], sum(fields)


def idle_share(interval_s: float = LOOK_S) -> float:
    """Return the share of the processors' time in which they did nothing, over an interval."""
    before = processor_ticks()
    time.sleep(interval_s)
    idle, whole = (end - begin for begin, end in zip(before, processor_ticks(), strict=True))
    return idle / max(whole, 1)


def wait_for_quiet() -> None:
    """Wait until nothing else runs. Raises `RunError` if that takes too long."""
    deadline_s = time.monotonic() + WAIT_S
    while (idle := idle_share()) < QUIET:
        if time.monotonic() > deadline_s:
            raise RunError(f"the processors are {100 * idle:.0f} % idle: measure where nothing else runs")


def run(case: Case, rtt_ms: int, rate_mbps: int, seed: int) -> Record:
    """Run a program once; return its record. Raises `RunError`."""
    settings = {"path.bandwidth": f"{rate_mbps}Mbit/s", "path.rtt": f"{rtt_ms}ms", "flow.workload": case.workload}
    (record,) = api.run(SCENARIO, settings, on="kernel", seed=seed, store="none").records
    return record


def measured(
    runs: int, rtts_ms: Sequence[int], measure: Callable[[Case, int, int], Record]
) -> dict[tuple[str, int], Cell]:
    """Return the cells of all programs; `measure` runs one with a seed. A run that does not count is repeated."""
    cells = {(case.name, rtt_ms): Cell() for case in CASES for rtt_ms in rtts_ms}
    # One round after the other, so that a busy hour of the machine is not one program's.
    for seed in range(1, runs + MORE_RUNS + 1):
        for case in CASES:
            for rtt_ms in rtts_ms:
                cell = cells[case.name, rtt_ms]
                if len(cell.honoured_bps) >= runs:
                    continue
                record = measure(case, rtt_ms, seed)
                faults = [note for note in record.notes if note.startswith(FAULT)]
                goodput_bps = float(record.metrics["goodput_bps"] or 0)
                (cell.others_bps if faults else cell.honoured_bps).append(goodput_bps)
                said = f"{case.name}, {rtt_ms} ms: {goodput_bps / 1e6:.4g} Mbit/s"
                print(" | ".join([said, *faults]), file=sys.stderr, flush=True)
    return cells


def ceiling_mbps(window_bytes: int, rtt_ms: int, rate_mbps: int) -> float:
    """Return a window per round trip, at most the line's rate, Mbit/s."""
    return min(window_bytes * 8 / (rtt_ms * 1e3), rate_mbps)


def text_of(cells: Cells, runs: int, rtts_ms: Sequence[int], rate_mbps: int, versions: Mapping[str, str]) -> str:
    """Return the page."""
    heads = ["Mbit/s at an RTT of", *(f"{rtt_ms} ms" for rtt_ms in rtts_ms)]
    rows = [[case.name, *(cells[case.name, rtt_ms].text(runs) for rtt_ms in rtts_ms)] for case in CASES]
    for window_bytes in sorted({case.window_bytes for case in CASES if case.window_bytes}, reverse=True):
        size = f"{window_bytes >> 20} MiB" if window_bytes >> 20 else f"{window_bytes >> 10} KiB"
        ceilings = (ceiling_mbps(window_bytes, rtt_ms, rate_mbps) for rtt_ms in rtts_ms)
        rows.append([f"*{size} per round trip*", *(f"*{value:.3g}*" for value in ceilings)])
    longest_ms = max(rtts_ms)
    ceiling = ceiling_mbps(CHANNEL_BYTES, longest_ms, rate_mbps)
    by_ssh = [cells[case.name, longest_ms].mbps for case in CASES if case.window_bytes == CHANNEL_BYTES]
    others = [cells[case.name, longest_ms].mbps for case in CASES if case.window_bytes is None]
    return filled(
        TEXT.format(
            longest_ms=longest_ms,
            by_ssh=spread(by_ssh, ".3g"),
            share=spread([100 * value / ceiling for value in by_ssh], ".0f"),
            others=spread(others, ".3g"),
            rate_mbps=rate_mbps,
            payload_mbps=f"{rate_mbps * PAYLOAD_SHARE:.0f}",
            runs=runs,
            refused=sum(len(cell.others_bps) for cell in cells.values()),
            total=sum(len(cell.honoured_bps) + len(cell.others_bps) for cell in cells.values()),
            versions=", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
            circumstances=circumstances(COMMAND),
            table=table(heads, rows),
        )
    )


def draw(drawing: Any, ink: Ink, cells: Cells, rtts_ms: Sequence[int], rate_mbps: int) -> None:
    """Draw goodput against RTT, and both windows over the RTT."""
    axes = drawing.subplots()
    framed(axes, ink, "RTT, ms", f"Mbit/s over a line of {rate_mbps} Mbit/s; dashed: 2 MiB per round trip")
    for number, case in enumerate(case for case in CASES if case.drawn):
        values = [cells[case.name, rtt_ms].mbps for rtt_ms in rtts_ms]
        axes.plot(rtts_ms, values, "o-", color=ink.curve(number), markersize=4, linewidth=1.4, label=case.name)
    ceilings = [ceiling_mbps(CHANNEL_BYTES, rtt_ms, rate_mbps) for rtt_ms in rtts_ms]
    axes.plot(rtts_ms, ceilings, "--", color=ink.text, linewidth=1)
    for scale, axis in ((axes.set_xscale, axes.xaxis), (axes.set_yscale, axes.yaxis)):
        scale("log")
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(lambda value, _: "")
    axes.set_xticks(rtts_ms)
    axes.set_yticks([25, 50, 100, 200, rate_mbps])
    axes.legend(frameon=False, fontsize=8, labelcolor=ink.text, loc="lower left")


def main() -> None:
    """Measure all, then write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--try",
        action="store_true",
        dest="tries",
        help="one run at 40 ms of each, on a busy machine too; writes nothing",
    )
    options = parser.parse_args()
    needs = {tool: package for case in CASES for tool, package in NEEDS[case.program].items()}
    require(needs, path=True)
    runs, rtts_ms = (1, (40,)) if options.tries else (RUNS, RTTS_MS)
    versions: dict[str, str] = {}

    def measure(case: Case, rtt_ms: int, seed: int) -> Record:
        if not options.tries:
            wait_for_quiet()
        record = run(case, rtt_ms, RATE_MBPS, seed)
        if idle_share() < QUIET:
            record.notes.append(f"{FAULT}something else ran after it")
        versions.update(record.host["programs"])
        return record

    cells = measured(runs, rtts_ms, measure)
    text = text_of(cells, runs, rtts_ms, RATE_MBPS, versions)
    ink = Ink(themed=False)
    picture = rendered(lambda all_: draw(all_, ink, cells, rtts_ms, RATE_MBPS), ink, "png", (7.4, 4.2))
    if options.tries:
        print(text)
        return
    PICTURE.write_bytes(picture)
    write_atomically(PAGE, text.encode())


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.programs", main))
