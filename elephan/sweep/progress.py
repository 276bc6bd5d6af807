"""How far a sweep is: bars on a terminal, a line now and then elsewhere, nothing for what is over in a second."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Protocol, TextIO

from elephan.report.units import duration, things

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from elephan.grounds import Job

SILENT_S = 1.0
"""What takes less shows nothing, s."""

LINE_INTERVAL_S = 10.0
"""Time between two lines where there is no terminal, s."""


class Watcher(Protocol):
    """Told what happens. `began` and `moved` come from workers, the rest from the calling thread."""

    def start(self, total: int, reused: int) -> None:
        """`total` runs, of which `reused` were in the store."""

    def began(self, number: int, job: Job) -> None:
        """A worker took a job."""

    def moved(self, number: int, simulated_ns: int, total_ns: int) -> None:
        """A job got on."""

    def ended(self, number: int) -> None:
        """A job is stored."""

    def refresh(self) -> None:
        """Show."""

    def finish(self) -> None:
        """All is over, or was stopped."""


class NoProgress:
    """Shows nothing."""

    def start(self, total: int, reused: int) -> None:
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


class Bars:
    """Bars on stderr when it is a terminal, else a line every ten seconds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """`stream` is stderr unless given."""
        self._stream = stream or sys.stderr
        self._lock = threading.Lock()
        self._running: dict[int, tuple[str, int, int]] = {}
        self._total = 0
        self._ended = 0
        self._reused = 0
        self._began_s = 0.0
        self._line_s = 0.0
        self._bars: RichProgress | None = None
        self._tasks: dict[int, TaskID] = {}
        self._overall: TaskID | None = None

    def start(self, total: int, reused: int) -> None:
        """See `Watcher`."""
        # A watcher may see several sweeps, one after the other.
        self._total, self._reused, self._ended = total, reused, 0
        self._running.clear()
        self._tasks.clear()
        self._overall = None
        self._began_s = self._line_s = time.monotonic()

    def began(self, number: int, job: Job) -> None:
        """See `Watcher`."""
        with self._lock:
            self._running[number] = (title_of(job), 0, 1)

    def moved(self, number: int, simulated_ns: int, total_ns: int) -> None:
        """See `Watcher`."""
        with self._lock:
            title = self._running.get(number, ("", 0, 1))[0]
            self._running[number] = (title, simulated_ns, max(total_ns, 1))

    def ended(self, number: int) -> None:
        """See `Watcher`."""
        with self._lock:
            self._running.pop(number, None)
            self._ended += 1

    def refresh(self) -> None:
        """See `Watcher`."""
        now = time.monotonic()
        if now - self._began_s < SILENT_S:
            return
        if self._stream.isatty():
            self._show_bars()
        elif now - self._line_s >= LINE_INTERVAL_S:
            self._line_s = now
            print(self.line(now), file=self._stream, flush=True)

    def finish(self) -> None:
        """See `Watcher`."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def share(self) -> float:
        """Return the part done of what had to be run, 0 to 1, running jobs by their simulated time."""
        to_run = self._total - self._reused
        with self._lock:
            parts = sum(min(1.0, simulated / total) for _, simulated, total in self._running.values())
        return min(1.0, (self._ended + parts) / to_run) if to_run else 1.0

    def line(self, now_s: float) -> str:
        """Return the state as one line."""
        share = self.share()
        text = f"{self._reused + self._ended} of {things(self._total, 'run')}, {share:.0%}"
        if share > 0:
            left = (now_s - self._began_s) * (1 - share) / share
            text += f", about {duration(left)} left"
        return text

    def _show_bars(self) -> None:
        if self._bars is None:
            self._bars = self._make_bars()
        bars = self._bars
        with self._lock:
            running = dict(self._running)
        for number in [number for number in self._tasks if number not in running]:
            bars.remove_task(self._tasks.pop(number))
        for number, (title, simulated, total) in sorted(running.items()):
            if number not in self._tasks:
                self._tasks[number] = bars.add_task(title, total=1.0, of="")
            of = f"{simulated / 1e9:.1f} of {total / 1e9:.1f} s simulated"
            if simulated > total:
                # Beyond its length a run goes on only until what was written has arrived; when, nobody knows.
                of = f"draining, {simulated / 1e9:.1f} s simulated"
            bars.update(self._tasks[number], completed=min(1.0, simulated / total), of=of)
        if self._overall is not None:
            of = f"{self._reused + self._ended} of {things(self._total, 'run')}"
            bars.update(self._overall, completed=self.share(), of=of)

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
    """Return what a running job is called: its number and its stacks."""
    stacks = dict.fromkeys(flow["stack"]["congestion"].rsplit("/", 1)[-1] for flow in job.spec.get("flows", []))
    names = ", ".join(list(stacks)[:3])
    return f"{job.index + 1} {names}".strip()
