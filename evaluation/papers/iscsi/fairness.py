"""Figures 11 to 13: an iSCSI flow and an FTP flow on one line, windows over time, over repetitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part, repetitions
from elephan.papers.spread import Measured, Spread
from elephan.record import Record
from elephan.report.draw import Ink
from elephan.run_spec.quantities import given
from elephan.store.series import Series

from .connections import in_form
from .session import cc_of, title_of

CLAIM = "iscsi.fig11-13"

Floats = npt.NDArray[np.float64]

SETTLED_S = 40.0
"""Time after the FTP flow's start that shares leave out: its slow start, and some of the way to its share."""

BLOCK_S = 10.0
"""Time over which windows are averaged to say who has more: longer than a sawtooth of either (5 s for 100 segments)."""

LATE_S = 200.0
"""Time from which the paper's FTP flow has more than its session under Reno."""

LEFT_TO_FTP_S = (275.0, 400.0)
"""Time in which the paper's FTP flow has most of the line under BIC."""

AFTER_S = 20.0
"""Time after the FTP flow's end that the session has to take the line."""

FIGURES = {"reno": "11", "htcp": "12", "bic": "13"}
"""The paper's figure of each congestion control."""


def autocorrelation(values: Floats) -> Floats:
    """Return r(k) = sum (x_i - m) (x_(i+k) - m) / sum (x_i - m)^2, k from 0 to half of the values; 0 for a constant."""
    off = values - values.mean()
    power = float(off @ off)
    lags = range(len(values) // 2 + 1)
    return np.array([float(off[: len(off) - k] @ off[k:]) / power if power > 1e-9 else 0.0 for k in lags])


@dataclass(frozen=True)
class Sharing:
    """Windows of the two flows."""

    record: Record
    time_s: Floats
    session: Floats
    """cwnd of the session's initiator, packets."""
    ftp: Floats
    """The same of the FTP sender; NaN before its start."""
    both_s: tuple[float, float]
    """Begin and end of the time in which both are there."""

    @classmethod
    def of(cls, record: Record, series: Series) -> Sharing:
        """Read them off the series of a run."""
        table = series.flow
        which = table.column("flow").to_numpy()
        kinds = [flow["workload"]["kind"] for flow in record.spec["flows"]]
        session, ftp = kinds.index("iscsi"), kinds.index("bulk")
        cwnd = table.column("cwnd_packets").to_numpy().astype(np.float64)
        time_s = table.column("time_s").to_numpy().astype(np.float64)
        # A flow has samples from its start on.
        beside = np.full(np.count_nonzero(which == session), np.nan)
        beside[np.searchsorted(time_s[which == session], time_s[which == ftp])] = cwnd[which == ftp]
        spec = record.spec["flows"][ftp]
        both_s = (spec["start_ns"] / 1e9, given(spec["stop_ns"]) / 1e9)
        return cls(record, time_s[which == session], cwnd[which == session], beside, both_s)

    @property
    def shared_s(self) -> tuple[float, float]:
        """Begin and end of the time that is judged."""
        return self.both_s[0] + SETTLED_S, self.both_s[1]

    def within(self, begin_s: float, end_s: float) -> tuple[float, float]:
        """Return the mean windows of session and FTP in a part of the run, packets."""
        there = (self.time_s > begin_s) & (self.time_s <= end_s)
        return float(self.session[there].mean()), float(self.ftp[there].mean())

    @property
    def means(self) -> tuple[float, float]:
        """Mean windows of session and FTP while both share the line, packets."""
        return self.within(*self.shared_s)

    @property
    def imbalance(self) -> float:
        """Larger mean window over the smaller one."""
        return max(self.means) / min(self.means)

    @cached_property
    def shares(self) -> Floats:
        """The session's part of both windows, in the mean over each block of time."""
        there = (self.time_s > self.shared_s[0]) & (self.time_s <= self.shared_s[1])
        count = max(1, round(BLOCK_S / float(np.median(np.diff(self.time_s)))))
        share = (self.session / (self.session + self.ftp))[there]
        return np.asarray(share[: len(share) // count * count].reshape(-1, count).mean(axis=1))

    @property
    def changes(self) -> int:
        """Return how often the lead changes from one flow to the other."""
        return int(np.count_nonzero(np.diff(np.sign(self.shares - 0.5))))

    @property
    def persistence(self) -> float:
        """Autocorrelation of the share at a lag of one block: near 1 where a share lasts, near 0 where it is chance."""
        return float(autocorrelation(self.shares)[1])

    @property
    def alternation(self) -> float:
        """Least autocorrelation of the share, with the sign changed: large where each comes to lead after the other."""
        return -float(autocorrelation(self.shares).min())

    @property
    def chance(self) -> float:
        """1.96 / sqrt(n): the autocorrelation that n independent blocks exceed once in 20 times (Bartlett 1946)."""
        return 1.96 / math.sqrt(len(self.shares))


CongestionControls = Mapping[str, Sequence[Sharing]]
"""Runs by congestion control, one per repetition."""


@part("fig11-13.toml")
def figures11_to_13(results: PaperResults) -> Evaluation:
    """Shares and windows by congestion control."""
    found = sharings(results)
    return Evaluation({CLAIM: shared(found)}, [_figure(found)], [_table(found)])


def sharings(results: PaperResults) -> dict[str, list[Sharing]]:
    """Return the runs by congestion control, a run per seed."""
    found: dict[str, list[Sharing]] = {}
    for group in repetitions(results.of("fig11-13.toml")):
        for record in group:
            found.setdefault(cc_of(record), []).append(Sharing.of(record, results.series(record)))
    return found


def shared(found: CongestionControls) -> dict[str, Measured]:
    """Return the quantities of the claim."""
    measured: dict[str, Measured] = {}
    for cc, runs in found.items():
        after_s = runs[0].both_s[1] + AFTER_S
        measured |= {
            f"{cc}_session": [one.means[0] for one in runs],
            f"{cc}_ftp": [one.means[1] for one in runs],
            f"{cc}_imbalance": [one.imbalance for one in runs],
            f"{cc}_alternation": [one.alternation for one in runs],
            f"{cc}_persistence": [one.persistence for one in runs],
            f"{cc}_after": [float(one.session[one.time_s > after_s].mean()) for one in runs],
        }
    if "reno" in found:
        late = [one.within(LATE_S, one.both_s[1]) for one in found["reno"]]
        measured |= {"reno_session_late": [own for own, _ in late], "reno_ftp_late": [ftp for _, ftp in late]}
        measured["chance"] = found["reno"][0].chance
    if "bic" in found:
        measured["bic_session_late"] = [one.within(*LEFT_TO_FTP_S)[0] for one in found["bic"]]
    return measured


def _figure(found: CongestionControls) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        rows = drawing.subplots(len(found), 1, sharex=True, sharey=True)
        for axes, (cc, runs) in zip(rows, found.items(), strict=True):
            # The run in the middle of the five stands for them.
            item = sorted(runs, key=lambda one: one.means[0] / one.means[1])[len(runs) // 2]
            framed(
                axes,
                ink,
                "s" if axes is rows[-1] else "",
                f"{title_of(cc)} (figure {FIGURES[cc]}): cwnd, packets",
            )
            axes.plot(item.time_s, item.session, color=ink.curve(0), linewidth=0.7, label="iSCSI")
            there = item.time_s <= item.both_s[1]
            axes.plot(item.time_s[there], item.ftp[there], color=ink.curve(1), linewidth=0.7, label="FTP, 60 to 400 s")
            axes.set_ylim(0, 420)
            axes.set_xlim(0, 600)
        legend(drawing, ink, rows[0])

    return Figure(
        "fig11-13",
        CLAIM,
        "Figures 11 to 13: an iSCSI flow and an FTP flow",
        "Congestion windows of the initiator and of the FTP sender, sampled every 0.2 s; of five seeds that with the "
        "median ratio. 100 Mbit/s, 40 ms, a queue of 50 packets: 383 packets fill line and queue. A window that is not "
        "validated may be larger than what is sent.",
        draw,
        (7.4, 6.0),
    )


COLUMNS: Mapping[str, tuple[str, Callable[[Sharing], float]]] = {
    "iSCSI": ("{:.0f}", lambda one: one.means[0]),
    "FTP": ("{:.0f}", lambda one: one.means[1]),
    "larger over smaller": ("{:.2f}", lambda one: one.imbalance),
    "changes of lead": ("{:.0f}", lambda one: one.changes),
    "alternation": ("{:.2f}", lambda one: one.alternation),
    "persistence": ("{:.2f}", lambda one: one.persistence),
}


def _table(found: CongestionControls) -> Table:
    rows = tuple(
        (title_of(cc), *(in_form(Spread(tuple(read(one) for one in runs)), form) for form, read in COLUMNS.values()))
        for cc, runs in found.items()
    )
    chance = next(iter(found.values()))[0].chance
    return Table(
        CLAIM,
        "Mean windows from 100 to 400 s, packets; median (least to most) of five seeds",
        ("congestion control", *COLUMNS),
        rows,
        "The first 40 s of FTP are left out. Share: iSCSI's window over both, in the mean over 10 s. Alternation: its "
        f"least autocorrelation, sign changed; persistence: that at 10 s. Chance alone gives {chance:.2f}, once in 20.",
    )
