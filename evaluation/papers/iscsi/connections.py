"""Figures 7 and 8: what a session carries and loses, by congestion control and connections."""

from __future__ import annotations

from typing import Any

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.report.draw import Ink

from .session import (
    NEW,
    Curves,
    connections_of,
    curves,
    draw_curves,
    drops,
    furthest_from_one,
    mean,
    throughput,
    title_of,
)

CLAIM = "iscsi.fig7"
DROPS = "iscsi.fig8"

SEVERAL = range(2, 11)
"""Connections for which the paper has H-TCP best nearly everywhere."""

MANY = range(5, 11)
"""Connections from which the paper has BIC as Scalable."""

BEST_WITHIN = 0.01
"""Relative distance to the best at which a congestion control is best, too."""

FAR_MORE = 2
""""Far more": at least so many times."""


@part("fig7.toml")
def figures7_and_8(results: PaperResults) -> Evaluation:
    """Throughput and drops."""
    records = results.of("fig7.toml")
    carried = curves(records, connections_of, throughput)
    dropped = curves(records, connections_of, drops)
    return Evaluation(
        {CLAIM: _throughputs(carried), DROPS: _drops(dropped)},
        [_figure(CLAIM, "fig7", carried), _figure(DROPS, "fig8", dropped)],
        [
            _table(CLAIM, "Throughput, MB/s, by connections", carried, "{:.2f}"),
            _table(DROPS, "Packets dropped in 1000 s, by connections", dropped, "{:.0f}"),
        ],
    )


def best_at(carried: Curves, cc: str) -> int:
    """Return at how many of the numbers of connections beyond one a congestion control is best."""
    return sum(
        carried[cc][n] >= (1 - BEST_WITHIN) * max(values[n] for values in carried.values())
        for n in SEVERAL
        if n in carried[cc]
    )


def _throughputs(carried: Curves) -> dict[str, float]:
    measured = {f"{cc}_1": values[1] for cc, values in carried.items()}
    for n in (1, 2, 5, 10):
        measured[f"mean_{n}"] = mean({index: values[n] for index, values in enumerate(carried.values())})
    measured["best_new_1"] = max(carried[cc][1] for cc in NEW)
    measured["htcp_best"] = best_at(carried, "htcp")
    measured["bic_by_scalable"] = furthest_from_one(carried["bic"], carried["scalable"], MANY)
    return measured


def _drops(dropped: Curves) -> dict[str, float]:
    measured = {cc: mean(values) for cc, values in dropped.items()}
    return measured | {"most_of_three_twice": FAR_MORE * max(measured[cc] for cc in ("reno", "bic", "htcp"))}


def _figure(claim: str, key: str, found: Curves) -> Figure:
    what, title, caption = {
        CLAIM: (
            "MB/s, reads and writes",
            "Figure 7: throughput of a session",
            "1000 s on 100 Mbit/s, 40 ms, a queue of 50 packets each way. The line carries 11.8 MB/s each way.",
        ),
        DROPS: (
            "packets dropped in 1000 s",
            "Figure 8: packets dropped",
            "By the queues of both directions, acknowledgments among them.",
        ),
    }[claim]

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.add_subplot()
        framed(axes, ink, "connections of the session", what)
        draw_curves(axes, ink, found)
        axes.set_ylim(bottom=0)
        axes.set_xticks(sorted(next(iter(found.values()))))
        legend(drawing, ink, axes, columns=5)

    return Figure(key, claim, title, caption, draw)


def _table(claim: str, title: str, found: Curves, form: str) -> Table:
    points = sorted(next(iter(found.values())))
    rows = tuple((title_of(cc), *(form.format(values[point]) for point in points)) for cc, values in found.items())
    return Table(claim, title, ("congestion control", *(str(point) for point in points)), rows)
