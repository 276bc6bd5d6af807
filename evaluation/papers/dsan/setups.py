"""Figure 10: which set-ups that the paper does not state fit its numbers: era, connections, packet size, queue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from elephan.papers.drawing import PAPER_LABEL, framed, legend
from elephan.papers.evaluation import Figure, PaperResults, Table, megabytes_per_s
from elephan.record import Record
from elephan.report.draw import Ink
from elephan.run_spec.quantities import limit_bytes

from .variants import COLOURS, VARIANTS, variant

ERAS = {"newreno": "NewReno", "sack": "SACK", "rack": "RACK"}
"""Names of the eras of loss recovery."""


CLEARLY = 1.05
"""Factor from which two goodputs count as different."""


@dataclass(frozen=True)
class Goodput:
    """Goodput of one congestion control in a set-up, MB/s, over seeds."""

    runs: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return sum(self.runs) / len(self.runs)

    @property
    def text(self) -> str:
        """Mean, and the range over the seeds: with three of them an interval would say less."""
        return f"{self.mean:.1f} ({min(self.runs):.1f} to {max(self.runs):.1f})"


@dataclass(frozen=True)
class Setup:
    """A set-up that the paper could have had, and what the four congestion controls give in it."""

    recovery: str
    mtu_bytes: int
    connections: int
    goodput: dict[str, Goodput]
    paper: dict[str, float]

    @property
    def values(self) -> list[float]:
        """Mean goodput of the four, in the paper's order."""
        return [self.goodput[name].mean for name in VARIANTS]

    @property
    def distance(self) -> float:
        """Mean factor between ours and the paper's over the four congestion controls, as a logarithm; 0 = equal."""
        factors = [abs(math.log(self.goodput[name].mean / self.paper[name])) for name in VARIANTS]
        return sum(factors) / len(factors)

    @property
    def in_order(self) -> bool:
        """Return True if the four are in the paper's order, each clearly above the one before.

        Where all fill the line their order says nothing.
        """
        return all(left * CLEARLY < right for left, right in pairwise(self.values))

    @property
    def label(self) -> str:
        """Return its name."""
        connections = "1 connection" if self.connections == 1 else f"{self.connections} connections"
        return f"{ERAS[self.recovery]}, {self.mtu_bytes} B, {connections}"


def goodputs(records: Sequence[Record]) -> dict[str, Goodput]:
    """Return the goodput of each congestion control over the seeds."""
    found: dict[str, list[float]] = {}
    for record in records:
        found.setdefault(variant(record), []).append(megabytes_per_s(record.metrics.get("goodput_bps")))
    return {name: Goodput(tuple(values)) for name, values in found.items()}


def setups_of(results: PaperResults) -> list[Setup]:
    """Return every set-up of fig10-setups.toml, the nearest to the paper first."""
    claim = results.paper.claim("dsan.fig10")
    paper = {name: claim.paper_value(name) for name in VARIANTS}
    found: dict[tuple[str, int, int], list[Record]] = {}
    for record in results.of("fig10-setups.toml"):
        transport = record.spec["flows"][0]["transport"]
        found.setdefault((transport["recovery"], transport["mtu_bytes"], len(record.flows)), []).append(record)
    setups = [Setup(*key, goodputs(records), paper) for key, records in found.items()]
    return sorted(setups, key=lambda setup: setup.distance)


def fits(results: PaperResults, setups: Sequence[Setup]) -> Figure:
    """Return the figure of all set-ups."""
    claim = results.paper.claim("dsan.fig10")
    in_order = sum(setup.in_order for setup in setups)

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.add_subplot()
        framed(axes, ink, "MB/s", "")
        axes.grid(visible=False)
        for row in range(len(setups)):
            axes.axhline(row, color=ink.grid, linewidth=0.6, zorder=0)
        for name, title in VARIANTS.items():
            colour = ink.curve(COLOURS[name])
            axes.axvline(claim.paper_value(name), color=colour, linewidth=5, alpha=0.18, zorder=0)
            for row, setup in enumerate(setups):
                runs = setup.goodput[name].runs
                axes.plot([min(runs), max(runs)], [row, row], color=colour, linewidth=2.6, alpha=0.35, zorder=2)
            means = [setup.goodput[name].mean for setup in setups]
            axes.plot(means, range(len(setups)), "o", color=colour, markersize=4.4, label=title, zorder=3)
        axes.set_yticks(range(len(setups)))
        labels = axes.set_yticklabels([setup.label for setup in setups], fontsize=7)
        for label, setup in zip(labels, setups, strict=True):
            if setup.in_order:
                label.set_fontweight("bold")
                label.set_color(ink.text)
        axes.set_ylim(len(setups) - 0.4, -0.6)
        _goodput_axis(axes, "x")
        legend(drawing, ink, axes)

    return Figure(
        "fig10-setups",
        "dsan.fig10",
        "Figure 10: which set-ups fit the paper's numbers at a loss of 1e-3",
        "Each row is a set-up that the paper does not exclude, nearest first: mean and range of three seeds. Bands are "
        f"the paper's numbers in the congestion controls' colours. In {in_order} of {len(setups)} (bold) the four are "
        "in its order.",
        draw,
        (7.4, 7.6),
    )


def table(setups: Sequence[Setup]) -> Table:
    """Return the nearest set-ups as a table."""
    rows = [
        (
            setup.label,
            *(setup.goodput[name].text for name in VARIANTS),
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
        f"The eight nearest of {len(setups)}, by the mean over the four congestion controls of the factor between "
        "ours and the "
        "paper's; mean and range of three seeds.",
    )


def by_queue(results: PaperResults) -> Figure:
    """Return the figure of the four congestion controls against the queue before the line."""
    claim = results.paper.claim("dsan.fig10")
    groups: dict[float, list[Record]] = {}
    for record in results.of("fig10-queue.toml"):
        link = record.spec["links"][record.spec["flows"][0]["route"][0]]
        groups.setdefault(limit_bytes(link["queue"]) / 1e6, []).append(record)
    found = {queue: goodputs(records) for queue, records in sorted(groups.items())}

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.add_subplot()
        framed(axes, ink, "queue before the line, MB", "MB/s")
        for name, title in VARIANTS.items():
            colour = ink.curve(COLOURS[name])
            runs = [item[name].runs for item in found.values()]
            axes.fill_between(
                list(found), [min(r) for r in runs], [max(r) for r in runs], color=colour, alpha=0.13, lw=0
            )
            axes.plot(list(found), [item[name].mean for item in found.values()], "o-", color=colour, label=title, ms=4)
            axes.scatter(
                [12], [claim.paper_value(name)], marker="D", s=52, facecolors="none", edgecolors=colour, linewidths=1.7
            )
        axes.scatter(
            [],
            [],
            marker="D",
            s=40,
            facecolors="none",
            edgecolors=ink.text,
            linewidths=1.4,
            label=f"{PAPER_LABEL} (queue unknown)",
        )
        axes.set_xscale("log")
        axes.set_xticks(list(found))
        axes.set_xticklabels([f"{queue:g}" for queue in found])
        _goodput_axis(axes, "y")
        legend(drawing, ink, axes, columns=5)

    return Figure(
        "fig10-queue",
        "dsan.fig10",
        "Figure 10: what the queue decides",
        "NewReno, 4 connections, 1500 B, loss 1e-3: mean and range of three seeds against the size of the queue, which "
        "the paper does not state. Standard and 1/8 reduction do not depend on it, the two with exponential growth do.",
        draw,
        (7.4, 3.8),
    )


def _goodput_axis(axes: Any, which: str) -> None:
    from matplotlib.ticker import FixedLocator

    getattr(axes, f"set_{which}scale")("log")
    # A locator and not set_ticks: ticks beyond the data would widen the axis.
    getattr(axes, f"{which}axis").set_major_locator(FixedLocator([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]))
    getattr(axes, f"{which}axis").set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
