"""A run between real hosts beside the backend kernel: `python -m evaluation.performance.hosts`, as root.

The hosts are two network namespaces with an sshd each, on an emulated path (tests/hosts/testbed.py): real ssh, real
agents. Both backends carry the same scenario in turn. Writes the table of docs/results/hosts.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from elephan import api
from elephan.backends.hosts import HostOptions
from elephan.backends.kernel.backend import FAULT
from elephan.record import Record
from evaluation.markdown import fill, spread, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code, require
from tests.hosts import testbed

PAGE = "hosts.md"
COMMAND = "python -m evaluation.performance.hosts"
RUNS = 5
"""Of each backend, in turn."""
DURATION_S, WARMUP_S = 8, 3
STARTS = 5
"""Commands of which the time beside the run is taken."""
SAMPLE_S = 0.05
"""Time between two looks at a process, s."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Line:
    """A path and its flow."""

    name: str
    path: str
    """Lines of `[path]`."""


LINES = (
    Line("45 Mbit/s, 32 ms, policer", 'bandwidth = "155Mbit/s"\nrtt = "32ms"\nqueue = "1bdp"\npolicer = '
         '{ rate = "45Mbit/s", burst = "64KiB" }'),
    Line("100 Mbit/s, 32 ms", 'bandwidth = "100Mbit/s"\nrtt = "32ms"\nqueue = "1bdp"'),
    Line("1 Gbit/s, 10 ms, 1500 B", 'bandwidth = "1Gbit/s"\nrtt = "10ms"\nqueue = "2bdp"'),
    Line("5 Gbit/s, 10 ms, 9000 B", 'bandwidth = "5Gbit/s"\nrtt = "10ms"\nqueue = "2bdp"\nmtu = "9000B"'),
)  # fmt: skip

SCENARIO = """\
[run]
duration = "{duration}s"
[path]
{path}
[measure]
warmup = "{warmup}s"
series = false
[[flow]]
name = "copy"
congestion_control = "cubic"
workload = {{ kind = "bulk" }}
"""


@dataclass
class Taken:
    """Measurements on one path, a value per run."""

    goodput_bps: dict[str, list[float]] = field(default_factory=lambda: {"kernel": [], "hosts": []})
    agent_user: dict[str, list[float]] = field(default_factory=lambda: {"left": [], "right": []})
    """Share of a core that an agent had in user space, of a run's length."""
    agent_system: dict[str, list[float]] = field(default_factory=lambda: {"left": [], "right": []})
    """The same in the kernel, which has the sending and receiving itself."""
    faults: int = 0
    """Runs of the backend kernel on a path that the emulator did not honour."""


@contextlib.contextmanager
def watched(ends: Sequence[testbed.End]) -> Iterator[dict[str, tuple[float, float]]]:
    """Give the CPU time of the agents that run within the context, at its end: user and system, s, by host."""
    seen: dict[str, tuple[float, float]] = {}
    done = threading.Event()

    def look() -> None:
        while not done.wait(SAMPLE_S):
            for end in ends:
                for pid, words in end.processes().items():
                    # The shell before it and the guard beside it have other command lines.
                    if "/.cache/elephan/agent-" not in words or " " in words:
                        continue
                    with contextlib.suppress(OSError):
                        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
                        user, system = (int(ticks) / TICKS for ticks in fields[11:13])
                        seen[end.name] = max(seen.get(end.name, (0.0, 0.0)), (user, system))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def taken(line: Line, runs: int) -> tuple[Taken, list[float]]:
    """Measure on one path; return the times of whole commands beside their run, too."""
    found, starts = Taken(), []
    with tempfile.TemporaryDirectory(prefix="elephan-hosts-") as name:
        folder = Path(name)
        file = folder / "run.toml"
        file.write_text(SCENARIO.format(duration=DURATION_S, warmup=WARMUP_S, path=line.path), encoding="utf-8")
        with testbed.hosts(folder, line.path) as hosts:
            os.environ.update(hosts.environment)
            for seed in range(1, runs + 1):
                record = one(file, "kernel", seed)
                found.goodput_bps["kernel"].append(goodput(record))
                found.faults += any(note.startswith(FAULT) for note in record.notes)
                with watched(hosts.ends) as cpu:
                    found.goodput_bps["hosts"].append(goodput(one(file, "hosts", seed)))
                for host, (user, system) in cpu.items():
                    found.agent_user[host].append(user / DURATION_S)
                    found.agent_system[host].append(system / DURATION_S)
                print(f"{line.name}: {found}", file=sys.stderr, flush=True)
            if line is LINES[1]:
                starts = [beside(file) for _ in range(STARTS)]
    return found, starts


def one(file: Path, backend: str, seed: int) -> Record:
    """Run a scenario once."""
    hosts = HostOptions.parsed("left,right", agreed=True) if backend == "hosts" else None
    (record,) = api.run(file, on=backend, seed=seed, store="none", hosts=hosts).records
    return record


def goodput(record: Record) -> float:
    """Return a record's goodput, bit/s."""
    return float(record.metrics["goodput_bps"] or 0)


def beside(file: Path) -> float:
    """Return the time that a command takes beside its run of 1 s: interpreter, ssh, agents, probes, store; s."""
    words = ["run", str(file), "--on", "hosts", "--hosts", "left,right", "--yes", "--max-time", "1s", "--again"]
    words += ["--set", "measure.warmup=0s", "--no-report"]
    began_s = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", "from elephan.cli import main; main()", *words], check=True, capture_output=True
    )
    return time.monotonic() - began_s - 1


def percent(values: Sequence[float]) -> str:
    """Return the median of some shares, in percent."""
    return f"{100 * median(values):.1f}"


def text_of(all_: dict[str, Taken], starts: Sequence[float], runs: int) -> str:
    """Return what the page has between its comments."""
    head = [
        "path",
        "kernel, Mbit/s",
        "hosts, Mbit/s",
        "hosts / kernel",
        "agents in user space, % of a core",
        "in the kernel",
        "not honoured",
    ]
    rows = []
    for name, one_ in all_.items():
        kernel, hosts = (one_.goodput_bps[backend] for backend in ("kernel", "hosts"))
        ratios = [b / a for a, b in zip(kernel, hosts, strict=True)]
        rows.append(
            [
                name,
                f"{median(kernel) / 1e6:.1f}",
                f"{median(hosts) / 1e6:.1f}",
                f"{median(ratios):.3f} ({spread(ratios, '.3f')})",
                " and ".join(percent(values) for values in one_.agent_user.values()),
                " and ".join(percent(values) for values in one_.agent_system.values()),
                f"{one_.faults} of {runs}",
            ]
        )
    lead = fill(
        f"CUBIC, {DURATION_S} s, goodput after {WARMUP_S} s; medians of {runs} runs of each backend in turn, the ratio "
        "of each pair, in brackets its range. Both agents, their hosts and the emulator share the processors. The "
        "agents' time in the kernel is the flow itself: TCP's sending and receiving. *Not honoured*: runs of the "
        "backend kernel whose emulator was late. A command takes "
        f"{median(starts):.2f} s ({spread(starts, '.2f')}, {len(starts)} commands) beside its run of 1 s: interpreter, "
        "two ssh sessions, agents, clocks, store, and the end of all."
    )
    return f"{lead}\n\n{table(head, rows)}"


def main() -> None:
    """Measure all, then write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N")
    parser.add_argument("--try", action="store_true", dest="tries", help="one run of each; writes nothing")
    options = parser.parse_args()
    require({"sshd": "openssh-server", "ssh": "openssh-client", "sudo": "sudo"}, path=True)
    runs = 1 if options.tries else options.runs
    found, starts = {}, []
    for line in LINES:
        found[line.name], times = taken(line, runs)
        starts += times
    text = text_of(found, starts, runs)
    if options.tries:
        print(text)
        return
    write_parts(PAGE, COMMAND, {"hosts": text})


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.hosts", main))
