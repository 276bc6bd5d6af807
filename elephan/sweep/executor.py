"""Run points on several workers and store each as it ends.

**Invariant: outcomes are in the order of the points, and equal for every number of workers.** Workers are threads: the
core releases the GIL. Only the calling thread writes to the store, so that a run is stored whole or not at all.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elephan import backends
from elephan.backends import Job, Progress, Stopped
from elephan.core import build_digest
from elephan.errors import ElephanError, InputError
from elephan.record import Record
from elephan.signals import END_SIGNALS, Flag
from elephan.sweep.progress import NoProgress, Watcher
from elephan.units import pluralize

if TYPE_CHECKING:
    from elephan.store.database import Store
    from elephan.store.series import Series

Backend = Callable[[Job, Progress | None], "tuple[Record, Series]"]

POLL_S = 0.1
"""Interval at which the calling thread shows progress and looks for Ctrl-C, s."""

SERIES_IN_MEMORY_BYTES = 256 * 2**20
"""Stored series are kept in memory as well up to this sum, bytes; beyond, they are read when asked for."""


@dataclass
class Outcome:
    """Result of a job."""

    job: Job
    record: Record
    series: Series | None
    """None when it is to be read from the store."""
    reused: bool
    """True if it was in the store already."""


class Interrupted(ElephanError):
    """Ctrl-C, or a signal to end. Runs that had ended are in the store."""

    exit_code = 130

    def __init__(self, ended: int, total: int, stored: bool) -> None:
        """Name the command that goes on."""
        be = "is" if ended == 1 else "are"
        kept = f"{be} stored; the same command goes on from here" if stored else f"{be} lost: there was no store"
        super().__init__(f"stopped: {ended} of {pluralize(total, 'run')} had ended and {kept}")


def default_workers() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def execute(
    jobs: Sequence[Job],
    *,
    store: Store | None = None,
    workers: int | None = None,
    again: bool = False,
    watcher: Watcher | None = None,
    backend: Backend = backends.run,
) -> list[Outcome]:
    """Run `jobs` and return their outcomes in order. Of jobs that are made when asked for, few wait at any time.

    A job whose record is in the store, made by this very build, is not run unless `again` or `must_run`. Raises
    `Interrupted` on Ctrl-C, and the first job's error when one fails; what had ended is stored in either case.
    """
    if workers is not None and workers < 1:
        raise InputError(f"workers = {workers}: at least 1")
    pool = _Pool(jobs, store, again, backend, watcher or NoProgress())
    pool.run(min(workers or default_workers(), len(jobs)))
    return [pool.outcomes[number] for number in range(len(jobs))]


@dataclass
class _Message:
    """From a worker: an outcome or an error; neither when the worker was stopped."""

    number: int
    outcome: Outcome | None = None
    error: BaseException | None = None


class _Pool:
    """The workers of one call of `execute`."""

    def __init__(
        self,
        jobs: Sequence[Job],
        store: Store | None,
        again: bool,
        backend: Backend,
        watcher: Watcher,
    ) -> None:
        self._jobs = jobs
        self.outcomes: dict[int, Outcome] = {}
        """By the job's number."""
        self._store = store
        self._again = again
        self._backend = backend
        self._watcher = watcher
        self._todo: queue.SimpleQueue[tuple[int, Job] | None] = queue.SimpleQueue()
        self._next = 0
        """Number of the job that is made next."""
        self._given = 0
        """Jobs that workers have or are to take, and that have not come back."""
        # Bounded, so that results do not pile up in memory when the store is slower than the workers.
        self._done: queue.Queue[_Message] = queue.Queue(maxsize=4)
        self._stop = Flag()
        self._errors: dict[int, BaseException] = {}
        self._series_bytes = 0

    def run(self, workers: int) -> None:
        """Run all jobs that are not in the store."""
        threads: list[threading.Thread] = []
        interrupted = False
        with _termination_requested(self._stop) as is_requested:
            self._watcher.start(len(self._jobs))
            try:
                while not self._stop.is_set() and (self._give(threads, workers) or self._given):
                    self._collect(workers)
            finally:
                self._stop.set()
                for _ in threads:
                    self._todo.put(None)
                self._drain(threads)
                self._watcher.finish()
            interrupted = is_requested()
        if self._errors:
            number = min(self._errors)
            raise self._named(number, self._errors[number])
        if interrupted and len(self.outcomes) < len(self._jobs):
            raise Interrupted(len(self.outcomes), len(self._jobs), self._store is not None)

    def _named(self, number: int, error: BaseException) -> BaseException:
        """Name the run that failed, if there are several and the error is the user's."""
        if isinstance(error, ElephanError) and len(self._jobs) > 1:
            error.args = (f"run {number + 1} of {len(self._jobs)}: {error}",)
        return error

    def _give(self, threads: list[threading.Thread], workers: int) -> bool:
        """Make the next job and give it to the workers, unless it is in the store or enough are waiting.

        Return whether there are more to make.
        """
        # One waits for each worker, so that none is idle while this thread stores what another has done.
        if self._next < len(self._jobs) and self._given < 2 * workers:
            number = self._next
            self._next += 1
            try:
                job = self._jobs[number]
                record = self._stored(job)
            except ElephanError as error:
                self._errors[number] = error
                self._stop.set()
                return False
            if record is not None:
                self.outcomes[number] = Outcome(job, record, None, reused=True)
                self._watcher.found(number)
            else:
                self._given += 1
                self._todo.put((number, job))
                if len(threads) < workers:
                    threads.append(threading.Thread(target=self._work, name=f"elephan-{len(threads)}", daemon=True))
                    threads[-1].start()
        return self._next < len(self._jobs)

    def _stored(self, job: Job) -> Record | None:
        """Return the record of a job that need not run, under the job's own name and parameters."""
        if self._store is None or self._again or job.must_run:
            return None
        found = self._store.find(job.id, build_digest())
        # The same run may have been made under another name or from another sweep.
        return found and found.model_copy(update={"scenario": job.scenario, "parameters": job.parameters})

    def _collect(self, workers: int) -> None:
        """Take what a worker has finished; wait for one when there is nothing to give to another."""
        full = self._next == len(self._jobs) or self._given >= 2 * workers
        with suppress(queue.Empty):
            message = self._done.get(timeout=POLL_S) if full else self._done.get_nowait()
            self._given -= 1
            self._take(message)
        self._watcher.refresh()

    def _drain(self, threads: list[threading.Thread]) -> None:
        """Wait for the workers, and store the runs that they had finished when they had to stop."""
        while any(thread.is_alive() for thread in threads) or not self._done.empty():
            try:
                self._take(self._done.get(timeout=POLL_S))
            except queue.Empty:
                self._watcher.refresh()
        for thread in threads:
            thread.join()

    def _take(self, message: _Message) -> None:
        if message.error is not None:
            self._errors[message.number] = message.error
            self._stop.set()
            return
        outcome = message.outcome
        if outcome is None:
            return
        if self._store is not None:
            try:
                self._store.save(outcome.record, outcome.series)
            except ElephanError as error:
                self._errors[message.number] = error
                self._stop.set()
                return
            assert outcome.series is not None
            self._series_bytes += outcome.series.nbytes
            if self._series_bytes > SERIES_IN_MEMORY_BYTES:
                outcome.series = None
        self.outcomes[message.number] = outcome
        self._watcher.ended(message.number)

    def _work(self) -> None:
        """A worker's life: take a job, run it, hand it over."""
        while (given := self._todo.get()) is not None and not self._stop.is_set():
            number, job = given
            self._watcher.began(number, job)
            try:
                record, series = self._backend(job, self._progress_of(number))
                message = _Message(number, outcome=Outcome(job, record, series, reused=False))
            except Stopped:
                message = _Message(number)
            except BaseException as error:  # handed to the caller's thread, which raises it
                # Now, and not when that thread receives it: no further job is to begin.
                self._stop.set()
                message = _Message(number, error=error)
            self._done.put(message)

    def _progress_of(self, number: int) -> Progress:
        def progress(simulated_ns: int, total_ns: int) -> None:
            if self._stop.is_set():
                raise Stopped
            self._watcher.moved(number, simulated_ns, total_ns)

        return progress


@contextmanager
def _termination_requested(stop: Flag) -> Iterator[Callable[[], bool]]:
    """Turn the first signal to end into `stop`: no store is cut short, and nothing that a run made stays.

    The second one is as it was. Outside the main thread (a notebook's server, a web request) signals cannot be taken
    over and stay as they are; so do those that are ignored, as SIGHUP under nohup.
    """
    is_requested = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: is_requested
        return

    before = {number: signal.getsignal(number) for number in END_SIGNALS}

    def handler(number: int, frame: Any) -> None:
        nonlocal is_requested
        previous = before[signal.Signals(number)]
        if is_requested and callable(previous):
            previous(number, frame)
        elif is_requested:
            signal.signal(number, previous)
            signal.raise_signal(number)
        is_requested = True
        stop.set()

    for number, previous in before.items():
        if previous != signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield lambda: is_requested
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
