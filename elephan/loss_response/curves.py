"""Simulate a congestion control: its window over time after one loss, and its mean window under loss.

Both are runs like any other, over a path on which nothing but the congestion control and the named losses decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elephan.api import jobs_of
from elephan.congestion_control import CongestionControl
from elephan.errors import InputError
from elephan.loss_response.published import RESPONSES, Response
from elephan.report.timeline import Floats, Line, flow_line
from elephan.scenario import Scenario
from elephan.scenario.toml import format_value
from elephan.store.series import values_of
from elephan.sweep.executor import Outcome, execute
from elephan.sweep.progress import NoProgress

OnProgress = Callable[[int, int], None]
"""Called with the numbers of ended and of all runs."""

WINDOW = 500
"""Packets that the window is held to (cwnd_clamp), so that every congestion control meets the loss from the same
height."""

LOST = 40_000
"""Number of the packet that is lost: 4 s into the run for a congestion control that opened its window at once."""

AFTER_LOSS = f"""
[run]
duration = "60s"

[path]
bandwidth = "1Gbit/s"
rtt = "50ms"
loss = {{ packets = [{LOST}] }}

[[flow]]
cwnd_clamp = {WINDOW}

[measure]
series = "10ms"
"""

BEFORE_S = 1.005
"""Part of the run before the loss that is shown, s: a sample each 10 ms, one at 1 s among them."""

STAYS = 0.99
"""Part of the window that may be missing for a moment and still counts as none."""

RTT_S = 0.05
"""Round-trip time of that path, s."""

LOSSES = (1e-2, 1e-3, 1e-4, 1e-5)

PERIODS = 48
"""Losses in a run. The first third of it is left out: until then the window has not settled."""

STEADY = 0.15
"""Part by which the two halves of a measurement may differ. A window that still grows differs by more."""

LINE_PACKETS = 83_333
"""Packets that the line of 10 Gbit/s and 100 ms holds."""

FULL = 0.9
"""Part of that from which the line counts as full: the window beyond it is unknown."""

RESPONSE_RTT_S = 0.1

RESPONSE = """
[run]
duration = "10h"

[path]
bandwidth = "10Gbit/s"
rtt = "100ms"
loss = {{ every = {every} }}

[[flow]]
initial_ssthresh = 10
workload = {{ kind = "bulk", bytes = "{size}B" }}

[measure]
series = "100ms"
"""

SEGMENT_BYTES = 1448
"""Payload of a packet of 1500 bytes with timestamps."""


@dataclass(frozen=True)
class AfterLoss:
    """A window around one loss."""

    time_s: Floats
    """From the loss on; negative before it."""
    window: Floats
    """Packets."""
    before: float
    """Window at the loss, packets."""
    kept: float
    """Least window within four round trips of the loss, packets."""
    back_s: float | None
    """Time until the window was as large as at the loss again; None when it was not within the run."""

    @property
    def sentence(self) -> str:
        """The result in words."""
        share = f"{100 * self.kept / self.before:.0f} %" if self.before else ""
        fell = f"falls from {self.before:.0f} to {self.kept:.0f} packets ({share})"
        stays = self.kept >= STAYS * self.before
        if stays:
            fell = f"stays at {self.before:.0f} packets"
        if self.back_s is None and not stays:
            return f"The window {fell} and is not back within {self.time_s[-1]:.0f} s."
        back_s = self.back_s or 0.0
        after = f" and is back after {back_s:.1f} s ({back_s / RTT_S:.0f} round trips)"
        return f"The window {fell}{'' if stays else after}."


@dataclass(frozen=True)
class ResponseRow:
    """The mean window under one rate of loss."""

    loss: float
    window: float | None
    """Packets delivered per round trip, simulated; None where the line, and not the loss, was the limit."""
    steady: bool
    """True if the two halves of the measurement agree; else the window was still growing or shrinking."""
    published: float | None
    """Packets, by the source's formula; None where there is none."""

    @property
    def fills_line(self) -> bool:
        """Return True if the line, and not the loss, was the limit."""
        return self.window is None


@dataclass(frozen=True)
class Curves:
    """All that is simulated of a congestion control."""

    after_loss: AfterLoss
    response: tuple[ResponseRow, ...]
    settings: tuple[str, ...] = ()
    """Parameters that are not at their default, "reduction=1/2"; published values then do not apply."""

    @property
    def of_what(self) -> str:
        """The parameters of the simulation."""
        return ", ".join(self.settings) or "default parameters"


def simulate(cc: CongestionControl, on_progress: OnProgress | None = None, settings: Sequence[str] = ()) -> Curves:
    """Run a congestion control over both kinds of path: a second or so. `settings` are parameters as "reduction=1/2".

    Raises `InputError` for a parameter that it does not have, or a value that it does not take.
    """
    name = str(Path(cc.path).absolute()) if cc.path else cc.name
    texts = [AFTER_LOSS, *(response_text(loss) for loss in LOSSES)]
    changes = [
        f"flow.congestion_control={format_value(name)}",
        *(f"flow.congestion_control.{setting.strip()}" for setting in settings),
    ]
    jobs = []
    for number, text in enumerate(texts):
        try:
            scenario = Scenario(Path("stack.toml"), text, [*changes, f"name=of-{cc.name}"])
        except InputError as error:
            # The scenario is not the user's; the settings are.
            raise InputError(str(error).replace("--set: flow.flow1.congestion_control.", "--set ")) from error
        (job,) = jobs_of(scenario)
        job.index = number
        jobs.append(job)
    outcomes = execute(jobs, watcher=_Counted(on_progress, len(jobs)) if on_progress else None)
    formula = None if cc.path or settings else RESPONSES.get(cc.name)
    rows = tuple(_response(formula, loss, outcome) for loss, outcome in zip(LOSSES, outcomes[1:], strict=True))
    return Curves(_after_loss(outcomes[0]), rows, tuple(setting.strip() for setting in settings))


def response_text(loss: float) -> str:
    """Return the scenario that measures the mean window under a loss of every 1/loss-th packet."""
    every = round(1 / loss)
    return RESPONSE.format(every=every, size=PERIODS * every * SEGMENT_BYTES)


def _after_loss(outcome: Outcome) -> AfterLoss:
    assert outcome.series is not None, "the scenario takes series"
    dropped = values_of(outcome.series.link, "dropped_packets")
    times = values_of(outcome.series.link, "time_s")
    lost_s = float(times[dropped > 0].min(initial=np.inf))
    return after_loss(flow_line(outcome.series, [0], "cwnd_packets", "sum"), lost_s)


def after_loss(line: Line, lost_s: float) -> AfterLoss:
    """Return the window's values around a loss at `lost_s`; the line is cut soon after it is back."""
    time_s, window = line.time_s - lost_s, line.values
    at = max(0, int(np.searchsorted(time_s, 0.0)) - 1)
    before = float(window[at])
    soon = (time_s > 0) & (time_s <= 4 * RTT_S)
    kept = float(window[soon].min()) if soon.any() else before
    low = at + int(np.argmin(window[at : at + int(soon.sum()) + 1]))
    back = np.flatnonzero(window[low:] >= before)
    back_s = float(time_s[low + back[0]]) if len(back) else None
    end = max(5.0, 1.25 * back_s) if back_s is not None else float(time_s[-1])
    shown = (time_s >= -BEFORE_S) & (time_s <= end)
    return AfterLoss(time_s[shown], window[shown], before, kept, back_s)


def _response(formula: Response | None, loss: float, outcome: Outcome) -> ResponseRow:
    assert outcome.series is not None, "the scenario takes series"
    line = flow_line(outcome.series, [0], "goodput_bps", "sum")
    published = None if formula is None else formula.window(loss, RESPONSE_RTT_S)
    window, steady = mean_window(line.time_s, line.values)
    return ResponseRow(loss, window if window < FULL * LINE_PACKETS else None, steady, published)


def mean_window(time_s: Sequence[float] | Floats, rate_bps: Sequence[float] | Floats) -> tuple[float, bool]:
    """Return the packets per round trip after the first third of the data, and whether both halves agree."""
    times = np.asarray(time_s, dtype=np.float64)
    done = np.concatenate([[0.0], np.cumsum(np.asarray(rate_bps)[1:] * np.diff(times)) / 8])
    first, middle, end = (int(np.searchsorted(done, part * done[-1])) for part in (1 / 3, 2 / 3, 1))

    def mean(start: int, stop: int) -> float:
        if times[stop] <= times[start]:
            return 0.0
        return float((done[stop] - done[start]) / (times[stop] - times[start]) * RESPONSE_RTT_S / SEGMENT_BYTES)

    one, other = mean(first, middle), mean(middle, end)
    return mean(first, end), abs(one - other) <= STEADY * max(one, other)


class _Counted(NoProgress):
    """Reports the number of runs that have ended."""

    def __init__(self, on_progress: OnProgress, total: int) -> None:
        self._tell, self._total, self._done = on_progress, total, 0

    def ended(self, number: int) -> None:
        """See `elephan.sweep.progress.Watcher`."""
        self._done += 1

    def refresh(self) -> None:
        """See `elephan.sweep.progress.Watcher`."""
        self._tell(self._done, self._total)
