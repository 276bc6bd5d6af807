"""`python -m evaluation.performance.sweep`: cost of a point of a sweep beside its simulation. Writes the table of
docs/results/sweeps.md.

Points are trivially small, so that nearly all is overhead: making the job, looking it up, recording, storing. Each
sweep runs once, whole, in a process that has loaded its modules and made its store. A cluster's scheduler and its two
workers run on this machine, and their CPU time counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from elephan import api
from elephan.core import native
from elephan.record import canonical_json
from elephan.store import Store
from elephan.store.files import Syncs, replace_together, replacing
from elephan.sweep.cluster import Cluster
from elephan.sweep.executor import default_workers
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code

PAGE = "sweeps.md"
COMMAND = "python -m evaluation.performance.sweep"
POINTS = 10_000
SIMULATED = 2_000
"""Points that are simulated alone, for the share of the simulation."""
FILES, FILE_BYTES = 64, 3000
"""Files that are synced, about those of a batch of runs."""
OVERHEAD_MAX_MS = 3.0
"""Bound on the overhead of a point, ms."""

TEXT = """
name = "tiny"
[run]
duration = "100ms"
repetitions = {repetitions}
[path]
bandwidth = "20Mbit/s"
rtt = "20ms"
[[flow]]
name = "copy"
workload = {{ kind = "bulk", bytes = "10kB" }}
[measure]
series = {series}
[sweep]
"path.rtt" = {{ from = "10ms", to = "109ms", step = "1ms" }}
"path.bandwidth" = ["10Mbit/s", "20Mbit/s", "30Mbit/s", "40Mbit/s", "50Mbit/s"]
"""

SCHEDULER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
    cluster.close()
"""


@dataclass(frozen=True)
class Cost:
    """Time of a sweep, s, all points together."""

    title: str
    points: int
    wall_s: float
    here_s: float
    """CPU time of the process that asks and stores; without a cluster it simulates too."""
    scheduler_s: float = 0.0
    workers_s: float = 0.0

    def ms(self, seconds: float) -> float:
        """Return a time of the whole as that of a point, ms."""
        return 1e3 * seconds / self.points

    @property
    def cpu_ms(self) -> float:
        """CPU time of a point, ms, of all processes."""
        return self.ms(self.here_s + self.scheduler_s + self.workers_s)

    def row(self, simulation: Cost | None) -> list[str]:
        """Return the cells: CPU time of a point by process, ms, wall time, and CPU time beside the simulation."""
        parts = (self.here_s, self.scheduler_s, self.workers_s)
        cells = [f"{self.ms(value):.2f}" if value else "" for value in parts]
        overhead = "" if simulation is None else f"{self.overhead_ms(simulation):.2f}"
        return [self.title, *cells, f"{self.ms(self.wall_s):.2f}", overhead]

    def overhead_ms(self, simulation: Cost) -> float:
        """Return the CPU time of a point beside its simulation, ms, of all processes."""
        return self.cpu_ms - simulation.cpu_ms


def simulated(file: Path) -> Cost:
    """Return the cost of the simulation alone: the core's, with the specification ready as text."""
    jobs = api.jobs_of(api.load(file))
    step = max(1, len(jobs) // SIMULATED)
    texts = [canonical_json(jobs[number].spec) for number in range(0, len(jobs), step)]
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    for text in texts:
        native.simulate(text, None, 1.0)
    return Cost("simulation alone", len(texts), time.perf_counter() - wall_s, time.process_time() - cpu_s)


def ran(title: str, file: Path, store: Path, address: str | None = None) -> Cost:
    """Return the cost of a sweep."""
    # Tables are made, and what makes them is loaded, once in the life of a store.
    Store(str(store)).close()
    others = Cluster(address) if address else None
    # A cluster's processes have loaded elephan after the first point.
    if address is not None:
        api.run(file, {"sweep": False, "run.repetitions": 2 * default_workers()}, store="none", cluster=address)
    before = _cpu_of(others)
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    done = api.run(file, store=str(store), cluster=address)
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    scheduler_s, workers_s = (after - one for after, one in zip(_cpu_of(others), before, strict=True))
    if others is not None:
        others.close()
    return Cost(title, len(done), wall_s, cpu_s, scheduler_s, workers_s)


def _cpu_of(cluster: Cluster | None) -> tuple[float, float]:
    """Return the CPU time of a cluster's scheduler and of its workers, s."""
    if cluster is None:
        return 0.0, 0.0
    workers = cluster.client.run(time.process_time)
    return cluster.client.run_on_scheduler(time.process_time), sum(workers.values())


@contextmanager
def cluster_of(folder: Path) -> Iterator[str]:
    """Start a scheduler with two workers; give its address."""
    script = folder / "scheduler.py"
    script.write_text(SCHEDULER, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        yield running.stdout.readline().strip()
        running.communicate()


def measured(points: int) -> tuple[list[tuple[Cost, Cost]], Cost]:
    """Return the cost of each sweep with that of its simulation, and of a sweep that is stored already."""
    found = []
    with tempfile.TemporaryDirectory(prefix="elephan-sweep-") as name:
        folder = Path(name)
        for title, series in (("with series", '"10ms"'), ("without series", "false")):
            file = folder / f"{title.replace(' ', '-')}.toml"
            file.write_text(TEXT.format(repetitions=points // 500, series=series), encoding="utf-8")
            alone = simulated(file)
            here = ran(f"here, {title}", file, folder / f"{file.stem}.sqlite")
            found.append((here, alone))
            say(here, alone)
            with cluster_of(folder) as address:
                there = ran(f"on a cluster, {title}", file, folder / f"{file.stem}-there.sqlite", address)
            found.append((there, alone))
            say(there, alone)
        again = ran("here, all of it stored before", file, folder / f"{file.stem}.sqlite")
    return found, again


def synced(folder: Path) -> tuple[float, float]:
    """Return the time of a file that is written and synced alone, and of one among others, ms."""
    content = os.urandom(FILE_BYTES)
    (folder / "alone").mkdir()
    began_s = time.perf_counter()
    for number in range(FILES):
        with replacing(folder / "alone" / str(number), durable=True) as file:
            file.write(content)
    alone_s = time.perf_counter() - began_s
    with Syncs() as syncs:
        replace_together([(folder / "together" / str(number), content) for number in range(FILES)], syncs)
    return 1e3 * alone_s / FILES, 1e3 * (time.perf_counter() - began_s - alone_s) / FILES


def say(cost: Cost, alone: Cost) -> None:
    """Print a line of progress."""
    print("  ".join(cost.row(alone)), file=sys.stderr, flush=True)


def main() -> int:
    """Measure, and write the page's part."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--points", type=int, default=POINTS, help="points of each sweep")
    parser.add_argument("--dry", action="store_true", help="print the table, write no page")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    rows, again = measured(options.points)
    with tempfile.TemporaryDirectory(prefix="elephan-sweep-", dir=".") as name:
        alone_ms, together_ms = synced(Path(name))
    most = max(cost.overhead_ms(alone) for cost, alone in rows)
    verdict = "within" if most <= OVERHEAD_MAX_MS else "above"
    ways = [("here", rows[::2]), ("on a cluster", rows[1::2])]
    largest = ", ".join(f"{max(c.overhead_ms(alone) for c, alone in pairs):.2f} ms {way}" for way, pairs in ways)
    text = (
        fill(
            f"{rows[0][0].points:,} points in each sweep. The largest overhead of a point is {largest}, {verdict} the "
            f"bound of {OVERHEAD_MAX_MS:g} ms; simulation alone takes {rows[0][1].cpu_ms:.2f} ms. The machine's load "
            f"when this began was {load:.1f}, which lengthens wall time. One of {FILES} files of {FILE_BYTES:,} B "
            f"takes {alone_ms:.2f} ms when each is synced alone, {together_ms:.2f} ms when they are synced together."
        )
        + "\n\n"
        + table(
            ["sweep", "CPU here, ms", "scheduler, ms", "workers, ms", "wall, ms", "overhead, CPU, ms"],
            [*(cost.row(alone) for cost, alone in rows), again.row(None)],
        )
    )
    if options.dry:
        print(text)
    else:
        write_parts(PAGE, COMMAND, {"cost": text})
    return 0


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.sweep", main))
