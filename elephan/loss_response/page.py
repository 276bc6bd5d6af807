"""A congestion control as one HTML page that needs nothing else, and its figures as PNG beside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephan import units
from elephan.congestion_control import CongestionControl, header
from elephan.core import build_digest, version
from elephan.loss_response.curves import (
    AFTER_LOSS,
    LOSSES,
    RESPONSE_RTT_S,
    RTT_S,
    WINDOW,
    Curves,
    ResponseRow,
    response_text,
)
from elephan.loss_response.published import RESPONSES
from elephan.report import draw, html_table
from elephan.report.figures import Curve, SweepFigure, TimeFigure
from elephan.report.html import PAGE as REPORT_PAGE
from elephan.report.html_table import Cell, Head
from elephan.report.html_table import Line as Row
from elephan.report.metrics import Metric
from elephan.report.statistics import Estimate
from elephan.report.timeline import Line, thinned
from elephan.store.files import write_atomically

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

PAGE = Path(__file__).parent / "page"

MEAN_WINDOW = Metric(
    "mean_window_packets", "mean window", "packets", units.count, "higher", "Packets delivered per round trip."
)


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("congestion_control.html.j2")


def figures(cc: CongestionControl, curves: Curves) -> list[TimeFigure | SweepFigure]:
    """Return the figures: the window around one loss, and the mean window against the loss."""
    loss = curves.after_loss
    line = thinned(Line(loss.time_s, loss.window))
    after = TimeFigure(
        "after-loss",
        f"{cc.name}: window after one loss",
        f"{loss.sentence} One flow, one packet lost at 0 s, a window limited to {WINDOW} packets (what the path is "
        f"assumed to hold), {units.duration(RTT_S)}, no queue, {curves.of_what}.",
        units.count,
        (Curve(cc.name, 0, line),),
        False,
        float(loss.time_s[-1]),
    )
    formula = None if cc.path or curves.settings else RESPONSES.get(cc.name)
    lines = [("simulated", 0, _line([(row.loss, row.window) for row in curves.response if row.window]))]
    if formula is not None:
        given = [(row.loss, row.published) for row in curves.response if row.published is not None]
        lines.append((f"{formula.text}: {formula.source}", 1, _line(given)))
    said = "" if formula is None else " Beside it what the source says."
    response = SweepFigure(
        "response",
        f"{cc.name}: mean window by loss",
        f"Packets delivered per round trip when every 1/loss-th packet is lost; {units.duration(RESPONSE_RTT_S)}, "
        f"10 Gbit/s, {curves.of_what}.{said}",
        "loss",
        tuple((loss, f"{loss:.0e}".replace("e-0", "e-")) for loss in sorted(LOSSES)),
        MEAN_WINDOW,
        tuple(lines),
        True,
        True,
    )
    return [after, response]


def response_table(curves: Curves) -> Markup:
    """Return the table of mean windows for the page."""

    def packets(value: float | None) -> str:
        return units.count(None if value is None else round(value, 1))

    def remark(row: ResponseRow) -> str:
        return "the line is full" if row.fills_line else "" if row.steady else "not steady within the run"

    heads = [Head("loss", of_row=True), Head("simulated, packets"), Head("published, packets")]
    lines = [
        Row((Cell(f"{row.loss:g}"), Cell(packets(row.window), remark(row)), Cell(packets(row.published))))
        for row in curves.response
    ]
    return html_table.html("response", heads, lines)


def parameters_table(cc: CongestionControl) -> Markup:
    """Return the table of a congestion control's parameters for the page, what each is below it."""
    heads = [Head("name", of_row=True), Head("default"), Head("range"), Head("unit")]
    lines = [
        Row(
            (Cell(item.name), Cell(item.text(item.default)), Cell(item.range_text), Cell(item.unit_text)),
            below=item.doc,
        )
        for item in cc.parameters
    ]
    return html_table.html("parameters", heads, lines)


def _line(points: list[tuple[float, float]]) -> tuple[tuple[float, Estimate], ...]:
    return tuple((x, Estimate(y, None, 1)) for x, y in sorted(points))


def write(cc: CongestionControl, curves: Curves, folder: Path, use: Sequence[str] = ()) -> tuple[Path, list[Path]]:
    """Write NAME.html and its PNGs into `folder`; return their paths. Raises `StoreError`.

    `use` are the lines that say how to put it into use.
    """
    images = []
    drawn: list[dict[str, Any]] = []
    for number, figure in enumerate(figures(cc, curves)):
        images.append(folder / f"{cc.name}-{figure.key}.png")
        write_atomically(images[-1], draw.png(figure))
        legend = [] if isinstance(figure, TimeFigure) else [line[:2] for line in figure.lines]
        drawn.append(
            {"title": figure.title, "caption": figure.caption, "svg": draw.svg(figure, f"f{number}"), "legend": legend}
        )
    page = folder / f"{cc.name}.html"
    text = _template().render(
        cc=cc,
        kernel=cc.kernel,
        use=use,
        header=header.comment_of(cc.code),
        figures=drawn,
        response=response_table(curves),
        parameters=parameters_table(cc),
        scenarios=[("after one loss", AFTER_LOSS), ("response, loss 1e-4", response_text(1e-4))],
        version=f"{version()} (core {build_digest()})",
        light=draw.LIGHT,
        dark=draw.DARK,
        style=(REPORT_PAGE / "style.css").read_text(),
    )
    write_atomically(page, text.encode())
    return page, images
