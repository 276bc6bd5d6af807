"""Figure 6: a session over a real TCP, by congestion control and connections; and the same in the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.papers.spread import Measured, Spread
from elephan.report.draw import Ink

from .session import cc_of, connections_of, throughput

CLAIM = "iscsi.fig6"
REFERENCE = "testbed"

CCS = {"reno": "Reno", "fast": "FAST", "bic": "BIC", "htcp": "H-TCP"}

FEW = (1, 2)
"""Connections at which the paper has FAST best: fewer than 3."""

CONNECTIONS = (1, 2, 3, 5, 8, 10)
"""Measured over the kernel, and simulated."""

TURN = 3
"""FAST's slope is taken from 1 connection to here and from here to the most: the paper's text turns at 3."""

Curves = Mapping[str, Mapping[int, Spread]]
"""MB/s of each congestion control by connections, over repetitions."""


@part("fig6.toml")
def figure6(results: PaperResults) -> Evaluation:
    """Throughput of both backends; the claim is held against the kernel's."""
    simulated: dict[str, dict[int, list[float]]] = {cc: {} for cc in CCS}
    for record in sorted(results.of("fig6.toml"), key=connections_of):
        simulated[cc_of(record)].setdefault(connections_of(record), []).append(throughput(record))
    reference = results.reference(REFERENCE)
    kernel: dict[str, dict[int, Measured]] = {cc: {} for cc in CCS}
    for name, value in reference.value.items():
        cc, connections = name.rsplit("_", 1)
        kernel[cc][int(connections)] = value
    backends = {reference.label: spreads_of(kernel), "simulator": spreads_of(simulated)}
    return Evaluation(
        {CLAIM: measured_of(backends[reference.label])},
        [_figure(backends)],
        [_table(*backend) for backend in backends.items()],
    )


def spreads_of(found: Mapping[str, Mapping[int, Measured]]) -> Curves:
    """Return measured numbers as spreads."""
    return {cc: {n: Spread.of(values[n]) for n in sorted(values)} for cc, values in found.items()}


def measured_of(found: Curves) -> dict[str, Measured]:
    """Return the claim's quantities. Raises KeyError when a point is missing."""
    measured: dict[str, Measured] = {
        f"{cc}_{n}": found[cc][n].values for cc, n in product(CCS, CONNECTIONS)
    }
    first, last = CONNECTIONS[0], CONNECTIONS[-1]
    # Repetitions at two points have nothing in common on a kernel: each at one is set beside each at the other.
    for cc in CCS:
        ends = product(found[cc][first].values, found[cc][last].values)
        measured[f"{cc}_gain"] = [many / few for few, many in ends]
    for name, few, many in (("early", first, TURN), ("late", TURN, last)):
        pairs = product(found["fast"][few].values, found["fast"][many].values)
        measured[f"fast_slope_{name}"] = [(high - low) / (many - few) for low, high in pairs]
    return {**measured, "nothing": 0.0}


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
                axes.errorbar(
                    list(values),
                    [spread.median for spread in values.values()],
                    [
                        [spread.median - spread.low for spread in values.values()],
                        [spread.high - spread.median for spread in values.values()],
                    ],
                    fmt="o-",
                    capsize=2,
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
        "carries 11.8 MB/s each way. FAST's alpha is 20. Medians; bars from the least to the most of the repetitions.",
        draw,
    )


def _table(backend: str, found: Curves) -> Table:
    points = sorted(next(iter(found.values())))
    rows = tuple((CCS[cc], *(str(values[n]) for n in points)) for cc, values in found.items())
    return Table(CLAIM, f"Throughput, MB/s, by connections: {backend}", ("congestion control", *map(str, points)), rows)
