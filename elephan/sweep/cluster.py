"""Workers of a dask.distributed cluster: simulated points run on other machines, their results come back here.

A task is a few points, so that the scheduler's work per point is small; it gives back their records and series. The one
process that asked stores them, as it stores those of its own threads. A task depends on nothing but its arguments: when
a worker dies, the scheduler has another one do its tasks again. Files that a point reads are sent to a worker that
lacks them, once, and held there by their digest.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from elephan import user_files
from elephan.backends import Job
from elephan.core import build_digest, version
from elephan.errors import ElephanError, InputError, RunError
from elephan.record import Record, canonical_json
from elephan.signals import Flag
from elephan.store.series import SeriesFiles
from elephan.sweep import remote
from elephan.sweep.progress import Watcher
from elephan.sweep.remote import Done, Task
from elephan.sweep.workers import Message, Numbered, taken
from elephan.units import pluralize

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_S = 5.0
"""Time for the scheduler to answer, s."""

TASK_S = 0.5
"""Work of a task, s: a worker that dies loses so much, and results are stored that much later at most."""

POINTS_MAX = 32
"""Points of a task, at most."""

TASKS_AHEAD = 2
"""Tasks for each thread of the cluster: one runs, one waits."""

PART_BYTES = 32 * 2**20
"""Part of a file that is sent in one message."""

LOOK_S = 3.0
"""Interval of looks at the number of workers, s."""


class Cluster:
    """A connection to a scheduler."""

    def __init__(self, address: str) -> None:
        """Connect. Raises `InputError` when dask is missing, nobody answers, or a worker has another elephan."""
        try:
            from distributed import Client
        except ImportError as error:
            raise InputError(f"--cluster {address}: dask is not installed; pip install 'elephan[dask]'") from error
        self.address = address
        # Its own words, some with tracebacks, are not for the command's user: errors are told here, in a line.
        logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
        logging.getLogger("tornado").setLevel(logging.CRITICAL + 1)
        try:
            with warnings.catch_warnings():
                # Of other versions of what dask itself needs, in many lines.
                warnings.simplefilter("ignore")
                self.client: Client = Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TypeError, ImportError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"--cluster {address}: no scheduler of dask answers there ({reason}); "
                "an address is such as tcp://HOST:8786, which `dask scheduler` prints"
            ) from error
        try:
            self._must_have_this_elephan()
        except BaseException:
            self.close()
            raise

    def _must_have_this_elephan(self) -> None:
        found = self.client.run(remote.probe(), on_error="return")
        for worker, answer in found.items():
            if isinstance(answer, BaseException):
                raise InputError(f"--cluster {self.address}: the worker {worker} does not answer: {answer}")
            if answer != [version(), build_digest()]:
                raise self.refused(worker, answer)

    def refused(self, worker: str, answer: Sequence[str]) -> InputError:
        """Return the error for a worker whose records would not be the same."""
        other = f"elephan {answer[0]} (core {answer[1]})" if len(answer) == 2 else f"no elephan ({' '.join(answer)})"
        return InputError(
            f"--cluster {self.address}: the worker {worker} has {other}, here is elephan {version()} "
            f"(core {build_digest()}): install the same there, since records must be the same"
        )

    def __str__(self) -> str:
        """Format it for people, on one line."""
        count = len(self.client.nthreads())
        if not count:
            return f"the cluster {self.address} has no worker yet; runs begin when one connects"
        return f"cluster {self.address}: {pluralize(count, 'worker')}, {pluralize(self.threads(), 'run')} at once"

    def threads(self) -> int:
        """Return how many points may run at once."""
        return sum(self.client.nthreads().values())

    def workers(self, watcher: Watcher, stop: Flag) -> ClusterWorkers:
        """Return the workers for a sweep; see `elephan.sweep.executor.execute`."""
        return ClusterWorkers(self, watcher, stop)

    def close(self) -> None:
        """End the connection."""
        with suppress(Exception):
            self.client.close(timeout=CONNECT_S)


class ClusterWorkers:
    """See `elephan.sweep.workers.Workers`."""

    def __init__(self, cluster: Cluster, watcher: Watcher, stop: Flag) -> None:
        """Give none yet."""
        self._cluster, self._watcher, self._stop = cluster, watcher, stop
        self._threads = max(1, cluster.threads())
        self._points = 1
        """Points of the next tasks."""
        self._waiting: list[Numbered] = []
        """Jobs that are not in a task yet."""
        self._jobs: dict[int, Job] = {}
        """Jobs that have not come back."""
        self._tasks: dict[str, tuple[Future[Any], list[int]]] = {}
        """Tasks that have not ended, and their jobs, by the task's key."""
        self._ended: queue.SimpleQueue[Future[Any] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._look_s = 0.0
        self._made = 0
        self._collector = threading.Thread(target=self._collect, name="elephan-cluster", daemon=True)
        self._collector.start()

    def ahead(self) -> int:
        """See `elephan.sweep.workers.Workers`."""
        if time.monotonic() - self._look_s > LOOK_S:
            # Workers come and go.
            with suppress(Exception):
                self._threads = max(1, self._cluster.threads())
            self._look_s = time.monotonic()
        return self._threads * TASKS_AHEAD * self._points

    def give(self, jobs: Sequence[Numbered]) -> None:
        """See `elephan.sweep.workers.Workers`."""
        for first in range(0, len(jobs), self._points):
            self._submit(jobs[first : first + self._points])

    def take(self, timeout_s: float, most: int) -> list[Message]:
        """See `elephan.sweep.workers.Workers`."""
        found = taken(self._done, timeout_s, most)
        took = [one.took_s for one in found if one.record is not None]
        if took:
            mean_s = max(sum(took) / len(took), 1e-4)
            self._points = max(1, min(POINTS_MAX, (self._points + round(TASK_S / mean_s)) // 2))
        return found

    def stop(self) -> None:
        """See `elephan.sweep.workers.Workers`."""
        self._stop.set()
        with self._lock:
            futures = [future for future, _ in self._tasks.values()]
        if futures:
            with suppress(Exception):
                # Workers see it, and end the run that they are in.
                self._cluster.client.cancel(futures, force=True)
        self._ended.put(None)

    def are_gone(self) -> bool:
        """See `elephan.sweep.workers.Workers`."""
        return not self._collector.is_alive() and self._done.empty()

    def close(self) -> None:
        """See `elephan.sweep.workers.Workers`."""
        self._collector.join()

    def _submit(self, jobs: Sequence[Numbered]) -> None:
        points = [
            remote.Point(
                number,
                job.id,
                job.seed,
                canonical_json({**job.spec, "measure": {**job.spec["measure"], "pcap": None}}),
                [(item.path, item.sha256, item.bytes) for item in job.inputs],
            )
            for number, job in jobs
        ]
        self._made += 1
        task: Task = Task(version(), build_digest(), points)
        with self._lock:
            self._jobs.update(jobs)
            future = self._cluster.client.submit(
                remote.run, task, key=f"elephan-{id(self):x}-{points[0].id}-{self._made}", pure=False, retries=0
            )
            self._tasks[str(future.key)] = (future, [point.number for point in points])
        future.add_done_callback(self._ended.put)

    def _collect(self) -> None:
        """Life of the thread that fetches results: the calling thread waits for none of them."""
        while not self._stop.is_set() or self._tasks_left():
            future = self._ended.get()
            if future is None:
                if self._stop.is_set():
                    return
                continue
            with self._lock:
                _, numbers = self._tasks.pop(str(future.key))
            try:
                self._fetch(future, numbers)
            except BaseException as error:  # handed to the caller's thread, which raises it
                # Of a sweep that was stopped, results are dropped while they are fetched.
                self._fail(numbers, None if self._stop.is_set() else error)

    def _tasks_left(self) -> bool:
        with self._lock:
            return bool(self._tasks)

    def _fail(self, numbers: Sequence[int], error: BaseException | None) -> None:
        self._stop.set()
        for number in numbers:
            self._done.put(Message(number, error=error))

    def _fetch(self, future: Future[Any], numbers: list[int]) -> None:
        status = future.status
        if status == "finished":
            answer = future.result()
            future.release()
            self._handle(answer, numbers)
        elif self._stop.is_set():
            for number in numbers:
                self._done.put(Message(number))
        elif status == "error":
            raise self._meaning(future.exception())
        else:
            raise RunError(
                f"--cluster {self._cluster.address}: the scheduler ended or dropped the sweep; "
                "the same command continues from what is stored"
            )

    def _meaning(self, error: BaseException | None) -> BaseException:
        """Return what a task's own error means to the user."""
        kind = type(error).__name__
        if kind == "KilledWorker":
            return RunError(
                f"--cluster {self._cluster.address}: workers died again and again at the same points: "
                f"{str(error).splitlines()[0]}"
            )
        if isinstance(error, ModuleNotFoundError):
            return InputError(
                f"--cluster {self._cluster.address}: a worker has no elephan ({error}): install elephan {version()} "
                f"(core {build_digest()}) there, since records must be the same"
            )
        return error if isinstance(error, BaseException) else RunError(f"a task failed: {error}")

    def _handle(self, answer: remote.Answer, numbers: Sequence[int]) -> None:
        if answer.refused:
            raise self._cluster.refused(answer.worker, answer.refused)
        if answer.lacks:
            self._send(answer.worker, answer.lacks, numbers)
        for done in answer.done:
            self._done.put(self._message(done))
        left = set(numbers) - {done.number for done in answer.done}
        if left and self._stop.is_set():
            for number in left:
                self._done.put(Message(number))
        elif left:
            self._submit([(number, self._jobs[number]) for number in sorted(left)])

    def _message(self, done: Done) -> Message:
        job = self._jobs.pop(done.number)
        if done.error is not None:
            kind, text = done.error
            self._stop.set()
            return Message(done.number, error=(InputError if kind == "InputError" else RunError)(text))
        assert done.record is not None
        record = Record.model_validate_json(done.record)
        record.scenario, record.parameters, record.inputs = job.scenario, job.parameters, job.inputs
        record.spec = {**job.spec, "measure": {**job.spec["measure"], "pcap": None}}
        return Message(done.number, record, SeriesFiles(*done.series), took_s=done.took_s)

    def _send(self, worker: str, digests: Sequence[str], numbers: Sequence[int]) -> None:
        """Send files to a worker that lacks them."""
        places: Mapping[str, str] = {item.sha256: item.path for n in numbers for item in self._jobs[n].inputs}
        for digest in digests:
            with open(user_files.open_regular(places[digest]), "rb") as file:
                content = memoryview(file.read())
            for first in range(0, max(1, len(content)), PART_BYTES):
                part = bytes(content[first : first + PART_BYTES])
                is_last = first + PART_BYTES >= len(content)
                try:
                    found = self._cluster.client.run(
                        remote.take_part, digest, first, part, is_last, workers=[worker], on_error="return"
                    )
                except (OSError, ValueError, KeyError):
                    # It died meanwhile: the points go to another one, which says what it lacks.
                    return
                refused = next((one for one in found.values() if isinstance(one, BaseException)), None)
                if isinstance(refused, ElephanError):
                    raise InputError(f"{places[digest]}: {refused}")
                if isinstance(refused, OSError) and refused.errno is not None:
                    raise RunError(
                        f"--cluster {self._cluster.address}: the worker {worker} cannot keep "
                        f"{places[digest]}: {refused.strerror}"
                    )
                if refused is not None:
                    return
