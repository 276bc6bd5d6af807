"""Figure 6: a session over a real TCP, by congestion control and connections; and the same in the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.report.draw import Ink

from .session import cc_of, connections_of, mean, throughput

CLAIM = "iscsi.fig6"
REFERENCE = "testbed"

CCS = {"reno": "Reno", "fast": "FAST", "bic": "BIC", "htcp": "H-TCP"}

FEW = (1, 2)
"""Connections at which the paper has FAST best: fewer than 3."""

MANY = (5, 6, 8, 10)

Curves = Mapping[str, Mapping[int, float]]


@part("fig6.toml")
def figure6(results: PaperResults) -> Evaluation:
    """Throughput of both backends; the claim is held against the kernel's."""
    simulated: dict[str, dict[int, float]] = {cc: {} for cc in CCS}
    for record in sorted(results.of("fig6.toml"), key=connections_of):
        simulated[cc_of(record)][connections_of(record)] = throughput(record)
    reference = results.reference(REFERENCE)
    kernel: dict[str, dict[int, float]] = {cc: {} for cc in CCS}
    for name in reference.value:
        cc, connections = name.rsplit("_", 1)
        kernel[cc][int(connections)] = reference.median(name)
    backends = {reference.label: kernel, "simulator": simulated}
    return Evaluation(
        {CLAIM: _measured(kernel)}, [_figure(backends)], [_table(*backend) for backend in backends.items()]
    )


def _measured(found: Curves) -> dict[str, float]:
    measured: dict[str, float] = {}
    for cc, values in found.items():
        few, many = (mean({n: values[n] for n in points}) for points in (FEW, MANY))
        measured |= {f"{cc}_few": few, f"{cc}_many": many, f"{cc}_gain": many / few}
    return measured


def _figure(backends: Mapping[str, Curves]) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        panels = drawing.subplots(1, len(backends), sharey=True)
        for axes, (backend, found) in zip(panels, backends.items(), strict=True):
            framed(
                axes,
                ink,
                f"connections of the session: {backend}",
                "MB/s, reads and writes" if axes is panels[0] else "",
            )
            axes.set_xticks(sorted(next(iter(found.values()))))
            for number, (cc, values) in enumerate(found.items()):
                axes.plot(
                    *zip(*values.items(), strict=True),
                    "o-",
                    color=ink.curve(number),
                    markersize=4,
                    linewidth=1.4,
                    label=CCS[cc],
                )
        panels[0].set_ylim(bottom=0)
        legend(drawing, ink, panels[0], columns=4)

    return Figure(
        "fig6",
        CLAIM,
        "Figure 6: a session over a real TCP, and in the simulator",
        "100 Mbit/s, 40 ms, a queue of 50 packets each way; half reads, half writes of 64 KiB, 32 under way. The line "
        "carries 11.8 MB/s each way.",
        draw,
    )


def _table(backend: str, found: Curves) -> Table:
    points = sorted(next(iter(found.values())))
    rows = tuple((CCS[cc], *(f"{values[n]:.2f}" for n in points)) for cc, values in found.items())
    return Table(CLAIM, f"Throughput, MB/s, by connections: {backend}", ("congestion control", *map(str, points)), rows)
