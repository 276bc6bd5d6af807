"""Figure 10: the four congestion controls under packet loss, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from elephan import units
from elephan.papers.drawing import PAPER_LABEL, framed, legend
from elephan.papers.evaluation import (
    Evaluation,
    Figure,
    PaperResults,
    Table,
    all_over_repetitions,
    kernel_reader,
    megabytes_per_s,
    part,
)
from elephan.record import Record
from elephan.report.draw import Ink
from elephan.report.statistics import Estimate, estimate
from elephan.run_spec.quantities import loss_rate

from . import setups
from .variants import COLOURS, VARIANTS, variant

PAPER_LOSS = 1e-3
"""Loss rate of the paper's numbers, "1 in 1000"."""


def loss_of(record: Record) -> float:
    """Return the loss rate of the way forward."""
    return loss_rate(record.spec["links"][record.spec["flows"][0]["route"][0]]["loss"])


def goodput(records: Sequence[Record]) -> Estimate:
    """Return the mean goodput of repetitions, MB/s, with its interval."""
    found = estimate([megabytes_per_s(record.metrics.get("goodput_bps")) for record in records])
    assert found is not None, "every run has a goodput"
    return found


def mean(records: Sequence[Record], value: Callable[[Record], float]) -> float:
    """Return the mean of something over repetitions."""
    return sum(value(record) for record in records) / len(records)


def sent_again(record: Record) -> float:
    """Return retransmitted segments as a part of all data segments sent."""
    sent = sum(flow["sent_segments"] for flow in record.flows)
    return float(record.metrics["retransmitted_segments"] or 0) / sent if sent else 0.0


def dropped_by_queue(record: Record) -> float:
    """Return packets that the bottleneck's queue dropped per second."""
    drops = sum(link["dropped_by_queue"] for link in record.links)
    return float(drops) / float(record.metrics["simulated_s"] or 1)


def longest_queue_s(record: Record) -> float:
    """Return the longest wait in the bottleneck's queue, s: its most bytes at the line's rate."""
    link = record.spec["flows"][0]["route"][0]
    return float(record.links[link]["queue_max_bytes"]) * 8 / float(record.spec["links"][link]["rate_bps"])


def grouped(records: Sequence[Record]) -> dict[tuple[str, float], list[Record]]:
    """Return repetitions by congestion control and loss rate."""
    groups: dict[tuple[str, float], list[Record]] = {}
    for record in records:
        groups.setdefault((variant(record), loss_of(record)), []).append(record)
    return groups


@kernel_reader("dsan.fig10")
def by_variant(records: Sequence[Record]) -> dict[str, list[float]]:
    """Return the goodput of the four congestion controls at the paper's loss, MB/s, by seed."""
    return all_over_repetitions(
        [record for record in records if loss_of(record) == PAPER_LOSS],
        lambda group: {variant(record): megabytes_per_s(record.metrics.get("goodput_bps")) for record in group},
    )


@part("fig10.toml", "fig10-modern.toml", "fig10-setups.toml", "fig10-queue.toml")
def figure10(results: PaperResults) -> Evaluation:
    """Throughput by loss rate for the paper's set-up and a modern one, the costs, and the set-ups that fit."""
    stated = grouped(results.of("fig10.toml"))
    modern = grouped(results.of("fig10-modern.toml"))
    measured = by_variant(results.of("fig10.toml"))
    near = setups.setups_of(results)
    return Evaluation(
        {"dsan.fig10": measured},
        [
            _by_loss(results, stated, modern),
            _costs(stated, modern),
            setups.fits(results, near),
            setups.by_queue(results),
        ],
        [_cost_table("as the paper states", stated), _cost_table("modern", modern), setups.table(near)],
    )


# Throughput and cost by loss rate


def _by_loss(results: PaperResults, stated: dict[Any, list[Record]], modern: dict[Any, list[Record]]) -> Figure:
    claim = results.paper.claim("dsan.fig10")
    kernel = results.reference("kernel")

    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2, sharey=True)
        for axes, groups, title in (
            (left, stated, "As the paper states: 1 connection, SACK, 1500 B"),
            (right, modern, "Modern: RACK-TLP, PRR, 1500 B"),
        ):
            framed(axes, ink, "loss rate", "")
            axes.set_title(title, loc="left", color=ink.text, fontsize=8.5, pad=6)
            _loss_lines(axes, ink, groups, lambda records: goodput(records))
            axes.set_yscale("log")
            axes.set_ylim(0.3, 160)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} MB/s")
        for name in VARIANTS:
            colour = ink.curve(COLOURS[name])
            _mark(left, PAPER_LOSS, claim.paper_value(name), "D", colour)
            _mark(right, PAPER_LOSS, kernel.median(name), "s", colour)
        for marker, label in (("D", PAPER_LABEL), ("s", f"{kernel.label}, measured")):
            left.scatter(
                [], [], marker=marker, s=40, facecolors="none", edgecolors=ink.text, linewidths=1.4, label=label
            )
        legend(drawing, ink, left, columns=3)

    return Figure(
        "fig10",
        "dsan.fig10",
        "Figure 10: throughput by packet loss",
        "Goodput, RTT 25 ms, 90 % load of 1 Gbit/s, window 8 MB; means of five seeds with 95 % intervals. "
        "What it costs is in the next figure. The squares are a real kernel with the same modifications, one run each.",
        draw,
        (7.4, 4.0),
    )


def _mark(axes: Any, x: float, y: float, marker: str, colour: str) -> None:
    """Draw a number from elsewhere: hollow, in its congestion control's colour."""
    axes.scatter([x], [y], marker=marker, s=52, facecolors="none", edgecolors=colour, linewidths=1.7, zorder=5)


def _loss_lines(
    axes: Any, ink: Ink, groups: dict[Any, list[Record]], value: Callable[[list[Record]], Estimate | float]
) -> None:
    losses = sorted({loss for _, loss in groups})
    positive = [loss for loss in losses if loss > 0]
    # No loss at all has its own place, half a decade left of the least rate, on an axis that is otherwise logarithmic.
    place = {loss: loss if loss > 0 else positive[0] / math.sqrt(10) for loss in losses}
    for name, title in VARIANTS.items():
        found = [(place[loss], value(groups[name, loss])) for loss in losses]
        means = [item.mean if isinstance(item, Estimate) else item for _, item in found]
        spread = [item.half_width or 0.0 if isinstance(item, Estimate) else 0.0 for _, item in found]
        low = [min(half, 0.9 * middle) for half, middle in zip(spread, means, strict=True)]
        axes.errorbar(
            [x for x, _ in found],
            means,
            yerr=[low, spread] if any(spread) else None,
            color=ink.curve(COLOURS[name]),
            marker="o",
            markersize=4,
            linewidth=1.5,
            elinewidth=1.0,
            capsize=2,
            label=title,
        )
    axes.set_xscale("log")
    axes.set_xticks([place[loss] for loss in losses if loss in (0, 1e-5, 1e-4, 1e-3, 1e-2)])
    axes.set_xticklabels([_rate(loss) for loss in losses if loss in (0, 1e-5, 1e-4, 1e-3, 1e-2)])
    axes.minorticks_off()


def _rate(loss: float) -> str:
    return "0" if loss == 0 else f"{loss:.0e}".replace("e-0", "e-")


def _costs(stated: dict[Any, list[Record]], modern: dict[Any, list[Record]]) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        rows = drawing.subplots(2, 2, sharex=True, sharey="row")
        for column, (groups, title) in enumerate(((stated, "As the paper states"), (modern, "Modern"))):
            above, below = rows[0][column], rows[1][column]
            framed(above, ink, "", f"{title}: sent again, % of all segments")
            _loss_lines(above, ink, groups, lambda records: 100 * mean(records, sent_again))
            framed(below, ink, "loss rate", "dropped by the queue, packets/s")
            _loss_lines(below, ink, groups, lambda records: mean(records, dropped_by_queue))
        rows[1][0].set_yscale("symlog", linthresh=1)
        rows[1][0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        worst = max(mean(records, dropped_by_queue) for groups in (stated, modern) for records in groups.values())
        rows[1][0].set_ylim(0, max(3.0 * worst, 10.0))
        rows[0][0].set_ylim(bottom=0)
        legend(drawing, ink, rows[0][0])

    return Figure(
        "fig10-cost",
        "dsan.fig10",
        "Figure 10: what it costs",
        "Segments sent again (the loss rate alone explains as many as its own share), and packets that the queue "
        "before the line dropped: capacity that others on the path would have had. Queue: one bandwidth-delay product.",
        draw,
        (7.4, 4.8),
    )


def _cost_table(title: str, groups: dict[Any, list[Record]]) -> Table:
    rows = []
    for loss in (0.0, 1e-4, PAPER_LOSS):
        for name, label in VARIANTS.items():
            records = groups[name, loss]
            rows.append(
                (
                    f"loss {_rate(loss)}, {label}",
                    f"{goodput(records).mean:.1f}",
                    f"{100 * mean(records, sent_again):.2f} %",
                    f"{mean(records, dropped_by_queue):.0f}",
                    units.duration(mean(records, longest_queue_s)),
                    units.duration(mean(records, lambda record: float(record.metrics["latency_p99_s"] or 0))),
                )
            )
    heads = ("congestion control", "goodput, MB/s", "sent again", "queue drops/s", "longest queue", "frame latency p99")
    return Table(
        "dsan.fig10",
        f"Cost, {title}",
        heads,
        tuple(rows),
        "Means of five seeds, whole runs of 30 s with their slow start; goodput without its first 5 s.",
    )
