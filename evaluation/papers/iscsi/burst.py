"""Figures 9 and 10: what a session of five connections carries and loses, by MaxBurstLength."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.papers.spread import Measured
from elephan.report.draw import Ink

from .connections import in_form
from .demands import by_demand
from .session import (
    Curves,
    average,
    curves,
    draw_curves,
    drops,
    each,
    furthest_from_one,
    max_burst_of,
    throughput,
    title_of,
)

CLAIM = "iscsi.fig9-10"

KNEE = 256 * 1024
"""MaxBurstLength beyond which the paper's curves are flat, B."""


@part("fig10.toml")
def figures9_and_10(results: PaperResults) -> Evaluation:
    """Throughput and drops, by MaxBurstLength."""
    records = results.of("fig10.toml")
    carried = curves(records, max_burst_of, throughput)
    dropped = curves(records, max_burst_of, drops)
    measured = {**by_burst(carried), **by_demand(CLAIM)}
    return Evaluation({CLAIM: measured}, [_figure(carried, dropped)], [_table(carried)])


def numbers(results: PaperResults) -> dict[str, Mapping[str, Measured]]:
    """Return what the runs say of the claim."""
    return {CLAIM: by_burst(curves(results.of("fig10.toml"), max_burst_of, throughput))}


def by_burst(carried: Curves) -> Mapping[str, Measured]:
    """Return the quantities of the claim."""
    points = sorted(carried["reno"])
    over_ccs = {burst: each(average, (values[burst] for values in carried.values())) for burst in points}
    beyond = [burst for burst in points if burst > KNEE]
    means = {cc: each(average, values.values()) for cc, values in carried.items()}
    spreads = [
        each(lambda of_all: max(of_all) / min(of_all), (values[burst] for values in carried.values()))
        for burst in beyond
    ]
    measured = means | {f"at_{burst // 1024}k": over_ccs[burst] for burst in points}
    measured["spread"] = each(max, spreads)
    measured["highspeed_by_reno"] = each(lambda pair: pair[0] / pair[1], (means["highspeed"], means["reno"]))
    return {name: one.values for name, one in measured.items()} | {
        "flat": furthest_from_one(over_ccs, dict.fromkeys(beyond, over_ccs[KNEE]), beyond)
    }


def size(burst: int) -> str:
    """Return a size as "256 KiB"."""
    return f"{burst // 2**20} MiB" if burst >= 2**20 else f"{burst // 1024} KiB"


def _figure(carried: Curves, dropped: Curves) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2)
        framed(left, ink, "MaxBurstLength, KiB", "MB/s, reads and writes")
        framed(right, ink, "MaxBurstLength, KiB", "packets dropped in 1000 s")
        for axes, found in ((left, carried), (right, dropped)):
            in_kib = {cc: {b // 1024: value for b, value in values.items()} for cc, values in found.items()}
            draw_curves(axes, ink, in_kib)
            axes.set_xscale("log", base=4)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.set_ylim(bottom=0)
            axes.axvline(KNEE // 1024, color=ink.muted, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
        legend(drawing, ink, left, columns=5)

    return Figure(
        "fig10",
        CLAIM,
        "Figures 9 and 10: a session of five connections by MaxBurstLength",
        "1000 s on 100 Mbit/s, 40 ms, a queue of 50 packets each way; median and range of five seeds. Dotted: "
        "256 KiB, from where the paper's curves are flat.",
        draw,
    )


def _table(found: Curves) -> Table:
    return Table(
        CLAIM,
        "Throughput, MB/s, by MaxBurstLength",
        ("congestion control", *map(size, found["reno"])),
        tuple((title_of(cc), *(in_form(one, "{:.2f}") for one in values.values())) for cc, values in found.items()),
        "Median (least to most) of five seeds.",
    )
