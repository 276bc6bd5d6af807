"""Figure 10: how fast HSTCP and NewReno are back after two seconds of UDP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, line_bps, part, path_packets
from elephan.record import Record
from elephan.report.draw import Ink
from elephan.run_spec.quantities import limit_bytes

from .recovery import Line, Pair, cc_of

CLAIM = "tenge.fig10"

TIMES = 9
""""More than 9 times faster"."""

RTT_S = 0.017
"""Of the line between Amsterdam and Geneva, s."""

CCS = {"reno": ("NewReno", 0), "highspeed": ("HSTCP", 1)}
"""Title and colour."""

SHOWN_OVER_S = 0.2
"""Time over which the curves of the figure are averaged, s."""


def mtu_of(record: Record) -> int:
    """Return the size of a flow's packets, B."""
    return int(record.spec["flows"][0]["transport"]["mtu_bytes"])


def burst_share(record: Record) -> float:
    """Return the rate of the burst as a part of the line."""
    last = record.spec["flows"][0]["route"][-1]
    return float(record.spec["background"][0]["rate_bps"]) / float(record.spec["links"][last]["rate_bps"])


def queue_share(record: Record) -> float:
    """Return the line's queue as a part of rate x RTT."""
    flow = record.spec["flows"][0]
    link = record.spec["links"][flow["route"][-1]]
    rtt_s: float = sum(record.spec["links"][i]["delay_ns"] for i in (*flow["route"], *flow["return_route"])) / 1e9
    return float(limit_bytes(link["queue"])) * 8 / (float(link["rate_bps"]) * rtt_s)


def grouped(records: Sequence[Record], key: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    """Return records by key, in the order of the file."""
    groups: dict[Any, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


@part("fig10.toml", "fig10-hosts.toml")
def figure10(results: PaperResults) -> Evaluation:
    """Recovery times in the grid, by the burst, and with the paper's hosts."""
    grid = grouped(results.of("fig10.toml"), lambda record: (line_bps(record), mtu_of(record)))
    bursts = grouped(results.of("fig10-burst.toml"), burst_share)
    hosts = grouped(results.of("fig10-hosts.toml"), queue_share)
    by_grid = {key: Pair.of(results, records) for key, records in grid.items()}
    by_burst = {key: Pair.of(results, records) for key, records in bursts.items()}
    by_queue = {key: Pair.of(results, records) for key, records in hosts.items()}
    measured = {}
    for (rate, mtu), pair in by_grid.items():
        measured[f"reno_{rate // 10**9}g_{mtu}"] = pair.reno.mean
        measured[f"highspeed_{rate // 10**9}g_{mtu}_times_9"] = TIMES * pair.highspeed.mean
    # The queue is not in the paper: the mean over those that were tried.
    measured["reno_hosts"] = float(np.mean([pair.reno.mean for pair in by_queue.values()]))
    measured["highspeed_hosts_times_9"] = TIMES * float(np.mean([pair.highspeed.mean for pair in by_queue.values()]))
    return Evaluation(
        {CLAIM: measured},
        [_curves(results, grid, by_grid), _ratios(by_grid, by_burst)],
        [_grid_table(by_grid), _burst_table(by_burst), _hosts_table(by_queue)],
    )


def _title(rate: int, mtu: int) -> str:
    return f"{rate / 1e9:g} Gbit/s, {mtu} B"


def _curves(results: PaperResults, grid: dict[Any, list[Record]], pairs: dict[Any, Pair]) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        rows = drawing.subplots(2, 2)
        for axes, ((rate, mtu), records) in zip(rows.flat, grid.items(), strict=True):
            framed(axes, ink, "s after the burst" if axes in rows[1] else "", "")
            ratio = pairs[rate, mtu].ratio
            axes.set_title(
                f"{_title(rate, mtu)}: HSTCP {ratio:.0f} times faster",
                loc="left",
                color=ink.text,
                fontsize=8.5,
                pad=5,
            )
            for name, (title, colour) in CCS.items():
                record = next(item for item in records if cc_of(item) == name)
                line = Line.of(record, results.series(record))
                time_s, share = _smooth(line)
                axes.plot(time_s, share, color=ink.curve(colour), linewidth=1.4, label=title)
            end = 1.08 * pairs[rate, mtu].reno.mean
            axes.axvspan(-2, 0, color=ink.muted, alpha=0.14, linewidth=0, label="burst: the line carries both")
            axes.axhline(95, color=ink.muted, linewidth=0.9, linestyle=(0, (1, 2)), label="95 %")
            axes.set_xlim(max(-0.12 * end, -4) if end > 20 else -3, end)
            axes.set_ylim(0, 106)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        legend(drawing, ink, rows[0][0])

    return Figure(
        "fig10",
        CLAIM,
        "Figure 10: load of the line after two seconds of UDP",
        "In percent of what the line carried before, first seed, means over 0.2 s; in the shaded burst the load of "
        "both. RTT 17 ms, burst 41.3 % of the line, queue a tenth of rate x RTT. The scales of time differ.",
        draw,
        (7.4, 4.6),
    )


def _smooth(line: Line) -> tuple[Any, Any]:
    count = max(1, round(SHOWN_OVER_S / line.interval_s))
    whole = len(line.rate_bps) // count * count
    share = 100 * line.rate_bps[:whole].reshape(-1, count).mean(axis=1) / line.before_bps
    middle = line.time_s[:whole].reshape(-1, count).mean(axis=1) - line.interval_s / 2
    return middle - line.burst_s[1], share


def _ratios(by_grid: dict[Any, Pair], by_burst: dict[Any, Pair]) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2, sharey=True)
        framed(left, ink, "rate x RTT, packets", "NewReno's time over HSTCP's")
        framed(right, ink, "burst, % of the line (10 Gbit/s, 9000 B)", "")
        points = sorted(
            (path_packets(rate, RTT_S, mtu), pair.ratio, mtu, rate) for (rate, mtu), pair in by_grid.items()
        )
        left.plot([x for x, *_ in points], [y for _, y, *_ in points], "o-", color=ink.curve(2), markersize=5)
        left.set_xscale("log")
        left.set_xlim(120, 40000)
        for x, y, mtu, rate in points:
            left.annotate(
                _title(rate, mtu),
                (x, y),
                xytext=(7, -3) if x < 1e4 else (-7, -3),
                textcoords="offset points",
                ha="left" if x < 1e4 else "right",
                color=ink.muted,
                fontsize=7.5,
            )
        shares = [100 * share for share in by_burst]
        right.plot(shares, [pair.ratio for pair in by_burst.values()], "o-", color=ink.curve(2), markersize=5)
        right.set_xlim(10, 105)
        for axes in (left, right):
            axes.axhline(TIMES, color=ink.text, linewidth=0.9, linestyle=(0, (4, 3)), label="the paper: more than 9")
            axes.set_yscale("log")
            axes.set_ylim(2, 120)
            axes.set_yticks([2, 5, 9, 20, 50, 100])
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        legend(drawing, ink, left)

    return Figure(
        "fig10-ratio",
        CLAIM,
        "How many times faster HSTCP is back",
        "By the window that fills the path, and by the burst: one that takes the whole line leaves both with a window "
        "so small that HSTCP is NewReno for the first part of its way.",
        draw,
        (7.4, 3.4),
    )


def _row(name: str, pair: Pair) -> tuple[str, ...]:
    return (name, pair.reno.text, pair.highspeed.text, f"{pair.ratio:.1f}")


def _grid_table(pairs: dict[Any, Pair]) -> Table:
    return Table(
        CLAIM,
        "Until the line carries 95 % again, from the end of the burst",
        ("line", "NewReno", "HSTCP", "ratio"),
        tuple(_row(_title(rate, mtu), pair) for (rate, mtu), pair in pairs.items()),
        "Means of three seeds (and their range). Measured over 100 ms, in steps of 20 ms.",
    )


def _burst_table(pairs: dict[Any, Pair]) -> Table:
    return Table(
        CLAIM,
        "By the rate of the burst: 10 Gbit/s, 9000 B",
        ("burst, of the line", "NewReno", "HSTCP", "ratio"),
        tuple(_row(f"{share:.0%}", pair) for share, pair in pairs.items()),
    )


def _hosts_table(pairs: dict[Any, Pair]) -> Table:
    return Table(
        CLAIM,
        "With the paper's hosts, by the switch's queue",
        ("queue, rate x RTT", "NewReno", "HSTCP", "ratio"),
        tuple(_row(f"{share:.2f}", pair) for share, pair in pairs.items()),
        "Sender limited to 5.447 Gbit/s, window 16 MB, 4.13 Gbit/s of UDP, 9.29 Gbit/s of line.",
    )
