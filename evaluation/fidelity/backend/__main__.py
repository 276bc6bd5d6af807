"""`make backend`: measures the runs that measured.jsonl lacks on the kernel backend. Needs root; takes hours at first.

It can be stopped at any time and goes on with the missing runs. A run that the emulator did not honour is tried again,
alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from elephan import backends
from elephan.api import job_of
from elephan.backends import Progress, Stopped
from elephan.errors import RunError
from elephan.signals import END_SIGNALS
from evaluation.fidelity import cases as reference_cases
from evaluation.fidelity.backend import cases, measured, script


def main() -> int:
    """Measure and append."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.fidelity.backend", description=__doc__)
    parser.add_argument("--workers", type=int, default=4, help="runs at once (default: 4)")
    parser.add_argument("--seeds", type=int, help="only the first so many of each cell")
    parser.add_argument("--only", action="append", default=[], metavar="CC", help="only these congestion controls")
    parser.add_argument("--rivals", action="store_true", help="only the cells beside Reno")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so long")
    options = parser.parse_args()
    # As Ctrl-C: runs that go on are ended and leave nothing.
    for number in END_SIGNALS:
        signal.signal(number, signal.default_int_handler)
    there = measured.load()
    # Seed by seed over all cells, so that an interrupted run leaves a whole table of fewer seeds.
    reference = reference_cases.load()
    all_cells = list(cases.cells(reference))
    wanted: list[Wanted] = []
    for name, spec in script.specs(reference).items():
        run = there.get(cases.key_of(spec))
        if (run is None or not measured.honoured(run)) and (not options.only or name in options.only):
            wanted.append(((script.NAME, name), spec))
    for index in range(max(len(cell.specs) for cell in all_cells)):
        if options.seeds is not None and index >= options.seeds:
            break
        for cell in all_cells:
            if (options.only and cell.cc not in options.only) or (options.rivals and not cell.rival):
                continue
            spec = cell.specs[index]
            # Without loss the path has no chance in it, but the machine has: every seed is run.
            run = there.get(cases.key_of(spec))
            if run is None or not measured.honoured(run):
                wanted.append((cell.name, spec))
    return Measurement(options.workers, options.minutes * 60).run(wanted)


Wanted = tuple[tuple[str, ...], dict[str, Any]]
"""Name of a run, and its specification."""


class Measurement:
    """Runs going at once, and one writer at a time."""

    def __init__(self, workers: int, seconds: float) -> None:
        """Take how many at once and for how long."""
        self._workers = workers
        self._until_s = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._ended = 0
        self._total = 0

    def run(self, wanted: list[Wanted]) -> int:
        """Run all; return the exit code."""
        self._total = len(wanted)
        with ThreadPoolExecutor(self._workers) as pool:
            ends = [pool.submit(self._one, name, spec) for name, spec in wanted]
            try:
                again = [item for item in (end.result() for end in ends) if item is not None]
            except BaseException:
                self._stop.set()
                for end in ends:
                    end.cancel()
                raise
        left = [item for item in again if self._one(*item) is not None]
        for name, _ in left:
            print(f"not measured as it should be: {' '.join(name)}", file=sys.stderr)
        return 1 if left else 0

    def _one(self, name: tuple[str, ...], spec: dict[str, Any]) -> Wanted | None:
        """Run one; return it when it should be tried again."""
        if self._stop.is_set() or time.monotonic() > self._until_s:
            return None
        try:
            record, series = backends.run(job_of(spec, "fidelity", "kernel"), self._progress)
        except Stopped:
            return None
        except RunError as error:
            # Something on this machine came between; the others need not suffer.
            print(f"{' '.join(name)}: {error}", file=sys.stderr)
            return name, spec
        run = measured.kept(cases.key_of(spec), name, spec["seed"], record)
        if name[0] == script.NAME:
            run["windows"] = dataclasses.asdict(script.windows(spec, series))
        with self._lock:
            measured.append(run)
            self._ended += 1
            faults = "; ".join(run["faults"])
            rate = run["metrics"].get("goodput_bps", 0) / 1e6
            print(f"{self._ended}/{self._total} {' '.join(name)} seed {spec['seed']}: {rate:.2f} Mbit/s {faults}")
        return None if measured.honoured(run) else (name, spec)

    @property
    def _progress(self) -> Progress:
        def progress(now_ns: int, total_ns: int) -> None:
            if self._stop.is_set():
                raise Stopped

        return progress


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; what has ended is kept")
