"""Figures 11 to 13: an iSCSI flow and an FTP flow on one line, windows over time, over repetitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
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


WANDERING = (0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Persistences of shares that wander without turning: part of its last value that a share keeps from block to block."""

DRAWS = 20_000
"""Of each persistence."""


def autocorrelation(values: Floats) -> Floats:
    """Return r(k) = sum (x_i - m) (x_(i+k) - m) / sum (x_i - m)^2 by k, from 0 to half of the values; 0 for a constant.

    Of several rows of values each has its own.
    """
    off = values - values.mean(axis=-1, keepdims=True)
    power = (off * off).sum(axis=-1)
    count = values.shape[-1]
    sums = [(off[..., : count - k] * off[..., k:]).sum(axis=-1) for k in range(count // 2 + 1)]
    return np.stack([np.where(power > 1e-9, one / np.maximum(power, 1e-9), 0.0) for one in sums], axis=-1)


def alternation_of(shares: Floats) -> Floats:
    """Return the least autocorrelation, with the sign changed: large where each comes to lead after the other."""
    return np.asarray(-autocorrelation(shares).min(axis=-1))


def wandering(persistence: float, blocks: int, draws: int, seed: int) -> Floats:
    """Return draws of a share that wanders without turning, x_t = persistence x_(t-1) + normal, a row each."""
    noise = np.random.default_rng(seed).standard_normal((draws, blocks))
    found = noise.copy()
    found[:, 0] /= (1 - persistence**2) ** 0.5
    for block in range(1, blocks):
        found[:, block] += persistence * found[:, block - 1]
    return found


@cache
def by_chance(blocks: int) -> float:
    """Return the alternation that no wandering share exceeds more often than once in 20 runs.

    It is the largest 95 % quantile over all persistences. A run's own persistence is not used: estimated from 30 blocks
    it comes out too small.
    """
    draws = (alternation_of(wandering(persistence, blocks, DRAWS, seed=1)) for persistence in WANDERING)
    return max(float(np.quantile(one, 0.95)) for one in draws)


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
    def alternation(self) -> float:
        """Alternation of the share (`alternation_of`)."""
        return float(alternation_of(self.shares))

    @property
    def chance(self) -> float:
        """Alternation that a share which only wanders exceeds once in 20 runs (`by_chance`)."""
        return by_chance(len(self.shares))


CongestionControls = Mapping[str, Sequence[Sharing]]
"""Runs by congestion control, one per repetition."""


@part("fig11-13.toml")
def figures11_to_13(results: PaperResults) -> Evaluation:
    """Shares and windows by congestion control."""
    found = sharings(results)
    return Evaluation({CLAIM: shared(found)}, [_figure(found)], [_table(found)])


def numbers(results: PaperResults) -> dict[str, Mapping[str, Measured]]:
    """Return what the runs say of the claim."""
    return {CLAIM: shared(sharings(results))}


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
            f"{cc}_after": [float(one.session[one.time_s > after_s].mean()) for one in runs],
        }
    if "reno" in found:
        early = [one.within(one.both_s[0], LATE_S) for one in found["reno"]]
        late = [one.within(LATE_S, one.both_s[1]) for one in found["reno"]]
        measured |= {"reno_session_early": [own for own, _ in early], "reno_ftp_early": [ftp for _, ftp in early]}
        measured |= {"reno_session_late": [own for own, _ in late], "reno_ftp_late": [ftp for _, ftp in late]}
    if "bic" in found:
        late = [one.within(*LEFT_TO_FTP_S) for one in found["bic"]]
        measured |= {"bic_session_late": [own for own, _ in late], "bic_ftp_late": [ftp for _, ftp in late]}
        measured["chance"] = found["bic"][0].chance
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
        "The first 40 s of FTP are left out. Alternation: the least autocorrelation, sign changed, of iSCSI's part of "
        f"both windows, in means over 10 s. One that only wanders exceeds {chance:.2f} in one run of 20 at most.",
    )
