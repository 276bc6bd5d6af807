"""The program that runs a backup's jobs when they are due: one thread for each run, until a signal ends it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from elephan.backup.ages import AHEAD_S
from elephan.backup.config import load
from elephan.backup.ledger import Ledger
from elephan.backup.locks import locked
from elephan.backup.running import Runner, Say
from elephan.backup.spec import JobSpec, Spec
from elephan.backup.texts import age, moment, run_line
from elephan.backup.timetable import caught_up, next_due
from elephan.errors import ElephanError, InputError, StoreError
from elephan.printable import one_line
from elephan.signals import termination_requested
from elephan.units import pluralize

TICK_S = 0.5
"""Time between two looks at what is due, s."""
SEND_S = 30.0
"""Time between two sendings to a server, s."""
BUSY_S = 30.0
"""Time until a job is tried again whose run goes on in another process, s."""

WaitForSignal = Callable[[float | None], bool]


class _Stop:
    """Tells the runs' threads to end. Set by the main thread, and not by a signal's handler."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def __call__(self, seconds: float | None, /) -> bool:
        return self._event.wait(seconds)

    def set(self) -> None:
        self._event.set()


@dataclass
class _Thread:
    """A run that goes on."""

    job: JobSpec
    thread: threading.Thread | None = None
    error: BaseException | None = None


@dataclass
class _State:
    """A job between its runs."""

    due_s: float | None
    missed: int = 0
    not_before_s: float = 0.0
    """Monotonic."""
    resumes: bool = False
    said: set[str] = field(default_factory=set)


class Clock:
    """The wall clock against the time since boot, which is never set and includes sleep."""

    def __init__(self) -> None:
        self._offset_s = self._now_s()

    @staticmethod
    def _now_s() -> float:
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def step_s(self) -> float:
        """Return by how much the clock was set since the last call; 0: by no more than clocks are corrected."""
        offset_s = self._now_s()
        step_s = offset_s - self._offset_s
        if abs(step_s) <= AHEAD_S:
            return 0.0
        self._offset_s = offset_s
        return step_s


class Daemon:
    """A backup that runs."""

    def __init__(self, spec: Spec, ledger: Ledger, say: Say) -> None:
        """Go on where the last one stopped."""
        self.spec, self.ledger = spec, ledger
        self._say = say
        self._stop = _Stop()
        self._running: dict[str, _Thread] = {}
        self._states: dict[str, _State] = {}
        self._sent_s = -SEND_S
        self._sending: threading.Thread | None = None
        self._fault: str | None = None
        self._clock = Clock()
        self._ahead: set[float] = set()
        """Due times ahead of the clock that were named."""
        self._take(spec)

    def _take(self, spec: Spec) -> None:
        """Take a file that was read, anew or again."""
        gone = set(self._states) - {job.name for job in spec.jobs}
        self.spec = spec
        for name in gone:
            del self._states[name]
        for job in spec.jobs:
            if job.name in self._running and job.name in self._states:
                continue
            # Before its row is written: that tells if an unfinished run is one of this job still.
            open_run = self.ledger.open_run(job.name)
            self._states[job.name] = _State(self._next_due_s(job), resumes=open_run is not None)

    def _next_due_s(self, job: JobSpec) -> float | None:
        """Return when a job is due next by the store, which also has the runs of other processes."""
        now_s = time.time()
        newest_s = self.ledger.last_due_s(job.name)
        if newest_s is not None and newest_s > now_s + AHEAD_S and newest_s not in self._ahead:
            self._ahead.add(newest_s)
            self._say(
                f"{job.name}: its newest run was due {moment(newest_s)}, {age(newest_s - now_s)} ahead of the clock, "
                "which was set back: the job runs by the present clock"
            )
        return self.ledger.next_due_s(job, now_s)

    def run(self, wait: WaitForSignal, reread: Callable[[], Spec | None] = lambda: None) -> None:
        """Run jobs until `wait` says that a signal came; `reread` gives the file where it was to be read again."""
        jobs = pluralize(len(self.spec.jobs), "job")
        self._say(f"backup {self.spec.name}: {jobs}, store {self.ledger.place.location}")
        try:
            while True:
                spec = reread()
                if spec is not None:
                    self._take(spec)
                    self._say(f"backup {spec.name}: {pluralize(len(spec.jobs), 'job')}, read again")
                self._tick()
                if wait(TICK_S):
                    return
        finally:
            self._end()

    def _tick(self) -> None:
        self._collect()
        step_s = self._clock.step_s()
        if step_s:
            self._say(f"the clock was set {'forward' if step_s > 0 else 'back'} by {age(abs(step_s))}")
            for job in self.spec.jobs:
                if job.name in self._states and job.name not in self._running:
                    self._states[job.name].due_s = self._next_due_s(job)
                    self._states[job.name].said.discard(job.name)
        now_s = time.time()
        for job in self.spec.jobs:
            state = self._states.get(job.name)
            if state is None or job.name in self._running:
                continue
            if self._is_due(state, now_s) and not self._is_full():
                self._start(job, state, now_s)
            elif job.name not in state.said:
                state.said.add(job.name)
                self.ledger.put_job(job, "active", state.due_s)
        if self.ledger.is_served and time.monotonic() - self._sent_s > SEND_S:
            self._send()

    def _is_due(self, state: _State, now_s: float) -> bool:
        if time.monotonic() < state.not_before_s:
            return False
        return state.resumes or (state.due_s is not None and state.due_s <= now_s)

    def _is_full(self) -> bool:
        return self.spec.max_running is not None and len(self._running) >= self.spec.max_running

    def _start(self, job: JobSpec, state: _State, now_s: float) -> None:
        due_s, missed = state.due_s, 0
        if due_s is not None and due_s <= now_s:
            due_s, missed = caught_up(job.schedule, due_s, now_s)
            following = next_due(job.schedule, due_s, now_s)
        else:
            # An unfinished run alone: its due time is over.
            due_s, following = None, due_s
        runner = Runner(self.spec, job, self.ledger, self._stop, self._say)
        one = _Thread(job)

        def work() -> None:
            try:
                resumed = state.resumes
                row = runner.run_open(due_s, missed)
                if row is None:
                    # Another process has made it meanwhile.
                    return
                self._told(job, row)
                if resumed and due_s is not None and row["due"] != due_s and row["ended"] is not None:
                    # It was the unfinished one. The due one follows.
                    self._told(job, runner_of().run(due_s, missed))
            except BaseException as error:  # told by the main thread
                one.error = error

        def runner_of() -> Runner:
            return Runner(self.spec, job, self.ledger, self._stop, self._say)

        # The row tells readers of the job before its run does, and keeps whose run it is.
        if self.ledger.job(job.name) is None or not state.resumes:
            self.ledger.put_job(job, "active", following)
        one.thread = threading.Thread(target=work, name=f"elephan-backup-{job.name}", daemon=True)
        self._running[job.name] = one
        state.due_s = following
        one.thread.start()

    def _told(self, job: JobSpec, row: dict[str, object]) -> None:
        if row["ended"] is not None:
            self._say(run_line(job.name, row))

    def _collect(self) -> None:
        """Take runs that have ended."""
        for name, one in list(self._running.items()):
            assert one.thread is not None, "it was started"
            if one.thread.is_alive():
                continue
            del self._running[name]
            state = self._states.get(name)
            if state is None:
                # Its job is in the file no more.
                self.ledger.put_job(one.job, "ended", None)
                continue
            state.resumes = False
            state.said.clear()
            if one.error is not None and not isinstance(one.error, ElephanError):
                raise one.error
            # From the store: another process may have run the job, and the file may have been read again.
            with suppress(StoreError):
                state.due_s = self._next_due_s(self.spec.job(name) or one.job)
            if one.error is not None:
                self._failed(name, state, one.error)
            self._sent_s = -SEND_S

    def _failed(self, name: str, state: _State, error: BaseException) -> None:
        self._say(f"{name}: {one_line(str(error))}")
        state.not_before_s = time.monotonic() + BUSY_S
        # A run that was begun is still to be done, whoever began it.
        state.resumes = True
        with suppress(StoreError):
            state.resumes = self.ledger.open_run(name) is not None

    def _send(self) -> None:
        """Send rows to the server, in a thread: one that is away takes seconds to find so."""
        if self._sending is not None and self._sending.is_alive():
            return
        self._sent_s = time.monotonic()

        def work() -> None:
            fault = self.ledger.send()
            if fault != self._fault and fault is not None:
                self._say(f"{one_line(fault)}; rows are buffered here until it is reachable again")
            self._fault = fault

        self._sending = threading.Thread(target=work, name="elephan-backup-send", daemon=True)
        self._sending.start()

    def _end(self) -> None:
        """Have the runs end: what is durable stays, and the next start goes on."""
        self._stop.set()
        for one in self._running.values():
            assert one.thread is not None, "it was started"
            one.thread.join()
        for job in self.spec.jobs:
            state = self._states[job.name]
            if job.name in self._running or not state.resumes:
                self.ledger.put_job(job, "ended", state.due_s)
        self.ledger.send()


@contextmanager
def _rereading(file: Path, say: Say) -> Iterator[Callable[[], Spec | None]]:
    """Give what reads the file again after SIGHUP."""
    wanted = [False]

    def note(_: int, __: FrameType | None) -> None:
        wanted[0] = True

    def reread() -> Spec | None:
        if not wanted[0]:
            return None
        wanted[0] = False
        try:
            return load(file)
        except InputError as error:
            say(f"{error}; the jobs keep their previous settings")
            return None

    before = signal.signal(signal.SIGHUP, note)
    try:
        yield reread
    finally:
        signal.signal(signal.SIGHUP, before)


def run(file: Path, store: str, say: Say) -> None:
    """Run a backup's jobs until SIGTERM or Ctrl-C; SIGHUP reads the file again. Raises `InputError`, `StoreError`."""
    spec = load(file)
    ledger = Ledger(store, spec.name)
    try:
        with (
            locked(ledger.place, spec.name),
            termination_requested((signal.SIGINT, signal.SIGTERM)) as wait,
            _rereading(file, say) as reread,
        ):
            Daemon(spec, ledger, say).run(wait, lambda: _same_name(reread(), spec.name, say))
    finally:
        ledger.close()


def _same_name(spec: Spec | None, name: str, say: Say) -> Spec | None:
    if spec is not None and spec.name != name:
        say(f'{spec.file}: name = "{spec.name}": another name is another backup; the jobs keep their previous settings')
        return None
    return spec


def run_once(file: Path, store: str, name: str, say: Say) -> int:
    """Run one job now, for a timer; return the exit code: 0 done, 1 failed or with faults, 130 interrupted.

    Raises `InputError`, `StoreError`.
    """
    spec = load(file)
    job = spec.job(name)
    if job is None:
        raise InputError(f'{file}: no job "{name}"; there is {", ".join(one.name for one in spec.jobs)}')
    ledger = Ledger(store, spec.name)
    try:
        now_s = time.time()
        due_s, missed = ledger.next_due_s(job, now_s), 0
        if due_s is not None and due_s <= now_s:
            due_s, missed = caught_up(job.schedule, due_s, now_s)
        else:
            due_s = None
        if ledger.open_run(job.name) is None:
            ledger.put_job(job, "active", None)
        with termination_requested() as wait:
            row = Runner(spec, job, ledger, wait, say).run(due_s, missed)
        ledger.put_job(job, "active", ledger.next_due_s(job, time.time()))
        say(run_line(job.name, row))
        fault = ledger.send()
        if fault is not None:
            say(f"{one_line(fault)}; rows are buffered here until it is reachable again")
        return {"done": 0, "interrupted": 130}.get(str(row["state"]), 1)
    finally:
        ledger.close()
