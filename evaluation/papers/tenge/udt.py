"""Figure 11: UDT on the clean line, beside TCP."""

from __future__ import annotations

from typing import Any

from elephan.papers.drawing import framed, label_line, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, part
from elephan.record import Record
from elephan.report.draw import Ink

CLAIM = "tenge.fig11"


def transport_of(record: Record) -> str:
    """Return the name of the flow's transport."""
    udt = record.spec["flows"][0]["transport"].get("udt")
    return "tcp" if udt is None else udt["version"]


def gigabits_of(record: Record) -> float:
    """Return the goodput, Gbit/s."""
    return float(record.metrics["goodput_bps"] or 0) / 1e9


@part("fig11.toml")
def figure11(results: PaperResults) -> Evaluation:
    """Goodput by transport."""
    runs = {transport_of(record): (record, results.series(record)) for record in results.of("fig11.toml")}
    measured = {f"goodput_{name.replace('-', '_')}": gigabits_of(record) for name, (record, _) in runs.items()}

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.subplots()
        framed(axes, ink, "time, s", "goodput, Gbit/s")
        for number, (name, (_, seen)) in enumerate(runs.items()):
            time_s, goodput = (seen.flow.column(key).to_numpy() for key in ("time_s", "goodput_bps"))
            axes.plot(time_s, goodput / 1e9, color=ink.curve(number), label=name)
        axes.axhline(5.4, color=ink.text, linewidth=0.9, linestyle=(0, (1, 2)))
        label_line(axes, 15, 5.1, "the paper: about 5.4", ink.text, ha="center")
        axes.set_ylim(0, 6)
        legend(drawing, ink, axes)

    figure = Figure(
        "fig11",
        CLAIM,
        "Figure 11: UDT on the clean line",
        "One flow between the paper's hosts, of which the sender is the limit; TCP with Reno.",
        draw,
        (7.4, 3.2),
    )
    return Evaluation({CLAIM: measured}, [figure], [])
