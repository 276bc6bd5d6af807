"""The one runner of the harnesses: it takes runs and returns their records, and runs nothing twice.

Runs go through `elephan.api` and a store of their own in out/evaluation. A run is found there by the store's key: the
record's id (specification, input files, version, backend) and the digest of what made it: of the native module, which
holds every crate and every file of congestion/, and of the files of Python that make a record of its results. A changed
one makes every run anew; what is read off a record may change without that.

Some measurements are no runs of the core: how long a program takes (evaluation/performance), what ns-2 gives, how a
trial of detection ends. `in_parallel` does those on all cores; nothing keeps them. Measurements on the kernel that took
hours are committed where they are read (evaluation/fidelity/backend/measured.jsonl).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from elephan.api import Results, run_jobs
from elephan.backends import Job
from elephan.core import build_digest
from elephan.record import Record
from elephan.store import Series, Store, open_store
from elephan.sweep.executor import default_workers
from elephan.sweep.progress import Bars, NoProgress, Watcher

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out" / "evaluation"
"""Files that harnesses write and that are not committed."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Runner:
    """Runs jobs on all cores, and has what was run by this build of the core before."""

    def __init__(
        self, store: Store | None, *, again: bool = False, workers: int | None = None, watcher: Watcher | None = None
    ) -> None:
        """Without a store nothing is kept. `again` runs what is stored; `watcher` is told how far it is."""
        self._store = store
        self._again = again
        self._workers = workers
        self._watcher = watcher or NoProgress()

    @classmethod
    def of(cls, options: argparse.Namespace) -> Runner:
        """Return the runner that the options of `add_options` ask for. Raises `StoreError`."""
        OUT.mkdir(parents=True, exist_ok=True)
        return cls(open_store(str(OUT / "store.sqlite")), again=options.again, workers=options.workers, watcher=Bars())

    def run(self, jobs: Iterable[Job]) -> Results:
        """Return the records of `jobs`, in order. Raises what `elephan.run` does; what had ended is stored."""
        (results,) = run_jobs(
            [list(jobs)], store=self._store or "none", workers=self._workers, again=self._again, watcher=self._watcher
        )
        return results

    def stored(self, job: Job) -> tuple[Record, Series | None] | None:
        """Return the record and the series of a run that need not be made, None when it is not stored."""
        record = None if self._store is None else self._store.find(job.id, build_digest())
        if self._store is None or record is None:
            return None
        return record, self._store.series(record.id)

    def in_parallel(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return what `work`, which is no run of the core or lets go of the GIL, makes of each item, in order."""
        with ThreadPoolExecutor(self._workers or default_workers()) as pool:
            return list(pool.map(work, items))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every harness has."""
    parser.add_argument("--again", action="store_true", help="run what is stored in out/evaluation once more")
    parser.add_argument("--workers", type=int, metavar="N", help="runs at once (all cores)")
