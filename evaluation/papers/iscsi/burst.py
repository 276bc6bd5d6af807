"""Figures 9 and 10: what a session of five connections carries and loses, by MaxBurstLength."""

from __future__ import annotations

from typing import Any

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.report.draw import Ink

from .session import Curves, curves, draw_curves, drops, max_burst_of, mean, throughput, title_of

CLAIM = "iscsi.fig9-10"

KNEE = 256 * 1024
"""MaxBurstLength beyond which the paper's curves are flat, B."""


@part("fig10.toml")
def figures9_and_10(results: PaperResults) -> Evaluation:
    """Throughput and drops, by MaxBurstLength."""
    records = results.of("fig10.toml")
    carried = curves(records, max_burst_of, throughput)
    dropped = curves(records, max_burst_of, drops)
    return Evaluation(
        {CLAIM: _measured(carried)}, [_figure(carried, dropped)], [_table(carried, "{:.2f}", "Throughput, MB/s")]
    )


def _measured(carried: Curves) -> dict[str, float]:
    points = sorted(carried["reno"])
    over_ccs = {burst: mean({i: values[burst] for i, values in enumerate(carried.values())}) for burst in points}
    beyond = [burst for burst in points if burst > KNEE]
    measured = {f"at_{burst // 1024}k": over_ccs[burst] for burst in points}
    measured["flat"] = max((over_ccs[b] / over_ccs[KNEE] for b in beyond), key=lambda ratio: abs(ratio - 1))
    measured |= {cc: mean(values) for cc, values in carried.items()}
    measured["highspeed_by_reno"] = measured["highspeed"] / measured["reno"]
    spread = [max(v[b] for v in carried.values()) / min(v[b] for v in carried.values()) for b in beyond]
    measured["spread"] = max(spread)
    return measured


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
        "1000 s on 100 Mbit/s, 40 ms, a queue of 50 packets each way. Dotted: 256 KiB, from where the paper's "
        "curves are flat.",
        draw,
    )


def _table(found: Curves, form: str, what: str) -> Table:
    points = sorted(found["reno"])
    return Table(
        CLAIM,
        f"{what}, by MaxBurstLength",
        ("congestion control", *(size(point) for point in points)),
        tuple((title_of(cc), *(form.format(values[p]) for p in points)) for cc, values in found.items()),
    )
