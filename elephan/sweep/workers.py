"""Workers of a sweep: take jobs, run them, hand results over. Here: threads of this process (`Threads`)."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from elephan.backends import Job, Progress, Stopped
from elephan.record import Record
from elephan.signals import Flag
from elephan.sweep.progress import Watcher

if TYPE_CHECKING:
    from elephan.store.series import Series, SeriesFiles

Backend = Callable[[Job, Progress | None], "tuple[Record, Series]"]

Numbered = tuple[int, Job]
"""A job and its number among all jobs of the sweep."""

AHEAD_S = 0.05
"""Work that waits for each worker, s: so long may the calling thread take to store what has ended."""

MOST_AHEAD = 32
"""Jobs that wait for each worker at most."""

MOST_PENDING_BYTES = 64 * 2**20
"""Series that wait to be stored: beyond, workers wait, so that results do not pile up in memory."""


@dataclass
class Message:
    """From a worker: a result or an error; neither when the worker was stopped."""

    number: int
    record: Record | None = None
    series: Series | SeriesFiles | None = None
    error: BaseException | None = None
    took_s: float = 0.0
    """Time of the run, s."""


class Workers(Protocol):
    """Run jobs. Methods are for the calling thread."""

    def ahead(self) -> int:
        """Return how many jobs they are to have at most, those that have not come back included."""

    def give(self, jobs: Sequence[Numbered]) -> None:
        """Have them run jobs."""

    def take(self, timeout_s: float, most: int) -> list[Message]:
        """Return what has ended, at most so many; wait for the first."""

    def stop(self) -> None:
        """Begin no further job; those that run end soon."""

    def are_gone(self) -> bool:
        """Return True if nothing more will come, after `stop`."""

    def close(self) -> None:
        """Release what they hold, after all has come back."""


def taken(done: queue.SimpleQueue[Message], timeout_s: float, most: int) -> list[Message]:
    """Return what is in a queue, at most so many messages; wait for the first."""
    found: list[Message] = []
    try:
        found.append(done.get(timeout=timeout_s) if timeout_s > 0 else done.get_nowait())
        while len(found) < most:
            found.append(done.get_nowait())
    except queue.Empty:
        pass
    return found


class Threads:
    """Threads of this process: the core releases the GIL."""

    def __init__(self, backend: Backend, count: int, watcher: Watcher, stop: Flag) -> None:
        """Start none yet; `stop` ends the runs."""
        self._backend, self._count, self._watcher, self._stop = backend, count, watcher, stop
        self._threads: list[threading.Thread] = []
        self._todo: queue.SimpleQueue[Numbered | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._run_s: float | None = None
        """Time of a run, smoothed, s."""
        self._pending = threading.Condition()
        self._pending_bytes = 0

    def ahead(self) -> int:
        """See `Workers`."""
        # One waits for each worker, so that none is idle while another's result is stored; more where runs are short.
        more = 1 if self._run_s is None else max(1, min(MOST_AHEAD, int(AHEAD_S / max(self._run_s, 1e-6))))
        return self._count * (1 + more)

    def give(self, jobs: Sequence[Numbered]) -> None:
        """See `Workers`."""
        for job in jobs:
            self._todo.put(job)
            if len(self._threads) < self._count:
                thread = threading.Thread(target=self._work, name=f"elephan-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def take(self, timeout_s: float, most: int) -> list[Message]:
        """See `Workers`."""
        found = taken(self._done, timeout_s, most)
        if found:
            with self._pending:
                self._pending_bytes -= sum(one.series.nbytes for one in found if one.series is not None)
                self._pending.notify_all()
            took_s = sum(one.took_s for one in found) / len(found)
            self._run_s = took_s if self._run_s is None else (self._run_s + took_s) / 2
        return found

    def stop(self) -> None:
        """See `Workers`."""
        self._stop.set()
        for _ in self._threads:
            self._todo.put(None)

    def are_gone(self) -> bool:
        """See `Workers`."""
        return not any(thread.is_alive() for thread in self._threads) and self._done.empty()

    def close(self) -> None:
        """See `Workers`."""
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        """A worker's life: take a job, run it, hand it over."""
        while (given := self._todo.get()) is not None and not self._stop.is_set():
            number, job = given
            self._watcher.began(number, job)
            began_s = time.monotonic()
            try:
                record, series = self._backend(job, self._progress_of(number))
                message = Message(number, record, series, took_s=time.monotonic() - began_s)
            except Stopped:
                message = Message(number)
            except BaseException as error:  # handed to the caller's thread, which raises it
                # Now, and not when that thread receives it: no further job is to begin.
                self._stop.set()
                message = Message(number, error=error)
            self._hand_over(message)

    def _hand_over(self, message: Message) -> None:
        with self._pending:
            while self._pending_bytes > MOST_PENDING_BYTES:
                self._pending.wait(1.0)
            if message.series is not None:
                self._pending_bytes += message.series.nbytes
        self._done.put(message)

    def _progress_of(self, number: int) -> Progress:
        def progress(simulated_ns: int, total_ns: int) -> None:
            if self._stop.is_set():
                raise Stopped
            self._watcher.moved(number, simulated_ns, total_ns)

        return progress
