"""Figures 7 and 8: what a session carries and loses, by congestion control and connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.papers.spread import Measured, Spread
from elephan.report.draw import Ink

from .demands import by_demand
from .session import (
    NEW,
    Curves,
    average,
    connections_of,
    curves,
    draw_curves,
    drops,
    each,
    furthest_from_one,
    throughput,
    title_of,
)

CLAIM = "iscsi.fig7"
DROPS = "iscsi.fig8"

MANY = range(5, 11)
"""Connections from which the paper has BIC as Scalable."""

THREE = ("reno", "bic", "htcp")
"""Congestion controls of the paper's figure 8."""

FAR_MORE = 2
""""Far more": at least so many times."""


@part("fig7.toml")
def figures7_and_8(results: PaperResults) -> Evaluation:
    """Throughput and drops."""
    carried, dropped = curves_of(results)
    return Evaluation(
        {CLAIM: {**throughputs(carried), **by_demand(CLAIM)}, DROPS: losses(dropped)},
        [_figure(CLAIM, "fig7", carried), _figure(DROPS, "fig8", dropped)],
        [
            _table(CLAIM, "Throughput, MB/s, by connections", carried, "{:.2f}"),
            _table(DROPS, "Packets dropped in 1000 s, by connections", dropped, "{:.0f}"),
        ],
    )


def curves_of(results: PaperResults) -> tuple[Curves, Curves]:
    """Return throughput, MB/s, and packets dropped, by connections."""
    records = results.of("fig7.toml")
    return curves(records, connections_of, throughput), curves(records, connections_of, drops)


def numbers(results: PaperResults) -> dict[str, Mapping[str, Measured]]:
    """Return what the runs say of both claims."""
    carried, dropped = curves_of(results)
    return {CLAIM: throughputs(carried), DROPS: losses(dropped)}


def points_of(found: Curves) -> list[int]:
    """Return the numbers of connections."""
    return list(found["reno"])


def best_at(carried: Curves, cc: str) -> float:
    """Return at which share of the points beyond one connection one is above all others, ranges apart."""
    others = [values for name, values in carried.items() if name != cc]
    several = [n for n in points_of(carried) if n > 1]
    return average([all(values[n].is_below(carried[cc][n]) for values in others) for n in several])


def throughputs(carried: Curves) -> Mapping[str, Measured]:
    """Return the quantities of the claim on figure 7."""

    def best(n: int, *names: str) -> Spread:
        return each(max, (carried[cc][n] for cc in names))

    measured = {f"{cc}_{n}": one for cc, values in carried.items() for n, one in values.items()}
    measured["best_new_1"] = best(1, *NEW)
    measured["best_three_2"] = best(2, "bic", "highspeed", "scalable")
    for n in (1, 2, 5, 10):
        measured[f"mean_{n}"] = each(average, (values[n] for values in carried.values()))
    for n in (2, 5, 10):
        measured[f"best_but_htcp_{n}"] = best(n, *(cc for cc in carried if cc != "htcp"))
    many = [n for n in points_of(carried) if n in MANY]
    return {name: one.values for name, one in measured.items()} | {
        "htcp_best": best_at(carried, "htcp"),
        "bic_by_scalable": furthest_from_one(carried["bic"], carried["scalable"], many),
    }


def losses(dropped: Curves) -> Mapping[str, Measured]:
    """Return the quantities of the claim on figure 8: means over connections."""
    means = {cc: each(average, values.values()) for cc, values in dropped.items()}
    three = [means[cc] for cc in THREE]
    means["reno_twice"] = each(lambda reno: FAR_MORE * reno[0], [means["reno"]])
    means["most_of_three_twice"] = each(lambda values: FAR_MORE * max(values), three)
    return {name: one.values for name, one in means.items()}


def _figure(claim: str, key: str, found: Curves) -> Figure:
    what, title, caption = {
        CLAIM: (
            "MB/s, reads and writes",
            "Figure 7: throughput of a session",
            "1000 s on 100 Mbit/s, 40 ms, a queue of 50 packets each way; median and range of five seeds. The line "
            "carries 11.8 MB/s each way.",
        ),
        DROPS: (
            "packets dropped in 1000 s",
            "Figure 8: packets dropped",
            "By the queues of both directions, acknowledgments among them; median and range of five seeds.",
        ),
    }[claim]

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.add_subplot()
        framed(axes, ink, "connections of the session", what)
        draw_curves(axes, ink, found)
        axes.set_ylim(bottom=0)
        axes.set_xticks(points_of(found))
        legend(drawing, ink, axes, columns=5)

    return Figure(key, claim, title, caption, draw)


def _table(claim: str, title: str, found: Curves, form: str) -> Table:
    rows = tuple((title_of(cc), *(in_form(one, form) for one in values.values())) for cc, values in found.items())
    heads = ("congestion control", *map(str, points_of(found)))
    return Table(claim, title, heads, rows, "Median (least to most) of five seeds.")


def in_form(one: Spread, form: str) -> str:
    """Return median and range."""
    low, high = form.format(one.low), form.format(one.high)
    return form.format(one.median) if low == high else f"{form.format(one.median)} ({low} to {high})"
