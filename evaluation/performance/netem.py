"""netem beside the simulator: `python -m evaluation.performance.netem`, as root. Writes a part of
docs/results/emulator.md.

One Reno flow over a line by the kernel's own netem and by the simulator. Where this kernel has no netem,
scripts/netem.sh runs this program with `--here` in a virtual machine whose kernel does; there it prints what it
measured.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import elephan
from elephan.errors import RunError
from elephan.path import netem
from elephan.record import Record
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.performance.emulator import PAGE
from evaluation.requirements import exit_code, require
from evaluation.runner import ROOT

COMMAND = "python -m evaluation.performance.netem"
SCRIPT = ROOT / "scripts" / "netem.sh"
MARK = "measured: "
"""Begins the line on a virtual machine's console that has the result."""
RUNS = 3
VIRTUAL_MACHINE = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio"}
SCENARIO = """\
[run]
duration = "8s"
[path]
bandwidth = "5Mbit/s"
rtt = "40ms"
jitter = "1ms"
queue = "30 packets"
emulator = "netem"
[[flow]]
congestion_control = "reno"
"""


@dataclass(frozen=True)
class Flow:
    """Result of a run."""

    goodput_bps: float
    drops: int
    """Packets that the queue dropped, from sender to receiver."""
    retransmissions: int
    """Segments sent again."""
    faults: tuple[str, ...]
    """Notes on a path that was not honoured."""

    @classmethod
    def of(cls, record: Record) -> Flow:
        """Read it off a record."""
        metrics = record.metrics
        faults = tuple(note for note in record.notes if note.startswith("EMULATOR:"))
        drops = int(record.links[0]["dropped_by_queue"])
        return cls(float(metrics["goodput_bps"] or 0), drops, int(metrics["retransmitted_segments"] or 0), faults)


def measure() -> dict[str, Any]:
    """Run the flow in the simulator and over this kernel's netem; return both and the kernel's release."""
    with tempfile.TemporaryDirectory(prefix="elephan-bench-") as folder:
        file = Path(folder, "netem.toml")
        file.write_text(SCENARIO, encoding="utf-8")
        found = {
            backend: [
                asdict(Flow.of(elephan.run(file, on=backend, store="none", seed=seed).records[0]))
                for seed in range(1, RUNS + 1)
            ]
            for backend in ("kernel", "sim")
        }
    return {"kernel_release": platform.release(), **found}


def from_virtual_machine() -> dict[str, Any]:
    """Return what `measure` gives in a virtual machine. Raises `RunError`."""
    command = [str(SCRIPT), sys.executable, "-m", "evaluation.performance.netem", "--here"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as machine:
        assert machine.stdout is not None
        result = None
        for line in machine.stdout:
            print(line, end="", file=sys.stderr)
            if MARK in line:
                result = json.loads(line.partition(MARK)[2])
    if machine.returncode != 0 or result is None:
        lacking = ", and its console has no result" if result is None else ""
        raise RunError(f"{SCRIPT.name} ended with {machine.returncode}{lacking}")
    return {"virtual": True, **result}


def text_of(found: Mapping[str, Any]) -> str:
    """Return the part of the page."""
    flows = {name: [Flow(**flow) for flow in found[backend]] for name, backend in TITLES.items()}
    rows = [[name, *cells(runs)] for name, runs in flows.items()]
    kernel = found["kernel_release"].partition("-")[0]
    where = f"Linux {kernel} in a virtual machine without KVM" if found.get("virtual") else f"Linux {kernel}"
    sentence = f"netem of {where}; {RUNS} runs each, with other random numbers."
    faults = sorted({fault for flow in flows["netem"] for fault in flow.faults})
    return f"{fill(' '.join([sentence, *faults]))}\n\n{table(HEADS, rows)}"


TITLES = {"netem": "kernel", "simulator": "sim"}
"""Backend of each row."""
HEADS = ["", "goodput, Mbit/s", "drops", "segments sent again"]


def cells(runs: Sequence[Flow]) -> list[str]:
    """Return the values of all runs."""
    return [
        ", ".join(f"{run.goodput_bps / 1e6:.2f}" for run in runs),
        ", ".join(str(run.drops) for run in runs),
        ", ".join(str(run.retransmissions) for run in runs),
    ]


def main() -> None:
    """Measure here or in a virtual machine, then write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--here", action="store_true", help="on this kernel, and print it in place of writing it")
    arguments = parser.parse_args()
    require({}, path=True)
    if arguments.here:
        print(f"{MARK}{json.dumps(measure())}", flush=True)
        return
    if netem.missing() is None:
        found = measure()
    else:
        require(VIRTUAL_MACHINE)
        found = from_virtual_machine()
    write_parts(PAGE, COMMAND, {"netem": text_of(found)})


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.netem", main))
