"""Figure 4: Reno, BIC and FAST, by application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.papers.spread import Measured, Spread
from elephan.report.draw import Ink

from .transfers import CCS, JUDGED, READINGS, by_reading, spreads

CLAIM = "dr.fig4"

FEW = ("FTP", "BBFTP 2")
"""One and two streams, with which the paper finds BIC about equal to FAST."""

ByApplication = Mapping[str, Mapping[str, Spread]]
"""Throughput by application and congestion control."""


@part("fig4.toml")
def figure4(results: PaperResults) -> Evaluation:
    """Throughput by application and congestion control; BIC beside FAST with few streams."""
    measured: dict[str, Measured] = {}
    found: dict[str, ByApplication] = {}
    for reading, transfers in by_reading(results.of("fig4.toml")).items():
        pairs = spreads(transfers, lambda one: (one.application, one.cc))
        names = sorted({application for application, _ in pairs}, key=_place)
        rows = {name: {cc: pairs[name, cc] for cc in CCS if (name, cc) in pairs} for name in names}
        found[reading] = rows
        measured |= {f"{reading}_{name}_{cc}": row[cc].values for name, row in rows.items() for cc in JUDGED}
        ratios = [rows[name]["bic"].median / rows[name]["fast"].median for name in FEW]
        measured[f"bic_over_fast_{reading}"] = sum(ratios) / len(ratios)
    return Evaluation({CLAIM: measured}, [_figure(found)], [_table(found)])


def _place(application: str) -> tuple[int, int]:
    name, _, streams = application.partition(" ")
    return ("FTP", "SCP", "BBFTP").index(name), int(streams or 1)


def _figure(found: Mapping[str, ByApplication]) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        panels = drawing.subplots(1, len(found))
        for axes, (reading, rows) in zip(panels, found.items(), strict=True):
            framed(axes, ink, "", f"{READINGS[reading]}, MB/s")
            for place, cc in enumerate(CCS):
                title, colour = CCS[cc]
                x = [number + 0.2 * (place - 1.5) for number in range(len(rows))]
                values = [row[cc].median for row in rows.values()]
                axes.bar(x, values, 0.18, color=ink.curve(colour), label=title)
            axes.set_xticks(range(len(rows)), list(rows))
            axes.set_ylim(bottom=0)
        legend(drawing, ink, panels[0])

    return Figure(
        "fig4",
        CLAIM,
        "Figure 4: Reno, BIC and FAST on 45 Mbit/s and 32 ms",
        "File of 2 GB over its transfer time, window 65,535 B; medians of five seeds.",
        draw,
    )


def _table(found: Mapping[str, ByApplication]) -> Table:
    rows = [
        (f"{READINGS[reading]}, {name}", *(str(row[cc]) for cc in CCS))
        for reading, by_application in found.items()
        for name, row in by_application.items()
    ]
    return Table(
        CLAIM,
        "Throughput, MB/s",
        ("path, application", *(title for title, _ in CCS.values())),
        tuple(rows),
        f"Medians of five seeds, with least and largest. Judged are {', '.join(CCS[cc][0] for cc in JUDGED)}.",
    )
