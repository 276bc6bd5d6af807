"""Figures 4 to 7: the shape of the data flow in slow start and after losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elephan.papers.drawing import framed, label_line, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, megabytes_per_s, part, round_trip_s
from elephan.papers.losses import loss_samples
from elephan.papers.spread import Measured
from elephan.record import Record
from elephan.report.draw import Ink
from elephan.store.series import Series

Floats = npt.NDArray[np.float64]

STEADY_ROUNDS = 12
"""Round trips at the end of a run that count as steady."""


def flow_by_round(record: Record, series: Series) -> Floats:
    """Return the data flow, MB/s, in each round trip from the first delivery on; the last, cut one is left out."""
    time_s = series.flow.column("time_s").to_numpy()
    interval_s = np.diff(time_s, prepend=0.0)
    delivered = series.flow.column("goodput_bps").to_numpy() * interval_s / 8e6
    first = int(np.argmax(delivered > 0))
    # A round lasts the propagation time and the transmission of a segment and its ACK: as the flow's own estimate says.
    srtt = series.flow.column("srtt_s").to_numpy()
    rtt_s = max(round_trip_s(record), float(np.nanmin(srtt)))
    rounds = ((time_s[first:] - time_s[first] + 1e-9) / rtt_s).astype(int)
    sums = np.bincount(rounds, weights=delivered[first:])
    return np.asarray(sums[:-1] / rtt_s, dtype=np.float64)


@part("fig4.toml")
def figure4(results: PaperResults) -> Evaluation:
    """Rise and steady state of three windows."""
    window, capacity, unscaled = results.of("fig4.toml")
    cases = [
        ("8 MB window < 20 MB pipe (RTT 160 ms)", window, 0),
        ("8 MB window > 5 MB pipe (RTT 40 ms)", capacity, 1),
        ("64 KB window, no scaling (RTT 160 ms)", unscaled, 2),
    ]
    flows = {name: flow_by_round(record, results.series(record)) for name, record, _ in cases}
    of_window, of_capacity, of_unscaled = flows.values()
    steady = of_window[-STEADY_ROUNDS:]
    rising = of_window[of_window < 0.45 * steady.mean()]
    measured = {
        "window_limited": float(steady.mean()),
        "capacity_limited": float(of_capacity[-STEADY_ROUNDS:].mean()),
        "unscaled": float(of_unscaled[-STEADY_ROUNDS:].mean()),
        "growth": float((rising[-1] / rising[0]) ** (1 / (len(rising) - 1))),
        "steadiness": float(steady.max() / steady.min()),
    }
    claim = results.paper.claim("dsan.fig4")
    limits = [claim.paper_value(name) for name in ("window_limited", "capacity_limited", "unscaled")]

    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2)
        framed(left, ink, "time, s", "data flow, MB/s per round trip")
        framed(right, ink, "round trips", "the same, logarithmic")
        right.set_yscale("log")
        for (name, record, colour), limit in zip(cases, limits, strict=True):
            flow = flows[name]
            rounds = np.arange(len(flow))
            left.step(
                rounds * round_trip_s(record), flow, where="post", color=ink.curve(colour), linewidth=1.6, label=name
            )
            right.plot(rounds[:26], flow[:26], "o-", markersize=3, color=ink.curve(colour), linewidth=1.3)
            for axes in (left, right):
                label = "min(window / RTT, line), the rule in the paper's text"
                axes.axhline(limit, color=ink.text, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1, label=label)
        left.set_xlim(0, 4.2)
        left.set_ylim(0, 132)
        right.set_xlim(-0.5, 25)
        right.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        legend(drawing, ink, left, columns=2)

    figure = Figure(
        "fig4",
        "dsan.fig4",
        "Figure 4: data flow with slow start",
        "Left as in the paper: an exponential rise, then constant. Right the same by round trip: a doubling each is a "
        "straight line.",
        draw,
    )
    return Evaluation({"dsan.fig4": measured}, [figure], [])


@dataclass(frozen=True)
class Sawtooth:
    """cwnd over time of one run, and what each loss did to it."""

    time_s: Floats
    cwnd: Floats
    ssthresh: Floats
    """NaN before the first loss."""
    srtt_s: Floats
    changes: tuple[int, ...]
    """Samples at which a loss lowered ssthresh or set it for the first time."""

    @classmethod
    def of(cls, series: Series) -> Sawtooth:
        """Read it off the series of a run with one flow."""
        table = series.flow
        return cls(
            table.column("time_s").to_numpy(),
            table.column("cwnd_packets").to_numpy().astype(np.float64),
            table.column("ssthresh_packets").to_numpy(),
            table.column("srtt_s").to_numpy(),
            loss_samples(series),
        )

    def kept(self) -> float:
        """Return the mean over losses of ssthresh after over cwnd before."""
        return float(np.mean([self.ssthresh[i + 1] / self.cwnd[i - 1] for i in self.changes if i + 1 < len(self.cwnd)]))

    def lowest_after(self, change: int, within_s: float) -> float:
        """Return the lowest cwnd within so many seconds of a loss."""
        end = int(np.searchsorted(self.time_s, self.time_s[change] + within_s))
        return float(self.cwnd[change:end].min())

    def growth_per_round(self) -> float:
        """Return segments per round trip in congestion avoidance: the median over losses of the slope of cwnd."""
        slopes = []
        for i in self.changes:
            top = self.cwnd[i - 1]
            after = np.arange(i, len(self.cwnd))
            # Between a little above the threshold and a little below the ceiling, before the next loss.
            following = [other for other in self.changes if other > i]
            after = after[after < following[0]] if following else after
            inside = after[(self.cwnd[after] > self.ssthresh[after] * 1.02) & (self.cwnd[after] < 0.97 * top)]
            if len(inside) > 10:
                slope = np.polyfit(self.time_s[inside], self.cwnd[inside], 1)[0]
                slopes.append(float(slope * np.median(self.srtt_s[inside])))
        return float(np.median(slopes))


@part("fig5-7.toml")
def figures5to7(results: PaperResults) -> Evaluation:
    """Measure the cost of a loss under three reactions."""
    records = results.of("fig5-7.toml")
    cases = list(zip(("fig5", "fig6", "fig7"), records, (1, 0, 2), strict=True))
    names = {
        "fig5": "5: time-out, slow start from 1 segment",
        "fig6": "6: fast retransmit and recovery, half",
        "fig7": "7: the same, 1/8 reduction",
    }
    teeth = {key: Sawtooth.of(results.series(record)) for key, record, _ in cases}
    goodput = {f"goodput_{key}": megabytes_per_s(record.metrics.get("goodput_bps")) for key, record, _ in cases}
    timeouts = {key: float(record.metrics.get("timeouts") or 0) for key, record, _ in cases}
    slow, half, eighth = (teeth[key] for key in ("fig5", "fig6", "fig7"))
    measured: dict[str, Mapping[str, Measured]] = {
        "dsan.fig5": {
            "restart": max(slow.lowest_after(change, 0.5) for change in slow.changes),
            "threshold": slow.kept(),
            "growth": slow.growth_per_round(),
        },
        "dsan.fig6": {
            "kept": half.kept(),
            "growth": half.growth_per_round(),
            "timeouts": timeouts["fig6"],
            **goodput,
        },
        "dsan.fig7": {"kept": eighth.kept(), "timeouts": timeouts["fig7"], **goodput},
    }

    def draw(drawing: Any, ink: Ink) -> None:
        rows = drawing.subplots(3, 1, sharex=True)
        for axes, (key, record, colour) in zip(rows, cases, strict=True):
            tooth = teeth[key]
            last = key == "fig7"
            framed(axes, ink, "time, s" if last else "", "")
            axes.set_title(names[key], loc="left", color=ink.curve(colour), fontsize=9, pad=4)
            axes.set_title(
                f"mean data flow {goodput[f'goodput_{key}']:.2f} MB/s, time-outs {timeouts[key]:.0f}, sent again "
                f"{record.metrics['retransmitted_segments']:.0f} segments",
                loc="right",
                color=ink.muted,
                fontsize=8,
                pad=4,
            )
            axes.fill_between(tooth.time_s, 0, tooth.cwnd, color=ink.curve(colour), alpha=0.10, linewidth=0)
            axes.plot(tooth.time_s, tooth.cwnd, color=ink.curve(colour), linewidth=1.3)
            axes.plot(tooth.time_s, tooth.ssthresh, color=ink.muted, linewidth=0.9, linestyle=(0, (4, 3)))
            axes.set_ylim(0, 370)
            axes.set_xlim(0, 40)
            axes.set_yticks([0, 171, 342])
        label_line(rows[0], 0.4, 300, "cwnd,\nsegments", ink.muted, fontsize=7.5)
        found = rows[0]
        found.annotate(
            "ssthresh",
            (float(slow.time_s[-1]), float(slow.ssthresh[-1])),
            xytext=(-3, 4),
            textcoords="offset points",
            ha="right",
            va="bottom",
            color=ink.muted,
            fontsize=7.5,
        )

    figure = Figure(
        "fig5-7",
        "dsan.fig7",
        "Figures 5 to 7: data flow under packet loss",
        "The same packets, by number, are lost in all three runs; who sends more meets them earlier. 100 Mbit/s, "
        "RTT 40 ms, window 500 kB = 342 segments, the capacity of the pipe. Dashed: the slow-start threshold.",
        draw,
        (7.4, 5.4),
    )
    return Evaluation(measured, [figure], [])
