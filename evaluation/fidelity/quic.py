"""`python -m evaluation.fidelity.quic`, as root: one C file in the simulator, in the kernel and under QUIC.

Writes the table of docs/results/quic.md; some twenty minutes. Each run is a line of out/evaluation/quic.jsonl, so that
one which was interrupted goes on; `--again` measures all anew.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.api import jobs_of, load
from elephan.congestion_control import verify
from elephan.errors import InputError, RunError
from elephan.path import shell, testbed
from elephan.path.report import Report
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code
from evaluation.runner import OUT, ROOT, Runner, add_options

COMMAND = "python -m evaluation.fidelity.quic"
PAGE = "quic.md"
OWN = ROOT / "examples" / "congestion_controls" / "multcp.c"
CONTROLS = ("reno", "cubic", "storage_friendly", "bbr", str(OWN))
LOSSES = ("0", "1e-4")
SECONDS = 40
WARMUP_S = 10
SAMPLE_S = 0.02
PORT = 4433
HALVED = 0.9
"""A window that fell below this share of what it was a tenth of a second before was reduced."""

SCENARIO = """\
[run]
duration = "{seconds}s"
[path]
bandwidth = "100Mbit/s"
rtt = "40ms"
loss = {loss}
queue = "1bdp"
[[flow]]
name = "copy"
congestion_control = "{control}"
workload = "bulk"
[measure]
series = "20ms"
warmup = "{warmup}s"
"""

SCRIPT = """\
set -e
ip netns exec $ELEPHAN_PATH_FAR_NETNS "$0" receive $ELEPHAN_PATH_FAR:{port} "$1/certificate" >"$1/received" &
receiver=$!
until test -e "$1/certificate"; do kill -0 $receiver; sleep 0.05; done
"$0" send $ELEPHAN_PATH_FAR:{port} "$1/certificate" "$2" "$3" >"$1/sent"
wait
"""
"""$0 is the program, $1 the folder of its output, then seconds and control."""


@dataclass(frozen=True)
class Seen:
    """A transfer after its warm-up."""

    goodput_bps: float
    windows: tuple[float, float, float]
    """Tenth, median and ninetieth percentile, segments."""
    reductions: int
    lost: int
    """Packets sent again, the start's among them."""
    faults: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as a line of JSON has it."""
        return vars(self) | {"windows": list(self.windows), "faults": list(self.faults)}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Seen:
        """Return what `as_json` gave."""
        return cls(**{**found, "windows": tuple(found["windows"])})


def percentiles(windows: Sequence[float]) -> tuple[float, float, float]:
    """Return the tenth, the fiftieth and the ninetieth."""
    tenths = statistics.quantiles(windows, n=10)
    return tenths[0], tenths[4], tenths[8]


def reductions(windows: Sequence[float]) -> int:
    """Return how often the window fell, once per half a second."""
    lag, quiet = round(0.1 / SAMPLE_S), round(0.5 / SAMPLE_S)
    found, until = 0, 0
    for now in range(lag, len(windows)):
        if now >= until and windows[now] < HALVED * windows[now - lag]:
            found, until = found + 1, now + quiet
    return found


def scenario(control: str, loss: str) -> Path:
    """Write the scenario of a cell; return its file."""
    OUT.mkdir(parents=True, exist_ok=True)
    file = OUT / "quic.toml"
    file.write_text(
        SCENARIO.format(seconds=SECONDS, warmup=WARMUP_S, loss=loss, control=control), encoding="utf-8"
    )
    return file


def tcp(runner: Runner, control: str, loss: str, backend: str) -> Seen:
    """Run a cell under the simulator's TCP or the kernel's. Raises `RunError`."""
    results = runner.run(jobs_of(load(scenario(control, loss)), backend=backend))
    (record,) = results.records
    rows = results.series(0)
    times, windows = rows["time_s"].to_pylist(), rows["cwnd_packets"].to_pylist()
    late = [window for time_s, window in zip(times, windows, strict=True) if time_s >= WARMUP_S]
    goodput_bps, lost = record.metrics["goodput_bps"], record.metrics["retransmitted_segments"]
    assert goodput_bps is not None, "a flow has them"
    assert lost is not None, "a flow has them"
    return Seen(
        goodput_bps,
        percentiles(late),
        reductions(late),
        int(lost),
        [note for note in record.notes if note.startswith("EMULATOR:")],
    )


def build() -> str:
    """Build the program that sends and receives. Raises `RunError`."""
    words = ["cargo", "build", "--release", "--quiet", "-p", "quic", "--example", "quic_bulk"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"{' '.join(words)}: {done.stderr.strip().splitlines()[-1]}")
    return str(ROOT / "target" / "release" / "examples" / "quic_bulk")


def quic(program: str, control: str, loss: str) -> Seen:
    """Run a cell over QUIC on the emulated path. Raises `RunError`."""
    with tempfile.TemporaryDirectory(prefix="elephan-quic-") as folder:
        # The kernel's default control is not what is looked at.
        words = ["sh", "-c", SCRIPT.format(port=PORT), program, folder, str(SECONDS), control]
        code, report = shell.run(scenario("cubic", loss), words)
        if code != 0:
            raise RunError(f"QUIC's run ended with {code}")
        received, sent = (json.loads(Path(folder, name).read_text("ascii")) for name in ("received", "sent"))
    assert isinstance(report, Report), "elephan's own emulator carried it"
    within = [(time_s, count) for time_s, count in received["samples"] if WARMUP_S <= time_s <= SECONDS]
    (begin_s, before), (end_s, after) = within[0], within[-1]
    windows = [window for time_s, window, *_ in sent["samples"] if time_s >= WARMUP_S]
    return Seen(
        8 * (after - before) / (end_s - begin_s),
        percentiles(windows),
        reductions(windows),
        sent["lost_packets"],
        [str(fault) for fault in report.faults()],
    )


def measure(runner: Runner, *, again: bool) -> dict[tuple[str, str], dict[str, Seen]]:
    """Return each control's transfers by loss. Raises `InputError` where the machine lacks something."""
    if lacking := verify.lacks() or testbed.missing():
        raise InputError(lacking)
    OUT.mkdir(parents=True, exist_ok=True)
    kept = OUT / "quic.jsonl"
    if again:
        kept.unlink(missing_ok=True)
    lines = [json.loads(line) for line in kept.read_text("utf-8").splitlines()] if kept.exists() else []
    measured = {tuple(line["cell"]): Seen.of_json(line["seen"]) for line in lines}
    program = build()
    ways: dict[str, Callable[[str, str], Seen]] = {
        "simulator": lambda control, loss: tcp(runner, control, loss, "sim"),
        "kernel": lambda control, loss: tcp(runner, control, loss, "kernel"),
        "QUIC": lambda control, loss: quic(program, control, loss),
    }
    found: dict[tuple[str, str], dict[str, Seen]] = {}
    for control in CONTROLS:
        for loss in LOSSES:
            for under, run in ways.items():
                cell = (Path(control).name, loss, under)
                if cell not in measured:
                    measured[cell] = run(control, loss)
                    with kept.open("a", encoding="utf-8") as out:
                        out.write(json.dumps({"cell": cell, "seen": measured[cell].as_json()}) + "\n")
                found.setdefault((control, loss), {})[under] = measured[cell]
    return found


def text(found: Mapping[tuple[str, str], Mapping[str, Seen]]) -> str:
    """Return the part of the page."""
    heads = ["congestion control", "loss", "under", "goodput", "window: p10", "median", "p90", "reductions", "lost"]
    rows = []
    faults = []
    for (control, loss), transfers in found.items():
        name = Path(control).name
        for under, seen in transfers.items():
            cells = [f"{seen.goodput_bps / 1e6:.1f}", *(f"{window:.0f}" for window in seen.windows)]
            rows.append([name, loss, under, *cells, str(seen.reductions), f"{seen.lost:,}"])
            faults += [f"{name}, loss {loss}, {under}: {fault}" for fault in seen.faults]
    said = (
        f"One flow for {SECONDS} s over 100 Mbit/s, 40 ms, a queue of one bandwidth-delay product and independent "
        f"loss; goodput in Mbit/s, windows in segments and reductions are those after {WARMUP_S} s, lost packets "
        f"those of the whole run. Simulator and kernel lose the same packets; QUIC's are numbered otherwise."
    )
    parts = [fill(said), table(heads, rows)]
    if faults:
        parts.append("\n".join(fill(f"- {fault}", "  ") for fault in faults))
    return "\n\n".join(parts)


def main() -> int:
    """Measure and write; return the exit code."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    add_options(parser)
    options = parser.parse_args()

    def work() -> None:
        found = measure(Runner.of(options), again=options.again)
        write_parts(PAGE, COMMAND, {"controls": text(found)})

    return exit_code(COMMAND, work)


if __name__ == "__main__":
    sys.exit(main())
