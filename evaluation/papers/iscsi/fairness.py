"""Figures 11 to 13: an iSCSI flow and an FTP flow on one line, windows over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.record import Record
from elephan.report.draw import Ink
from elephan.run_spec.quantities import given
from elephan.store.series import Series

from .session import cc_of, title_of

CLAIM = "iscsi.fig11-13"

Floats = npt.NDArray[np.float64]

SETTLED_S = 40.0
"""Time after the FTP flow's start that shares leave out: its slow start, and some of the way to its share."""

LEAD_OVER_S = 10.0
"""Time over which windows are averaged to say which flow has the larger one: a sawtooth of either is shorter."""

AS_FIGURE = "as figures 11 to 13"

FIGURES = {"reno": "11", "htcp": "12", "bic": "13"}
"""The paper's figure of each congestion control."""


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
    def shared(self) -> npt.NDArray[np.bool_]:
        """Samples while both share the line."""
        return (self.time_s > self.both_s[0] + SETTLED_S) & (self.time_s <= self.both_s[1])

    @property
    def means(self) -> tuple[float, float]:
        """Mean windows of session and FTP meanwhile, packets."""
        return float(self.session[self.shared].mean()), float(self.ftp[self.shared].mean())

    @property
    def imbalance(self) -> float:
        """Larger mean window over the smaller one."""
        return max(self.means) / min(self.means)

    @property
    def changes(self) -> int:
        """Return how often the lead changes from one flow to the other."""
        count = max(1, round(LEAD_OVER_S / float(np.median(np.diff(self.time_s)))))
        ahead = (self.session - self.ftp)[self.shared]
        blocks = ahead[: len(ahead) // count * count].reshape(-1, count).mean(axis=1)
        return int(np.count_nonzero(np.diff(np.sign(blocks))))


CHANGES: Mapping[str, str] = {
    "defaults.recovery=newreno": "no SACK",
    "flow.session.workload.source.reads=0": "writes alone",
    "flow.session.workload.queue_depth=4": "4 requests under way",
    "flow.session.workload.source.size=64KiB": "requests of 64 KiB",
    "path.queue=1bdp": "queue of rate x RTT",
    'sweep.flow.*.congestion_control=[{ name = "bic", beta = 0.875, max_increment = 32 }]': (
        "BIC with its authors' constants"
    ),
    'sweep.flow.*.congestion_control=[{ name = "htcp", rtt_scaling = false }]': "H-TCP without RTT scaling",
}
"""Settings of an entry of claims.toml, and their names."""

CongestionControls = Mapping[str, Sharing]


@part("fig11-13.toml")
def figures11_to_13(results: PaperResults) -> Evaluation:
    """Shares and windows by congestion control."""
    found: dict[str, dict[str, Sharing]] = {}
    for record in results.of("fig11-13.toml"):
        item = Sharing.of(record, results.series(record))
        found.setdefault(change_of(record), {})[cc_of(record)] = item
    plain = found[AS_FIGURE]
    htcp = plain["htcp"]
    measured = {"htcp_session": htcp.means[0], "htcp_ftp": htcp.means[1]}
    for cc, item in plain.items():
        measured |= {f"{cc}_imbalance": item.imbalance, f"{cc}_changes": item.changes}
    return Evaluation({CLAIM: measured}, [_figure(plain)], [_table(plain), _changed(found)])


def change_of(record: Record) -> str:
    """Return what was changed for a record, in words."""
    given = record.scenario.overrides
    return ", ".join(CHANGES.get(key, key) for key in given) or AS_FIGURE


def _figure(found: CongestionControls) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        rows = drawing.subplots(len(found), 1, sharex=True, sharey=True)
        for axes, (cc, item) in zip(rows, found.items(), strict=True):
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
        "Congestion windows of the initiator and of the FTP sender, sampled every 0.2 s. 100 Mbit/s, 40 ms, a queue of "
        "50 packets: 383 packets fill line and queue.",
        draw,
        (7.4, 6.0),
    )


def _table(found: CongestionControls) -> Table:
    return Table(
        CLAIM,
        "Mean windows from 100 to 400 s, packets",
        ("congestion control", "iSCSI", "FTP", "larger over smaller", "changes of lead"),
        tuple(
            (
                title_of(cc),
                f"{item.means[0]:.0f}",
                f"{item.means[1]:.0f}",
                f"{item.imbalance:.2f}",
                str(item.changes),
            )
            for cc, item in found.items()
        ),
        "The first 40 s of FTP are left out. Lead: the larger window in the mean over 10 s.",
    )


def _changed(found: Mapping[str, CongestionControls]) -> Table:
    return Table(
        CLAIM,
        "One assumption changed: mean windows of iSCSI and FTP, packets",
        ("changed", *(title_of(cc) for cc in FIGURES)),
        tuple(
            (
                change,
                *(f"{items[s].means[0]:.0f} and {items[s].means[1]:.0f}" if s in items else "" for s in FIGURES),
            )
            for change, items in found.items()
        ),
    )
