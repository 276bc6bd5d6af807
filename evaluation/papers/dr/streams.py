"""Figure 5: BBFTP by parallel streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elephan.papers.drawing import framed, legend, mark_paper
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.papers.spread import Measured, Spread
from elephan.report.draw import Ink

from .transfers import CCS, JUDGED, POLICED, READINGS, by_reading, spreads, streams_text

CLAIM = "dr.fig5"

PAPER_TEN_STREAMS = 1.3
"""MB/s that the paper's ten streams reach (section 4.2); drawn, and in claims.toml."""

ByStreams = Mapping[tuple[int, str], Spread]


@part("fig5.toml")
def figure5(results: PaperResults) -> Evaluation:
    """Throughput by number of streams and congestion control."""
    found = {
        reading: spreads(transfers, lambda one: (one.streams, one.cc))
        for reading, transfers in by_reading(results.of("fig5.toml")).items()
    }
    measured: dict[str, Measured] = {}
    for reading, rows in found.items():
        for (count, cc), spread in rows.items():
            measured[f"{reading}_{count}_{cc}"] = spread.values
        for cc in JUDGED:
            measured[f"{reading}_8_and_half_{cc}"] = [1.5 * value for value in rows[8, cc].values]
        fastest = max(JUDGED, key=lambda cc: rows[10, cc].median)
        measured[f"{reading}_ten"] = rows[10, fastest].values
    return Evaluation({CLAIM: measured}, [_figure(found)], [_table(found)])


def _figure(found: Mapping[str, ByStreams]) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        panels = drawing.subplots(1, len(found))
        for axes, (reading, rows) in zip(panels, found.items(), strict=True):
            framed(axes, ink, "parallel streams", f"{READINGS[reading]}, MB/s")
            counts = sorted({streams for streams, _ in rows})
            for cc in JUDGED:
                title, colour = CCS[cc]
                values = [rows[count, cc].median for count in counts]
                axes.plot(counts, values, "o-", color=ink.curve(colour), markersize=4, linewidth=1.5, label=title)
            mark_paper(axes, ink, [10], [PAPER_TEN_STREAMS], "the paper's ten streams (section 4.2)")
            axes.set_xticks(counts)
            axes.set_ylim(bottom=0)
        legend(drawing, ink, panels[0])

    return Figure(
        "fig5",
        CLAIM,
        "Figure 5: parallel streams on 45 Mbit/s and 32 ms",
        "File of 2 GB over its transfer time, window 65,535 B; medians of five seeds. The axes differ.",
        draw,
    )


def _table(found: Mapping[str, ByStreams]) -> Table:
    counts = sorted({streams for streams, _ in found[POLICED]})
    rows = [
        (f"{READINGS[reading]}, {CCS[cc][0]}", *(str(by_streams[count, cc]) for count in counts))
        for reading, by_streams in found.items()
        for cc in JUDGED
    ]
    return Table(
        CLAIM,
        "Throughput, MB/s",
        ("path, congestion control", *(streams_text(count) for count in counts)),
        tuple(rows),
        "Medians of five seeds, with least and largest where they differ. The paper's ten streams: 1.3 MB/s.",
    )
