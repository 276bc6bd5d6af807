"""Run points on several workers and store each as it ends.

**Invariant: outcomes are in the order of the points, and equal for every number of workers.** Only the calling thread
writes to the store, so that a run is stored whole or not at all. It stores at once all runs that have ended by then, in
one transaction: while it waits for the disk others end, and are the next. No run waits for another one to end.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elephan import backends
from elephan.backends import Job
from elephan.core import build_digest
from elephan.errors import ElephanError, InputError
from elephan.record import Record
from elephan.signals import END_SIGNALS, Flag
from elephan.sweep.progress import NoProgress, Watcher
from elephan.sweep.workers import Backend, Message, Numbered, Threads, Workers
from elephan.units import pluralize

if TYPE_CHECKING:
    from elephan.store.database import Store
    from elephan.store.series import Series, SeriesFiles
    from elephan.sweep.costs import Costs

POLL_S = 0.1
"""Interval at which the calling thread shows progress and looks for Ctrl-C, s."""

STORED_AT_ONCE = 128
"""Runs in one transaction, at most."""

LOOKED_UP_AT_ONCE = 256
"""Jobs that are looked up in the store by one statement, at most."""

SERIES_IN_MEMORY_BYTES = 256 * 2**20
"""Stored series are kept in memory as well up to this sum, bytes; beyond, they are read when asked for."""


@dataclass
class Outcome:
    """Result of a job."""

    job: Job
    record: Record
    held: Series | SeriesFiles | None
    """Series in memory, None when it is to be read from the store."""
    reused: bool
    """True if it was in the store already."""

    @property
    def series(self) -> Series | None:
        """The series where they are in memory; those of a cluster are decoded when they are asked for."""
        from elephan.store.series import SeriesFiles

        return self.held.decoded() if isinstance(self.held, SeriesFiles) else self.held


class Interrupted(ElephanError):
    """Ctrl-C, or a signal to end. Runs that had ended are in the store."""

    exit_code = 130

    def __init__(self, ended: int, total: int, stored: bool) -> None:
        """Name the command that goes on."""
        be = "is" if ended == 1 else "are"
        kept = f"{be} stored; the same command continues from here" if stored else f"{be} lost: there was no store"
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
    engine: Callable[[Watcher, Flag], Workers] | None = None,
    costs: Costs | None = None,
) -> list[Outcome]:
    """Run `jobs` and return their outcomes in order. Of jobs that are made when asked for, few wait at any time.

    A job whose record is in the store, made by this very build, is not run unless `again` or `must_run`. `engine` makes
    the workers, threads of this process unless given; `costs` tells a watcher what each job will take. Raises
    `Interrupted` on Ctrl-C, and the first job's error when one fails; what had ended is stored in either case.
    """
    if workers is not None and workers < 1:
        raise InputError(f"workers = {workers}: at least 1")
    watcher = watcher or NoProgress()
    stop = Flag()
    if engine is not None:
        hands = engine(watcher, stop)
    else:
        hands = Threads(backend, min(workers or default_workers(), len(jobs)), watcher, stop)
    watcher.expect(costs)
    # A run that is alone may use as many cores as runs would; several have one each.
    cores = min(workers or default_workers(), default_workers()) if engine is None and len(jobs) == 1 else 1
    pool = _Pool(jobs, store, again, hands, watcher, stop, cores)
    pool.run()
    return [pool.outcomes[number] for number in range(len(jobs))]


class _Pool:
    """One call of `execute`."""

    def __init__(
        self,
        jobs: Sequence[Job],
        store: Store | None,
        again: bool,
        workers: Workers,
        watcher: Watcher,
        stop: Flag,
        cores: int,
    ) -> None:
        self._jobs = jobs
        self._cores = cores
        """Of each job."""
        self.outcomes: dict[int, Outcome] = {}
        """By the job's number."""
        self._store = store
        self._again = again
        self._workers = workers
        self._watcher = watcher
        self._next = 0
        """Number of the job that is made next."""
        self._found_in_a_row = 0
        """Jobs that were in the store, since the last one that was not."""
        self._given: dict[int, Job] = {}
        """Jobs that workers have or are to take, and that have not come back."""
        self._stop = stop
        self._errors: dict[int, BaseException] = {}
        self._series_bytes = 0

    def run(self) -> None:
        """Run all jobs that are not in the store."""
        interrupted = False
        with _termination_requested(self._stop) as is_requested:
            self._watcher.start(len(self._jobs))
            try:
                while not self._stop.is_set() and (self._give() or self._given):
                    self._collect()
            finally:
                self._workers.stop()
                self._drain()
                self._workers.close()
                self._watcher.finish()
                if self._store is not None:
                    self._store.settle(attempt=not is_requested())
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

    def _give(self) -> bool:
        """Make the next jobs and give them to the workers, but those in the store; none when enough are waiting.

        Return whether there are more to make.
        """
        room = self._workers.ahead() - len(self._given)
        if room > 0 and self._next < len(self._jobs):
            # More of them are looked up at once while one after the other is in the store.
            count = min(max(room, self._found_in_a_row), LOOKED_UP_AT_ONCE, len(self._jobs) - self._next)
            made: list[Numbered] = []
            for number in range(self._next, self._next + count):
                self._next += 1
                try:
                    made.append((number, self._jobs[number]))
                except ElephanError as error:
                    # The runs before it are made all the same.
                    self._errors[number] = error
                    self._next = len(self._jobs)
                    break
            try:
                self._hand_out(made)
            except ElephanError as error:
                self._fail(made[0][0], error)
        return self._next < len(self._jobs) and not self._stop.is_set()

    def _hand_out(self, jobs: Sequence[Numbered]) -> None:
        """Give jobs to the workers, but those in the store."""
        found = self._stored([job for _, job in jobs])
        todo = []
        for number, job in jobs:
            record = None if job.must_run or not found else found.get(job.id)
            if record is None:
                job.cores = self._cores
                todo.append((number, job))
            else:
                # The same run may have been made under another name or from another sweep.
                own = record.model_copy(update={"scenario": job.scenario, "parameters": job.parameters})
                self.outcomes[number] = Outcome(job, own, None, reused=True)
                self._watcher.found(number)
                self._watcher.took(number, _cost(record))
        self._found_in_a_row = 0 if todo else self._found_in_a_row + len(jobs)
        self._given.update(todo)
        self._workers.give(todo)

    def _stored(self, jobs: Sequence[Job]) -> dict[str, Record]:
        """Return the records of those jobs that need not run, by their ids."""
        if self._store is None or self._again:
            return {}
        ids = [job.id for job in jobs if not job.must_run]
        return self._store.find_all(ids, build_digest()) if ids else {}

    def _collect(self) -> None:
        """Take what workers have finished; wait for one when there is nothing to give to another."""
        full = self._next == len(self._jobs) or len(self._given) >= self._workers.ahead()
        self._take(self._workers.take(POLL_S if full else 0, STORED_AT_ONCE))
        self._watcher.refresh()

    def _drain(self) -> None:
        """Wait for the workers, and store the runs that they had finished when they had to stop."""
        while not self._workers.are_gone():
            self._take(self._workers.take(POLL_S, STORED_AT_ONCE))
            self._watcher.refresh()

    def _fail(self, number: int, error: BaseException) -> None:
        self._errors[number] = error
        self._stop.set()

    def _take(self, messages: Sequence[Message]) -> None:
        ended: list[tuple[Message, Job, Record]] = []
        for message in messages:
            job = self._given.pop(message.number)
            if message.error is not None:
                self._fail(message.number, message.error)
            elif message.record is not None:
                ended.append((message, job, message.record))
        if not ended:
            return
        if self._store is not None:
            try:
                self._store.save_all([(record, message.series) for message, _, record in ended])
            except ElephanError as error:
                self._fail(ended[0][0].number, error)
                return
        for message, job, record in ended:
            self.outcomes[message.number] = Outcome(job, record, self._held(message), reused=False)
            self._watcher.took(message.number, message.took_s)
            self._watcher.ended(message.number)

    def _held(self, message: Message) -> Series | SeriesFiles | None:
        """Return a run's series where they are kept in memory."""
        series = message.series
        if series is not None and self._store is not None:
            self._series_bytes += series.nbytes
            if self._series_bytes > SERIES_IN_MEMORY_BYTES:
                return None
        return series


def _cost(record: Record) -> float | None:
    """Return the time that a stored run took here, s; None where it tells nothing about this machine."""
    from elephan.backends.host import host_facts

    if record.backend != "sim" or record.host.get("cpu") != host_facts()["cpu"]:
        return None
    cpu_s = record.metrics.get("cpu_s")
    return None if cpu_s is None else float(cpu_s)


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
