"""Simulated UDT4 against libudt 4.11 over the emulated path: `python -m evaluation.fidelity.udt`.

With --measure it runs libudt, as root, and keeps the results in udt.jsonl beside this file; without, it simulates the
same points and writes a part of docs/results/udt.md, and docs/img/udt.png.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elephan.api import jobs_of, load
from elephan.backends.host import cpu_model
from elephan.record import Record
from elephan.store import Series
from evaluation.fidelity import udt_live
from evaluation.fidelity.udt_picture import draw
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code, require
from evaluation.runner import OUT, ROOT, Runner, add_options

PAGE = "udt.md"
COMMAND = "python -m evaluation.fidelity.udt"
MEASURED = Path(__file__).with_name("udt.jsonl")
PICTURE = ROOT / "docs" / "img" / "udt.png"
SECONDS = 30
MTU_BYTES = 1500
REPETITIONS = 3
"""Of a simulated point with losses at random."""
TOLERANCE = 0.10
"""Difference of goodput that is wanted."""

SCENARIO = """\
[run]
duration = "{seconds}s"
repetitions = {repetitions}
[path]
bandwidth = "{rate_mbps}Mbit/s"
rtt = "{rtt_ms}ms"
loss = {loss}
queue = "1bdp"
[[flow]]
transport = "{transport}"
workload = "bulk"
[measure]
series = "500ms"
"""


@dataclass(frozen=True)
class Point:
    """A path."""

    rate_mbps: int
    rtt_ms: int
    loss: float

    def scenario(self, transport: str = "udt4") -> str:
        """Return its scenario; the path of another transport is the same."""
        repetitions = REPETITIONS if self.loss and transport != "tcp" else 1
        return SCENARIO.format(**vars(self), seconds=SECONDS, repetitions=repetitions, transport=transport)


GRID = [
    *(Point(rate, rtt, loss) for rate in (10, 100) for rtt in (10, 40, 100) for loss in (0, 1e-3, 1e-2)),
    # Away from a power of ten over nine: an estimate of the capacity that is off by a third changes no step there.
    *(Point(rate, 40, loss) for rate in (50, 200) for loss in (1e-3, 1e-2)),
    *(Point(1000, rtt, loss) for rtt in (10, 100) for loss in (0, 1e-3)),
]
DRAWN = Point(10, 40, 0)
"""The point whose rate and window are drawn over time."""


@dataclass(frozen=True)
class Simulated:
    """The runs of a point, and the series of the first."""

    records: list[Record]
    series: Series
    window_bytes: int

    @property
    def goodput_bps(self) -> float:
        """Mean over the repetitions."""
        return sum(float(record.metrics["goodput_bps"] or 0) for record in self.records) / len(self.records)


def simulated(point: Point, runner: Runner) -> Simulated:
    """Simulate a point."""
    OUT.mkdir(parents=True, exist_ok=True)
    file = OUT / f"udt-{point.rate_mbps}-{point.rtt_ms}-{point.loss:g}.toml"
    file.write_text(point.scenario(), encoding="utf-8")
    jobs = jobs_of(load(file))
    results = runner.run(jobs)
    series = results.series_of(results.records[0])
    assert series is not None, "the scenario asks for a series"
    return Simulated(list(results.records), series, jobs[0].spec["flows"][0]["transport"]["window_bytes"])


def measure(runner: Runner) -> None:
    """Run libudt at every point that is not measured yet. Raises `RunError`."""
    require(udt_live.TOOLS, root=True, path=True)
    known = {Point(**row["point"]) for row in rows()}
    for point in GRID:
        if point in known:
            continue
        window = simulated(point, runner).window_bytes
        live = udt_live.run(point.scenario("tcp"), SECONDS, window, MTU_BYTES)
        row: dict[str, Any] = {
            "point": vars(point),
            "goodput_bps": live.goodput_bps,
            "faults": live.faults,
            "retransmitted": live.sent[-1].retransmitted if live.sent else None,
            "day": datetime.now(UTC).strftime("%Y-%m-%d"),
            "machine": cpu_model(),
        }
        if point == DRAWN:
            row["received"] = live.received
            row["sent"] = [vars(sent) for sent in live.sent]
        with MEASURED.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{vars(point)}: {live.goodput_bps / 1e6:.1f} Mbit/s; {'; '.join(live.faults) or 'honoured'}", flush=True)


def rows() -> list[dict[str, Any]]:
    """Return what was measured."""
    if not MEASURED.is_file():
        return []
    return [json.loads(line) for line in MEASURED.read_text(encoding="utf-8").splitlines()]


def _row(point: Point, row: dict[str, Any], sim: Simulated) -> tuple[list[str], float]:
    live = float(row["goodput_bps"])
    difference = sim.goodput_bps / live - 1
    cells = [
        f"{point.rate_mbps} Mbit/s",
        f"{point.rtt_ms} ms",
        f"{point.loss:g}",
        f"{live / 1e6:.2f}",
        f"{sim.goodput_bps / 1e6:.2f}",
        f"{100 * difference:+.0f} %",
        "no" if row["faults"] else "yes",
    ]
    return cells, difference


def _capacity(row: dict[str, Any] | None) -> str:
    """Return a sentence on libudt's own estimate of the capacity at the point that is drawn."""
    if row is None:
        return ""
    seen = sorted(sent["capacity_bps"] / 1e6 for sent in row["sent"])
    low, high = seen[len(seen) // 4], seen[3 * len(seen) // 4]
    return (
        f" At {DRAWN.rate_mbps} Mbit/s, {DRAWN.rtt_ms} ms and no loss libudt took the line's capacity for {low:.0f} to "
        f"{high:.0f} Mbit/s (quartiles of its estimate over time)."
    )


def page(runner: Runner) -> None:
    """Simulate what was measured, and write the page and the picture."""
    measured = {Point(**row["point"]): row for row in rows()}
    cells, differences = [], []
    for point in (one for one in GRID if one in measured):
        sim = simulated(point, runner)
        line, difference = _row(point, measured[point], sim)
        cells.append(line)
        differences.append((difference, not measured[point]["faults"]))
        if point == DRAWN:
            draw(PICTURE, measured[point], sim.series)
    honoured = [difference for difference, well in differences if well]
    within = sum(abs(difference) <= TOLERANCE for difference in honoured)
    days = sorted({row["day"] for row in measured.values()})
    said = (
        f"Of {len(honoured)} points on which the emulator honoured the path, {within} agree within "
        f"{100 * TOLERANCE:.0f} %. libudt was measured on {' and '.join(days)}, {SECONDS} s and one run a point; "
        f"simulated points with loss are means of {REPETITIONS} seeds."
    )
    said += _capacity(measured.get(DRAWN))
    head = ["line", "RTT", "loss", "libudt, Mbit/s", "simulated, Mbit/s", "difference", "path honoured"]
    write_parts(PAGE, COMMAND, {"grid": f"{table(head, cells)}\n\n{fill(said)}"})


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="run libudt at the points that lack")
    add_options(parser)
    options = parser.parse_args()
    runner = Runner.of(options)
    if options.measure:
        measure(runner)
    page(runner)


if __name__ == "__main__":
    sys.exit(exit_code("udt", main))
