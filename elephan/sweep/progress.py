"""Progress of a sweep: bars on a terminal, a line now and then elsewhere, nothing for runs that take less than a
second.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TextIO

from elephan.sweep.sampling import LINE_INTERVAL_S, SILENT_S
from elephan.units import duration, pluralize

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from elephan.backends import Job
    from elephan.sweep.costs import Array, Costs


class Watcher(Protocol):
    """Receives events. `began` and `moved` come from workers, the rest from the calling thread."""

    def expect(self, costs: Costs | None) -> None:
        """Before `start`: what each run will take, as far as that is known."""

    def start(self, total: int) -> None:
        """So many runs."""

    def found(self, number: int) -> None:
        """A job was in the store."""

    def began(self, number: int, job: Job) -> None:
        """A worker took a job."""

    def moved(self, number: int, simulated_ns: int, total_ns: int) -> None:
        """A job got on."""

    def took(self, number: int, seconds: float | None) -> None:
        """A job took so long, now or when it was stored; None when that is not known."""

    def ended(self, number: int) -> None:
        """A job is stored."""

    def refresh(self) -> None:
        """Show."""

    def finish(self) -> None:
        """All is over, or was stopped."""


class NoProgress:
    """Shows nothing."""

    def expect(self, costs: Costs | None) -> None:
        """See `Watcher`."""

    def took(self, number: int, seconds: float | None) -> None:
        """See `Watcher`."""

    def start(self, total: int) -> None:
        """See `Watcher`."""

    def found(self, number: int) -> None:
        """See `Watcher`."""

    def began(self, number: int, job: Job) -> None:
        """See `Watcher`."""

    def moved(self, number: int, simulated_ns: int, total_ns: int) -> None:
        """See `Watcher`."""

    def ended(self, number: int) -> None:
        """See `Watcher`."""

    def refresh(self) -> None:
        """See `Watcher`."""

    def finish(self) -> None:
        """See `Watcher`."""


@dataclass(frozen=True)
class _Running:
    """Progress of a run, in its own time."""

    title: str
    done: str
    """Participle for its time, such as "simulated"."""
    connections: int = 1
    now_ns: int = 0
    total_ns: int = 0
    """0 until it moves."""
    began_s: float = 0.0
    set_up_s: float = 0.0
    """Time until it moved, s."""

    @property
    def share(self) -> float:
        """Part of it, 0 to 1."""
        return min(1.0, self.now_ns / self.total_ns) if self.total_ns else 0.0

    @property
    def stage(self) -> str:
        """Set-up or end in words, since their length is unknown. "" while the run moves in its own time."""
        if not self.total_ns:
            return f"setting up {pluralize(self.connections, 'connection')}"
        return "putting its record together" if self.now_ns == self.total_ns else ""

    def text(self) -> str:
        """Return it in words."""
        if self.stage:
            return self.stage
        if self.now_ns > self.total_ns:
            # Beyond its length a run goes on only until its data has arrived; that time is unknown.
            return f"draining, {self.now_ns / 1e9:.1f} s {self.done}"
        return f"{self.now_ns / 1e9:.1f} of {self.total_ns / 1e9:.1f} s {self.done}"


REFIT_S = 2.0
"""Time between two estimates of what each run takes, s."""


class Weights:
    """Parts of a sweep's work: runs weigh what runs of their kind took, not all the same."""

    def __init__(self, costs: Costs) -> None:
        """Know what `costs` knows."""
        self._costs = costs
        self._left_out: set[int] = set()
        self._ended: set[int] = set()
        self._each: Array | None = None
        self._done = self._all = 0.0
        self._fitted_s, self._pause_s = -math.inf, REFIT_S

    def learn(self, number: int, seconds: float) -> None:
        """Take the time of a run."""
        self._costs.learn(number, seconds)

    def leave_out(self, number: int) -> None:
        """A run need not be made."""
        self._left_out.add(number)

    def end(self, number: int) -> None:
        """A run is done."""
        self._ended.add(number)
        if self._each is not None:
            self._done += float(self._each[number])

    def share(self, parts: Mapping[int, float]) -> float | None:
        """Return the done part of the work, with these parts of running runs; None while nothing tells it."""
        now_s = time.monotonic()
        if now_s - self._fitted_s > self._pause_s and self._costs.known:
            self._fitted_s = now_s
            each = self._costs.predicted()
            if each is not None:
                for number in self._ended & self._costs.known.keys():
                    each[number] = self._costs.known[number]
                self._each = each
                self._all = float(each.sum()) - sum(float(each[number]) for number in self._left_out)
                self._done = sum(float(each[number]) for number in self._ended)
            # Of a million runs a fit takes a while: it is to take a twentieth of the time at most.
            self._pause_s = max(REFIT_S, 20 * (time.monotonic() - now_s))
        if self._each is None or self._all <= 0:
            return None
        running = sum(part * float(self._each[number]) for number, part in parts.items())
        return min(1.0, (self._done + running) / self._all)


class Bars:
    """Bars on stderr when it is a terminal, else a line every ten seconds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """`stream` is stderr unless given."""
        self._stream = stream or sys.stderr
        self._lock = threading.Lock()
        self._running: dict[int, _Running] = {}
        self._total = 0
        self._ended = 0
        self._reused = 0
        self._began_s = 0.0
        self._line_s = 0.0
        self._bars: RichProgress | None = None
        self._tasks: dict[int, TaskID] = {}
        self._overall: TaskID | None = None
        self._nobody_looks = False
        self._weights: Weights | None = None
        """Weights of the runs in the share; without, all weigh the same."""

    def start(self, total: int) -> None:
        """See `Watcher`."""
        # A watcher may see several sweeps, one after the other.
        self._total, self._reused, self._ended = total, 0, 0
        self._running.clear()
        self._tasks.clear()
        self._overall = None
        self._began_s = self._line_s = time.monotonic()

    def expect(self, costs: Costs | None) -> None:
        """See `Watcher`."""
        self._weights = None if costs is None else Weights(costs)

    def found(self, number: int) -> None:
        """See `Watcher`."""
        self._reused += 1
        if self._weights is not None:
            self._weights.leave_out(number)

    def took(self, number: int, seconds: float | None) -> None:
        """See `Watcher`."""
        if self._weights is not None and seconds is not None:
            self._weights.learn(number, seconds)

    def began(self, number: int, job: Job) -> None:
        """See `Watcher`."""
        done = "simulated" if job.backend == "sim" else "run"
        with self._lock:
            if self._reused and not self._running and not self._ended:
                # Looking up what is stored is no work that tells what the rest takes.
                self._began_s = time.monotonic()
            connections = len(job.spec.get("flows", []))
            self._running[number] = _Running(title_of(job), done, connections, began_s=time.monotonic())

    def moved(self, number: int, simulated_ns: int, total_ns: int) -> None:
        """See `Watcher`."""
        with self._lock:
            now_s = time.monotonic()
            was = self._running.get(number, _Running("", "", began_s=now_s))
            set_up_s = was.set_up_s if was.total_ns else now_s - was.began_s
            moved = replace(was, now_ns=simulated_ns, total_ns=max(total_ns, 1), set_up_s=set_up_s)
            self._running[number] = moved

    def ended(self, number: int) -> None:
        """See `Watcher`."""
        with self._lock:
            self._running.pop(number, None)
            self._ended += 1
        if self._weights is not None:
            self._weights.end(number)

    def refresh(self) -> None:
        """See `Watcher`."""
        now = time.monotonic()
        if now - self._began_s < SILENT_S or self._nobody_looks:
            return
        with self._as_long_as_somebody_looks():
            if self._stream.isatty():
                self._show_bars()
            elif now - self._line_s >= LINE_INTERVAL_S:
                self._line_s = now
                print(self.line(now), file=self._stream, flush=True)

    def finish(self) -> None:
        """See `Watcher`."""
        if self._bars is not None:
            with self._as_long_as_somebody_looks():
                self._bars.stop()
            self._bars = None

    @contextmanager
    def _as_long_as_somebody_looks(self) -> Iterator[None]:
        """A terminal that was closed, or a pipe whose reader has gone, is no reason to leave runs to themselves."""
        try:
            yield
        except OSError:
            self._nobody_looks = True

    def share(self) -> float:
        """Return the done part of the work, 0 to 1: runs by what they take, running ones by their simulated time."""
        to_run = self._total - self._reused
        with self._lock:
            parts = {number: one.share for number, one in self._running.items()}
        weighed = None if self._weights is None else self._weights.share(parts)
        if weighed is not None:
            return weighed
        return min(1.0, (self._ended + sum(parts.values())) / to_run) if to_run else 1.0

    def line(self, now_s: float) -> str:
        """Return the state as one line."""
        share, runs = self.share(), self._reused + self._ended
        # All of it is done when all runs have ended, and not when the last of them is simulated.
        text = f"{runs} of {pluralize(self._total, 'run')}, {share if runs == self._total else min(0.99, share):.0%}"
        if stages := self._stages():
            return f"{text}, {', '.join(stages)}"
        if 0 < share and runs < self._total:
            # Until a run has ended, its record is taken to cost what its set-up did: both follow its connections.
            with self._lock:
                apart_s = 0.0 if self._ended else max((one.set_up_s for one in self._running.values()), default=0.0)
            left = (now_s - self._began_s - apart_s) * (1 - share) / share + apart_s
            text += f", about {duration(left)} left"
        return text

    def _stages(self) -> list[str]:
        """Return the stages of all running jobs, if they have no known length and no other run tells it."""
        with self._lock:
            running = list(self._running.values())
        stages = list(dict.fromkeys(one.stage for one in running))
        last = self._reused + self._ended + len(running) == self._total
        return stages if all(stages) and (not self._ended or last) else []

    def _show_bars(self) -> None:
        if self._bars is None:
            self._bars = self._make_bars()
        bars = self._bars
        with self._lock:
            running = dict(self._running)
        for number in [number for number in self._tasks if number not in running]:
            bars.remove_task(self._tasks.pop(number))
        for number, one in sorted(running.items()):
            if number not in self._tasks:
                self._tasks[number] = bars.add_task(one.title, total=1.0, of="")
            # A bar without an end: no time left is shown.
            whole = None if one.stage else 1.0
            bars.update(self._tasks[number], completed=one.share, total=whole, of=one.text())
        if self._overall is not None:
            of = f"{self._reused + self._ended} of {pluralize(self._total, 'run')}"
            bars.update(self._overall, completed=self.share(), total=None if self._stages() else 1.0, of=of)

    def _make_bars(self) -> RichProgress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TaskProgressColumn(),
            TextColumn("{task.fields[of]}", style="dim"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=Console(file=self._stream),
            transient=True,
        )
        if self._total > 1:
            self._overall = bars.add_task("all", total=1.0, of="")
        bars.start()
        return bars


def title_of(job: Job) -> str:
    """Return the title of a running job: its number and its congestion controls."""
    congestion_controls = dict.fromkeys(
        flow["transport"]["congestion_control"].rsplit("/", 1)[-1] for flow in job.spec.get("flows", [])
    )
    names = ", ".join(list(congestion_controls)[:3])
    return f"{job.index + 1} {names}".strip()
