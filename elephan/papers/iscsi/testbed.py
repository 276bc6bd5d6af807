"""Figure 6: a session over a real TCP, by stack and connections; and the same in the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elephan.papers.drawing import framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.papers.iscsi.session import connections_of, mean, stack_of, throughput
from elephan.report.draw import Ink

CLAIM = "iscsi.fig6"
REFERENCE = "testbed"

STACKS = {"reno": "Reno", "fast": "FAST", "bic": "BIC", "htcp": "H-TCP"}

FEW = (1, 2)
"""Connections at which the paper has FAST best: fewer than 3."""

MANY = (5, 6, 8, 10)

Curves = Mapping[str, Mapping[int, float]]


@part("fig6.toml")
def figure6(results: PaperResults) -> Evaluation:
    """Throughput of both grounds; the claim is held against the kernel's."""
    simulated: dict[str, dict[int, float]] = {stack: {} for stack in STACKS}
    for record in sorted(results.of("fig6.toml"), key=connections_of):
        simulated[stack_of(record)][connections_of(record)] = throughput(record)
    reference = results.reference(REFERENCE)
    kernel: dict[str, dict[int, float]] = {stack: {} for stack in STACKS}
    for name, value in reference.value.items():
        stack, connections = name.rsplit("_", 1)
        kernel[stack][int(connections)] = value
    grounds = {reference.label: kernel, "simulator": simulated}
    return Evaluation({CLAIM: _measured(kernel)}, [_figure(grounds)], [_table(*ground) for ground in grounds.items()])


def _measured(found: Curves) -> dict[str, float]:
    measured = {}
    for stack, values in found.items():
        few, many = (mean({n: values[n] for n in points}) for points in (FEW, MANY))
        measured |= {f"{stack}_few": few, f"{stack}_many": many, f"{stack}_gain": many / few}
    return measured


def _figure(grounds: Mapping[str, Curves]) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        panels = drawing.subplots(1, len(grounds), sharey=True)
        for axes, (ground, found) in zip(panels, grounds.items(), strict=True):
            framed(
                axes,
                ink,
                f"connections of the session: {ground}",
                "MB/s, reads and writes" if axes is panels[0] else "",
            )
            axes.set_xticks(sorted(next(iter(found.values()))))
            for number, (stack, values) in enumerate(found.items()):
                axes.plot(
                    *zip(*values.items(), strict=True),
                    "o-",
                    color=ink.curve(number),
                    markersize=4,
                    linewidth=1.4,
                    label=STACKS[stack],
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


def _table(ground: str, found: Curves) -> Table:
    points = sorted(next(iter(found.values())))
    rows = tuple((STACKS[stack], *(f"{values[n]:.2f}" for n in points)) for stack, values in found.items())
    return Table(CLAIM, f"Throughput, MB/s, by connections: {ground}", ("stack", *map(str, points)), rows)
