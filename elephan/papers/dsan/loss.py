"""Figure 10: the four stacks under packet loss, what they cost, and which set-ups fit the paper's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from elephan.papers.drawing import framed, label_line, legend, mark_paper
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, megabytes_per_s, part
from elephan.record import Record
from elephan.report import units
from elephan.report.draw import Ink
from elephan.report.statistics import Estimate, estimate

PAPER_LOSS = 1e-3
"""Loss rate of the paper's numbers, "1 in 1000"."""

VARIANTS = {
    "standard": "standard",
    "avoidance_off": "congestion avoidance off",
    "eighth": "1/8 reduction",
    "both": "both",
}
"""The four stacks by the key of their quantity in claims.toml, in the paper's order of throughput."""

COLOURS = {name: index for index, name in enumerate(VARIANTS)}


def variant(record: Record) -> str:
    """Return which of the four stacks a record is of."""
    parameters = record.spec["flows"][0]["stack"]["parameters"]
    return {
        (500_000, 1): "standard",
        (500_000, 0): "avoidance_off",
        (125_000, 1): "eighth",
        (125_000, 0): "both",
    }[(parameters["reduction"], parameters["congestion_avoidance"])]


def loss_of(record: Record) -> float:
    """Return the loss rate of the way forward."""
    loss = record.spec["links"][record.spec["flows"][0]["route"][0]]["loss"]
    return float(loss.get("probability_e12", 0)) / 1e12


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


def queue_mean(record: Record) -> float:
    """Return the mean queue of the bottleneck, packets; NaN where it was not measured."""
    value = record.metrics.get("queue_mean_packets")
    return float("nan") if value is None else float(value)


def grouped(records: Sequence[Record]) -> dict[tuple[str, float], list[Record]]:
    """Return repetitions by stack and loss rate."""
    groups: dict[tuple[str, float], list[Record]] = {}
    for record in records:
        groups.setdefault((variant(record), loss_of(record)), []).append(record)
    return groups


@part("fig10.toml", "fig10-modern.toml", "fig10-setups.toml")
def figure10(results: PaperResults) -> Evaluation:
    """Throughput by loss rate for the paper's set-up and a modern one, the costs, and the set-ups that fit."""
    stated = grouped(results.of("fig10.toml"))
    modern = grouped(results.of("fig10-modern.toml"))
    measured = {name: goodput(stated[name, PAPER_LOSS]).mean for name in VARIANTS}
    setups = sorted(setups_of(results), key=lambda setup: setup.distance)
    return Evaluation(
        {"dsan.fig10": measured},
        [_by_loss(results, stated, modern), _costs(stated, modern), _fits(results, setups)],
        [*(_cost_table(*item) for item in (("as the paper states", stated), ("modern", modern))), _setup_table(setups)],
    )


# Throughput and cost by loss rate


def _by_loss(results: PaperResults, stated: dict[Any, list[Record]], modern: dict[Any, list[Record]]) -> Figure:
    claim = results.paper.claim("dsan.fig10")
    kernel = results.paper.reference("kernel")

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
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        _spread_marks(left, ink, [claim.paper_value(name) for name in VARIANTS])
        label_line(left, 1.25e-3, 62, "the paper's four,\nat 1e-3", ink.text, fontsize=7.5)
        right.scatter(
            [PAPER_LOSS] * 4,
            [kernel.value[name] for name in VARIANTS],
            marker="s",
            s=34,
            facecolors="none",
            edgecolors=ink.text,
            linewidths=1.3,
            zorder=5,
            label="Linux 6.18 kernel, measured",
        )
        left.text(0.02, 0.03, "MB/s", transform=left.transAxes, color=ink.muted, fontsize=8)
        legend(drawing, ink, left, right, columns=6)

    return Figure(
        "fig10",
        "dsan.fig10",
        "Figure 10: throughput by packet loss",
        "Goodput in MB/s, RTT 25 ms, 90 % load of 1 Gbit/s, window 8 MB; means of three seeds with 95 % intervals. "
        "What it costs is in the next figure. The squares are a real kernel with the same modifications, one run each.",
        draw,
        (7.4, 4.0),
    )


def _spread_marks(axes: Any, ink: Ink, values: Sequence[float]) -> None:
    mark_paper(axes, ink, [PAPER_LOSS] * len(values), values)


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
        rows[1][0].set_ylim(bottom=0)
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
                    units.count(mean(records, queue_mean)),
                    units.duration(mean(records, lambda record: float(record.metrics["latency_p99_s"] or 0))),
                )
            )
    heads = ("stack", "goodput, MB/s", "sent again", "queue drops/s", "queue mean", "frame latency p99")
    return Table("dsan.fig10", f"Cost, {title}", heads, tuple(rows), "Means of three seeds, 60 s each.")


# Which set-ups fit


@dataclass(frozen=True)
class Setup:
    """A set-up that the paper could have had, and what the four stacks give in it, MB/s."""

    recovery: str
    mtu_bytes: int
    connections: int
    values: dict[str, float]
    paper: dict[str, float]

    @property
    def distance(self) -> float:
        """Mean factor between ours and the paper's over the four stacks, as a logarithm; 0 = equal."""
        return sum(abs(math.log(self.values[name] / self.paper[name])) for name in VARIANTS) / len(VARIANTS)

    @property
    def in_order(self) -> bool:
        """Whether the four are in the paper's order."""
        values = [self.values[name] for name in VARIANTS]
        return all(left < right for left, right in zip(values, values[1:], strict=False))

    @property
    def label(self) -> str:
        """What it is called."""
        connections = "1 connection" if self.connections == 1 else f"{self.connections} connections"
        return f"{self.recovery}, {self.mtu_bytes} B, {connections}"


def setups_of(results: PaperResults) -> list[Setup]:
    """Return every set-up of fig10-setups.toml."""
    claim = results.paper.claim("dsan.fig10")
    paper = {name: claim.paper_value(name) for name in VARIANTS}
    found: dict[tuple[str, int, int], dict[str, float]] = {}
    for record in results.of("fig10-setups.toml"):
        stack = record.spec["flows"][0]["stack"]
        key = (stack["recovery"], stack["mtu_bytes"], len(record.flows))
        found.setdefault(key, {})[variant(record)] = megabytes_per_s(record.metrics.get("goodput_bps"))
    return [Setup(*key, values, paper) for key, values in found.items()]


def _fits(results: PaperResults, setups: Sequence[Setup]) -> Figure:
    claim = results.paper.claim("dsan.fig10")

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.add_subplot()
        framed(axes, ink, "MB/s", "")
        axes.grid(visible=False)
        for name, title in VARIANTS.items():
            colour = ink.curve(COLOURS[name])
            axes.axvline(claim.paper_value(name), color=colour, linewidth=5, alpha=0.18, zorder=0)
            axes.plot(
                [setup.values[name] for setup in setups],
                range(len(setups)),
                "o",
                color=colour,
                markersize=4.2,
                label=title,
            )
        for row, setup in enumerate(setups):
            values = [setup.values[name] for name in VARIANTS]
            axes.plot([min(values), max(values)], [row, row], color=ink.grid, linewidth=1.0, zorder=1)
        axes.set_yticks(range(len(setups)))
        axes.set_yticklabels([f"{setup.label}{'' if setup.in_order else ' *'}" for setup in setups], fontsize=7)
        axes.set_ylim(len(setups) - 0.4, -0.6)
        axes.set_xscale("log")
        axes.set_xticks([1, 2, 5, 10, 20, 50, 100])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
        legend(drawing, ink, axes)

    return Figure(
        "fig10-setups",
        "dsan.fig10",
        "Figure 10: which set-ups fit the paper's numbers at a loss of 1e-3",
        "Each row is a set-up that the paper does not exclude, nearest first; bands are the paper's four numbers in "
        "the stacks' colours. * the four are not in the paper's order.",
        draw,
        (7.4, 7.6),
    )


def _setup_table(setups: Sequence[Setup]) -> Table:
    rows = [
        (
            setup.label,
            *(f"{setup.values[name]:.1f}" for name in VARIANTS),
            "yes" if setup.in_order else "no",
            f"{math.exp(setup.distance):.2f}",
        )
        for setup in setups[:8]
    ]
    paper = setups[0].paper
    rows.insert(0, ("the paper", *(f"{paper[name]:.1f}" for name in VARIANTS), "yes", "1.00"))
    return Table(
        "dsan.fig10",
        "Set-ups nearest to the paper's numbers",
        ("set-up, MB/s", *VARIANTS.values(), "paper's order", "mean factor off"),
        tuple(rows),
        f"The eight nearest of {len(setups)}, by the mean over the four stacks of the factor between ours and the "
        "paper's; one run of 40 s each.",
    )
