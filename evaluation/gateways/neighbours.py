"""Harm: what storage over gateways leaves to a reno neighbour, by congestion control (`elephan.compare`'s measure)."""

from __future__ import annotations

from typing import Any

from elephan.compare import Comparison, compare
from elephan.compare.rank import Row
from elephan.report.draw import Ink, frame
from evaluation.gateways.section import FOLDER, Picture, Section, mean
from evaluation.performance.markdown import table
from evaluation.runner import OUT

CONTROLS = (
    "reno, cubic, bbr, storage_friendly(reduction=1/8, congestion_avoidance=on), "
    "storage_friendly(reduction=1/8, congestion_avoidance=off), "
    "storage_friendly(reduction=1/8, congestion_avoidance=off, cap=100)"
)
LOSSES = (0, 1e-4)

Found = dict[float, Comparison]
"""Comparison by loss rate."""


def measure(changes: dict[str, Any] | None = None, *, again: bool = False, store: str | None = None) -> Found:
    """Compare the controls at each loss."""
    place = store or str(OUT / "store.sqlite")
    return {
        loss: compare(
            FOLDER / "neighbours.toml", CONTROLS, {"link.loss": loss} | (changes or {}), store=place, again=again
        )
        for loss in LOSSES
    }


def kept(row: Row) -> float:
    """Return the part of its rate beside reno that the neighbour keeps."""
    found = row.numbers.neighbour_kept
    return float("nan") if found is None else found.mean


def name(row: Row) -> str:
    """Return a control's name as the page has it."""
    return row.cc.replace("congestion_avoidance=off", "avoidance off").replace(
        "congestion_avoidance=on", "avoidance on"
    )


def section(found: Found) -> Section:
    """Return the part of the page."""
    rows = []
    for loss, comparison in found.items():
        for row in comparison.rows:
            records = comparison.records_of(row)
            interval = row.numbers.neighbour_kept
            half = None if interval is None else interval.half_width
            rows.append(
                [
                    f"loss {loss:g}, {name(row)}",
                    f"{mean(records, 'fc_bytes_per_s') / 1e6:.1f}",
                    f"{1000 * mean(records, 'latency_p99_s'):.0f}",
                    f"{mean(records, 'retransmitted_segments'):,.0f}",
                    f"{100 * kept(row):.0f} %" + ("" if half is None else f" ± {100 * half:.0f}"),
                    f"{1e2 * max(0.0, 1 - kept(row)):.0f} %",
                ]
            )
    heads = ["", "payload alone, MB/s", "frame p99 alone, ms", "sent again alone", "a reno neighbour keeps", "harm"]
    text = f"""Four iFCP pairs with 2GFC ports offer more than the path carries, 1 Gbit/s and 25 ms with a queue of one
bandwidth-delay product; then a reno flow comes beside them. As in `elephan compare`, the neighbour keeps its goodput
over its goodput beside four pairs under reno; harm is one less that (Ware et al., HotNets 2019). Means of three
seeds, 95 % intervals.

{table(heads, rows)}

Credits hold storage back only where its ports are slower than the path: [there](../../evaluation/papers/dsan/README.md)
exponential growth finds no queue to fill. These ports are faster.
"""
    return Section("What does a neighbour lose beside storage-friendly TCP?", text, _picture(found))


def _picture(found: Found) -> Picture:
    def draw(drawing: Any, ink: Ink) -> None:
        panels = drawing.subplots(1, len(found), sharey=True, squeeze=False)[0]
        labels = dict.fromkeys(name(row) for comparison in found.values() for row in comparison.rows)
        colours = {label: index for index, label in enumerate(labels)}
        for axes, (loss, comparison) in zip(panels, found.items(), strict=True):
            frame(axes, ink)
            axes.set_title(f"loss {loss:g}", loc="left", color=ink.text, fontsize=9)
            for row in comparison.rows:
                x, label = mean(comparison.records_of(row), "fc_bytes_per_s") / 1e6, name(row)
                axes.plot([x], [100 * kept(row)], "o", color=ink.curve(colours[label]), label=label, markersize=7)
            axes.set_xlabel("storage alone, MB/s of payload", color=ink.muted, loc="right", labelpad=2)
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
        panels[0].set_ylabel("a reno neighbour keeps, %", color=ink.muted)
        found_labels = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
        drawing.legend(
            found_labels.values(),
            found_labels,
            loc="outside lower left",
            ncols=2,
            frameon=False,
            labelcolor=ink.text,
            fontsize=8,
        )

    return Picture("gateways-neighbours", "Payload of storage, and what a neighbour keeps", draw, (7.4, 4.0))
