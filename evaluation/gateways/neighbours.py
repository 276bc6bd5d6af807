"""Harm: what storage over gateways leaves to a reno neighbour, by congestion control (`elephan.compare`'s measure)."""

from __future__ import annotations

from typing import Any

from elephan.compare import Comparison, compare
from elephan.compare.rank import Row
from elephan.report.draw import Ink, frame
from evaluation.gateways.section import FOLDER, Picture, Section, mean
from evaluation.markdown import table
from evaluation.runner import OUT

CONTROLS = (
    "reno, cubic, bbr, storage_friendly(reduction=1/8, congestion_avoidance=on), "
    "storage_friendly(reduction=1/8, congestion_avoidance=off), "
    "storage_friendly(reduction=1/8, congestion_avoidance=off, cap=100)"
)
CASES: dict[str, dict[str, Any]] = {
    "four 2GFC ports": {"link.loss": 0},
    "four 2GFC ports, loss 1e-4": {"link.loss": 1e-4},
    "one 1GFC port": {
        "link.loss": 0,
        "flow.0.connections": 1,
        "flow.0.workload.load": "90%",
        "node.0.rate": "1GFC",
        "node.1.rate": "1GFC",
    },
}
"""Changes of the scenario by name; the last has a port that is slower than the path."""

Found = dict[str, Comparison]
"""Comparison by case."""


def measure(
    changes: dict[str, Any] | None = None, controls: str = CONTROLS, *, again: bool = False, store: str | None = None
) -> Found:
    """Compare the controls in each case."""
    place = store or str(OUT / "store.sqlite")
    file = FOLDER / "neighbours.toml"
    return {
        case: compare(file, controls, own | (changes or {}), store=place, again=again) for case, own in CASES.items()
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
    for case, comparison in found.items():
        for row in comparison.rows:
            records = comparison.records_of(row)
            interval = row.numbers.neighbour_kept
            half = None if interval is None else interval.half_width
            rows.append(
                [
                    f"{case}, {name(row)}",
                    f"{mean(records, 'fc_bytes_per_s') / 1e6:.1f}",
                    f"{1000 * mean(records, 'latency_p99_s'):.0f}",
                    f"{mean(records, 'retransmitted_segments'):,.0f}",
                    f"{100 * kept(row):.0f} %" + ("" if half is None else f" ± {100 * half:.0f}"),
                    f"{1e2 * max(0.0, 1 - kept(row)):.0f} %",
                ]
            )
    heads = ["", "payload alone, MB/s", "frame p99 alone, ms", "sent again alone", "a reno neighbour keeps", "harm"]
    text = f"""iFCP pairs share a path of 1 Gbit/s and 25 ms with a queue of one bandwidth-delay product; then a reno
flow comes beside them. Four pairs with 2GFC ports offer more than the path carries; one pair with a 1GFC port offers
90 % of the port's rate, which is 79 % of the path's. As in `elephan compare`, the neighbour keeps its goodput over its
goodput beside the same pairs under reno; harm is one less that (Ware et al., HotNets 2019). Means of three seeds, 95 %
intervals.

{table(heads, rows)}

Where the ports are slower than the path, credits bound what storage takes, whatever its control, and the rest is the
neighbour's, some 25 % of what it would have beside reno. Where they are faster, exponential growth and BBR leave it
next to nothing.
"""
    return Section("What does a neighbour lose beside storage-friendly TCP?", text, _picture(found))


def _picture(found: Found) -> Picture:
    def draw(drawing: Any, ink: Ink) -> None:
        panels = drawing.subplots(1, len(found), sharex=True, sharey=True, squeeze=False)[0]
        names = list(dict.fromkeys(name(row) for comparison in found.values() for row in comparison.rows))
        for index, (axes, (case, comparison)) in enumerate(zip(panels, found.items(), strict=True)):
            frame(axes, ink)
            axes.set_title(case, loc="left", color=ink.text, fontsize=9)
            for row in comparison.rows:
                place = names.index(name(row))
                axes.barh([place], [100 * kept(row)], color=ink.curve(index), height=0.6)
                alone = mean(comparison.records_of(row), "fc_bytes_per_s") / 1e6
                axes.text(100 * kept(row) + 2, place, f"{alone:.0f} MB/s", color=ink.text, fontsize=7.5, va="center")
            axes.set_xlim(0, 150)
            axes.set_xlabel("a reno neighbour keeps, %", color=ink.muted, loc="right", labelpad=2)
        panels[0].set_yticks(range(len(names)))
        panels[0].set_yticklabels([label.replace("storage_friendly", "").strip("()") for label in names], fontsize=7.5)
        panels[0].set_ylim(len(names) - 0.5, -0.5)

    says = "Part that a neighbour keeps, and payload of storage alone"
    return Picture("gateways-neighbours", says, draw, (8.6, 3.4))
