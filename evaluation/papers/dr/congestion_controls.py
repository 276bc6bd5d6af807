"""Figure 4: Reno, BIC and FAST on the backup's path, by parallel streams, window and loss rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elephan.papers.drawing import framed, legend, mark_paper
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, megabytes_per_s, part
from elephan.record import Record
from elephan.report.draw import Ink
from elephan.run_spec.quantities import loss_rate

CLAIM = "dr.fig4"

CCS = {"reno": ("Reno", 0), "bic": ("BIC", 1), "fast": ("FAST", 2), "fast20": ("FAST, alpha 20", 3)}
"""Title and colour."""

JUDGED = ("reno", "bic", "fast")
"""Congestion controls of the verdict, slowest first; FAST with its default alpha."""

UNTUNED_BYTES = 65_535
"""The paper's window without tuning, which its figure 4 has."""

EQUAL_WITHIN = 0.01
"""Relative difference up to which two goodputs count as equal, as in claims.toml."""

FEW = (1, 2)
"""Streams with which the paper finds BIC about equal to FAST."""

PAPER_TEN_STREAMS = 1.3
"""MB/s that the paper's ten streams reach (section 4.2); drawn, not judged."""


@dataclass(frozen=True, order=True)
class Point:
    """A combination of the grid."""

    window_bytes: int
    loss: float
    streams: int


def point_of(record: Record) -> Point:
    """Return the point of a record."""
    flow = record.spec["flows"][0]
    loss = loss_rate(record.spec["links"][flow["route"][0]]["loss"])
    return Point(flow["transport"]["window_bytes"], loss, len(record.spec["flows"]))


def transport_of(record: Record) -> str:
    """Return the key of a record's congestion control."""
    transport = record.spec["flows"][0]["transport"]
    alpha = transport["parameters"].get("alpha")
    return f"{transport['congestion_control']}{alpha or ''}"


Goodputs = Mapping[Point, Mapping[str, float]]
"""Mean goodput, MB/s, by point and congestion control."""


def goodputs_of(records: Sequence[Record]) -> dict[Point, dict[str, float]]:
    """Return the means over repetitions."""
    found: dict[Point, dict[str, list[float]]] = {}
    for record in records:
        by_transport = found.setdefault(point_of(record), {})
        by_transport.setdefault(transport_of(record), []).append(megabytes_per_s(record.metrics.get("goodput_bps")))
    return {
        point: {name: float(np.mean(values)) for name, values in by_transport.items()}
        for point, by_transport in found.items()
    }


def in_order(goodput: Mapping[str, float]) -> bool:
    """Return True if FAST >= BIC >= Reno at a point."""
    slow, middle, fast = (goodput[name] for name in JUDGED)
    return slow <= middle * (1 + EQUAL_WITHIN) and middle <= fast * (1 + EQUAL_WITHIN)


def axis(goodputs: Goodputs, name: str) -> list[Any]:
    """Return the values of one coordinate."""
    return sorted({getattr(point, name) for point in goodputs})


@part("fig4.toml")
def figure4(results: PaperResults) -> Evaluation:
    """The order of the congestion controls at every point, and BIC beside FAST with few streams."""
    goodputs = goodputs_of(results.of("fig4.toml"))
    measured = {"points_in_order": float(sum(in_order(goodput) for goodput in goodputs.values()))}
    for window in axis(goodputs, "window_bytes"):
        for loss in axis(goodputs, "loss"):
            rows = [
                goodput for point, goodput in goodputs.items() if (point.window_bytes, point.loss) == (window, loss)
            ]
            for name in JUDGED:
                measured[f"{name}_{window}_{loss:g}"] = float(np.mean([goodput[name] for goodput in rows]))
    for loss in axis(goodputs, "loss"):
        few = [goodputs[Point(UNTUNED_BYTES, loss, streams)] for streams in FEW]
        measured[f"bic_over_fast_{loss:g}"] = float(np.mean([goodput["bic"] / goodput["fast"] for goodput in few]))
    return Evaluation({CLAIM: measured}, [_figure(goodputs)], [_ratio_table(goodputs), _point_table(goodputs)])


def loss_name(loss: float) -> str:
    """Return a loss rate in words."""
    return "no loss" if loss == 0 else f"loss {loss:g}".replace("e-0", "e-")


def _figure(goodputs: Goodputs) -> Figure:
    losses, streams = axis(goodputs, "loss"), axis(goodputs, "streams")

    def draw(drawing: Any, ink: Ink) -> None:
        panels = drawing.subplots(2, 3, sharex=True, sharey=True)
        for axes, loss in zip(panels.flat, losses, strict=True):
            framed(axes, ink, "parallel streams" if axes in panels[1] else "", "")
            axes.set_title(loss_name(loss), loc="left", color=ink.text, fontsize=8.5, pad=4)
            for name, (title, colour) in CCS.items():
                values = [goodputs[Point(UNTUNED_BYTES, loss, count)][name] for count in streams]
                thin = name not in JUDGED
                axes.plot(
                    streams,
                    values,
                    "o-",
                    color=ink.curve(colour),
                    markersize=2.5 if thin else 4,
                    linewidth=0.9 if thin else 1.5,
                    label=title,
                )
            mark_paper(axes, ink, [10], [PAPER_TEN_STREAMS], "the paper's ten streams (section 4.2)")
            axes.set_ylim(0, 6)
            axes.set_xticks(streams)
        panels[0][0].yaxis.set_major_formatter(lambda value, _: f"{value:g} MB/s")
        legend(drawing, ink, panels[0][0], columns=5)

    return Figure(
        "fig4",
        CLAIM,
        "Figure 4: Reno, BIC and FAST on 45 Mbit/s and 32 ms",
        "Goodput of all streams together, window 65,535 B, queue of one rate x RTT, by loss rate, which the paper does "
        "not state. Means of three seeds.",
        draw,
        (7.4, 4.4),
    )


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _ratio_table(goodputs: Goodputs) -> Table:
    rows = []
    windows = axis(goodputs, "window_bytes")
    for loss in axis(goodputs, "loss"):
        row = [loss_name(loss)]
        for window in windows:
            points = [value for point, value in goodputs.items() if (point.window_bytes, point.loss) == (window, loss)]
            row.append(_span([value["fast"] / value["bic"] for value in points]))
            row.append(_span([value["bic"] / value["reno"] for value in points]))
        rows.append(tuple(row))
    heads = ["loss rate"]
    for window in windows:
        heads += [f"FAST / BIC, {window:,} B", f"BIC / Reno, {window:,} B"]
    return Table(
        CLAIM,
        "Goodput relative to each other: least and largest over 1, 2, 4, 8 and 10 streams",
        tuple(heads),
        tuple(rows),
    )


def _point_table(goodputs: Goodputs) -> Table:
    streams = (1, 2, 10)
    rows = []
    for window in axis(goodputs, "window_bytes"):
        for loss in axis(goodputs, "loss"):
            row = [f"{window:,} B, {loss_name(loss)}"]
            for count in streams:
                goodput = goodputs[Point(window, loss, count)]
                row.append(" / ".join(f"{goodput[name]:.2f}" for name in JUDGED))
            rows.append(tuple(row))
    return Table(
        CLAIM,
        "Goodput of Reno / BIC / FAST, MB/s",
        ("window, loss rate", *(f"{count} stream{'s' if count > 1 else ''}" for count in streams)),
        tuple(rows),
        "All streams together; means of three seeds. The paper's ten streams reach 1.3 MB/s.",
    )
