"""Progress of the check of a scenario's points when it is read: the number of its runs is said first if it is very
large.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from elephan.units import duration

if TYPE_CHECKING:
    from rich.progress import Progress

    from elephan.scenario import Scenario

SAID_FROM = 1_000
"""Runs above which their number is printed at once."""

SILENT_S = 1.0
"""Least time of a check that is shown, s."""

LINE_INTERVAL_S = 10.0
"""Time between two lines where there is no terminal, s."""


class Looking:
    """A bar on stderr when it is a terminal, else a line every ten seconds."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """`stream` is stderr unless given."""
        self._stream = stream or sys.stderr
        self._began_s = self._line_s = 0.0
        self._bar: Progress | None = None

    def looking(self, scenario: Scenario, number: int) -> None:
        """Point `number` of those to check is next; the scenario's runs are counted."""
        total, now = len(scenario.looked_at), time.monotonic()
        # A terminal that was closed is no reason to stop.
        with suppress(OSError):
            if number == 0:
                self._began_s = self._line_s = now
                if scenario.runs.count > SAID_FROM:
                    print(swept(scenario), file=self._stream, flush=True)
            elif now - self._began_s < SILENT_S:
                return
            elif self._stream.isatty():
                bar = self._bar = self._bar or self._made(total)
                bar.update(bar.task_ids[0], completed=number)
            elif now - self._line_s >= LINE_INTERVAL_S:
                self._line_s = now
                left = (now - self._began_s) * (total - number) / number
                text = f"looking at points: {number} of {total}, about {duration(left)} left"
                print(text, file=self._stream, flush=True)

    def finish(self) -> None:
        """All are checked, or one is wrong."""
        if self._bar is not None:
            with suppress(OSError):
                self._bar.stop()
        self._bar = None

    def _made(self, total: int) -> Progress:
        from rich.console import Console
        from rich.progress import Progress

        bar = Progress(console=Console(file=self._stream), transient=True)
        bar.add_task("looking at points", total=total)
        bar.start()
        return bar


def swept(scenario: Scenario) -> str:
    """Return how many runs a scenario has, and over which keys."""
    axes = ", ".join(f"{axis.key} ({len(axis.values)})" for axis in scenario.axes)
    count = scenario.runs.count
    return f"{count:,} run{'' if count == 1 else 's'}" + (f" over {axes}" if axes else "")
