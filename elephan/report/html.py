"""The report: one HTML file that needs nothing else, and a PNG of each figure beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from elephan import units
from elephan.record import Record
from elephan.report import draw, html_table
from elephan.report import table as table_module
from elephan.report.cdf import distribution_panels
from elephan.report.figures import (
    Colours,
    Figure,
    Loader,
    LoadFigure,
    Panel,
    SweepFigure,
    panels_of,
    slug,
    sweep_figures,
)
from elephan.report.headline import Headline, headline_of
from elephan.report.html_table import Cell, Head, Line
from elephan.report.load_figure import load_figures
from elephan.report.management import Managed, managed_of
from elephan.report.metrics import LINKS
from elephan.report.other_traffic import other_traffic_of
from elephan.report.point_table import table_of
from elephan.report.points import Point, points_of
from elephan.report.table import Table
from elephan.store.files import write_atomically

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

OnProgress = Callable[[int, int], None]
"""Called with the numbers of done and all."""

PAGE = Path(__file__).parent / "page"


@dataclass(frozen=True)
class Written:
    """Files of a report."""

    html: Path
    images: tuple[Path, ...]


@dataclass(frozen=True)
class _Drawn:
    """A figure for the page."""

    title: str
    caption: str
    svg: str


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["breakable"] = breakable
    return environment.get_template("report.html.j2")


def breakable(label: str) -> Markup:
    """Return a label that may be broken where its parts begin, not in the middle of a word."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"([(_,])", r"\1<wbr>", str(escape(label))))


@dataclass(frozen=True)
class _Content:
    """All that a report shows, before it is drawn."""

    points: Sequence[Point]
    headline: Headline | None
    distributions: list[Panel]
    panels: list[Panel]
    sweeps: list[SweepFigure | LoadFigure]

    @classmethod
    def of(cls, records: Sequence[Record], load: Loader) -> _Content:
        points = points_of(records)
        colours = Colours()
        # First, so that the colours of the headline's bars are those of the congestion controls in every figure.
        headline = headline_of(points, colours)
        distributions = distribution_panels(points, colours)
        panels = panels_of(points, load, colours)
        return cls(
            points, headline, distributions, panels, [*load_figures(points, colours), *sweep_figures(points, colours)]
        )

    def figures(self) -> dict[str, Figure]:
        """Return the figures by the names of their files."""
        found: dict[str, Figure] = {}
        for group in (self.distributions, self.panels):
            for panel in group:
                for figure in panel.figures:
                    found[f"{panel.slug}-{figure.key}" if len(group) > 1 else figure.key] = figure
        return found | {sweep.key: sweep for sweep in self.sweeps}

    def page(self, records: Sequence[Record], load: Loader, drawn: dict[int, str]) -> str:
        """Return the page; `drawn` has each figure's drawing by the figure's `id`."""
        return render(
            records,
            table_of(records),
            self.headline,
            self.distributions,
            self.panels,
            self.sweeps,
            drawn,
            len(self.points),
            managed_of(records, load),
            other_traffic_of(records),
        )


def write_report(
    records: Sequence[Record], load: Loader, folder: Path, on_progress: OnProgress | None = None
) -> Written:
    """Write report.html and the PNGs into `folder`. Raises `StoreError` when it cannot be written.

    `on_progress` receives how many of how many figures are drawn.
    """
    content = _Content.of(records, load)
    figures = content.figures()
    images = []
    drawn: dict[int, str] = {}
    for number, (name, item) in enumerate(figures.items()):
        if on_progress is not None:
            on_progress(number, len(figures))
        images.append(_write_image(folder / f"{name}.png", draw.png(item)))
        drawn[id(item)] = draw.svg(item, f"f{number}")
    html = folder / "report.html"
    write_atomically(html, content.page(records, load, drawn).encode())
    return Written(html, tuple(images))


def page_of(records: Sequence[Record], load: Loader) -> str:
    """Return the report's page alone."""
    content = _Content.of(records, load)
    drawn = {id(item): draw.svg(item, f"f{number}") for number, item in enumerate(content.figures().values())}
    return content.page(records, load, drawn)


def _write_image(path: Path, content: bytes) -> Path:
    write_atomically(path, content)
    return path


def render(
    records: Sequence[Record],
    table: Table,
    headline: Headline | None,
    distributions: Sequence[Panel],
    panels: Sequence[Panel],
    sweeps: Sequence[SweepFigure | LoadFigure],
    svgs: dict[int, str],
    points: int,
    managed: Sequence[Managed] = (),
    other_traffic: Table | None = None,
) -> str:
    """Return the page; `svgs` has each figure's drawing by the figure's `id`."""
    first = records[0]

    def drawn(group: Sequence[Panel]) -> list[tuple[Panel, list[_Drawn]]]:
        def figure(item: Figure) -> _Drawn:
            return _Drawn(item.title, item.caption, svgs[id(item)])

        return [(panel, [figure(item) for item in panel.figures]) for panel in group]

    return _template().render(
        title=first.scenario.title or first.scenario.name,
        description=first.scenario.description,
        table=table,
        results=results_table(table),
        other_traffic=other_traffic,
        other_results=results_table(other_traffic, "other-traffic") if other_traffic else "",
        headline=headline,
        managed=[(item, ledger_table(item, f"ledger{number}")) for number, item in enumerate(managed)],
        distributions=drawn(distributions),
        panels=drawn(panels),
        sweeps=[
            (_Drawn(item.title, item.caption, svgs[id(item)]), [line[:2] for line in item.lines]) for item in sweeps
        ],
        not_drawn=max(0, points - sum(len(panel.legend) for panel in panels)) if panels else 0,
        facts=facts_of(records),
        scenarios=scenarios_of(records),
        links=links_table(first) if first.links else "",
        runs=runs_table(records),
        light=draw.LIGHT,
        dark=draw.DARK,
        style=(PAGE / "style.css").read_text(),
    )


def results_table(table: Table, name: str = "results") -> Markup:
    """Return a table of results for the page, which knows it by `name`."""
    heads = [Head(head, of_row=True) for head in table.heads]
    heads += [Head(column.title, column.text) for column in table.columns]

    def cell(shown: table_module.Cell) -> Cell:
        return Cell(shown.text, f"± {shown.spread}" if shown.spread else "", "best" if shown.best else "")

    lines = [Line((*map(Cell, row.heads), *map(cell, row.cells)), kind=_kind(row)) for row in table.rows]
    return html_table.html(name, heads, lines)


def _kind(row: table_module.Row) -> str:
    return "run" if row.of_run else "knee" if row.is_knee else ""


LEDGER_HEADS = ("at", "flow", "what")
"""Columns of a manager's ledger that name the row."""


def ledger_table(item: Managed, name: str, nonce: str = "") -> Markup:
    """Return the table of a manager's ledger for the page; `nonce` as `html_table.html` takes it."""
    heads = [Head(head, text, of_row=head in LEDGER_HEADS) for head, text in item.heads]
    return html_table.html(name, heads, [Line(tuple(Cell(text) for text in row)) for row in item.rows], nonce)


def links_table(record: Record) -> Markup:
    """Return the table of a record's links for the page."""
    heads = [Head("link", of_row=True), *(Head(item.title, item.text) for item in LINKS.values())]
    lines = [
        Line((Cell(str(link["name"])), *(Cell(item.show(link.get(item.name))) for item in LINKS.values())))
        for link in record.links
    ]
    return html_table.html("links", heads, lines)


def runs_table(records: Sequence[Record]) -> Markup:
    """Return the table of the stored runs for the page."""
    heads = [Head("id", of_row=True), Head("seed"), Head("processor time")]
    lines = [
        Line((Cell(record.id), Cell(str(record.seed)), Cell(units.duration(record.metrics.get("cpu_s")))))
        for record in records
    ]
    return html_table.html("runs", heads, lines)


def facts_of(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Return the report's facts about its own runs."""
    first = records[0]
    seeds = sorted({record.seed for record in records})
    host = first.host
    lasted = {
        words: sum(record.metrics.get("simulated_s") or 0 for record in records if record.backend == backend)
        for backend, words in (("sim", "simulated"), ("kernel", "over the kernel's TCP"), ("hosts", "between hosts"))
        if any(record.backend == backend for record in records)
    }
    length = " and ".join(f"{units.duration(seconds)} {words}" for words, seconds in lasted.items())
    cpu = sum(record.metrics.get("cpu_s") or 0 for record in records)
    facts = [
        ("scenario", first.scenario.file or first.scenario.name),
        ("backend", ", ".join(dict.fromkeys(record.backend for record in records))),
        ("runs", f"{len(records)}, {length} in {units.duration(cpu)} of processor time"),
        ("seeds", ", ".join(map(str, seeds[:12])) + (" …" if len(seeds) > 12 else "")),
        ("elephan", f"{first.version} (core {host.get('build', '')})"),
        ("host", f"{host.get('cpu', '')}, {host.get('cores', '')} cores, {host.get('kernel', '')}"),
        *_of_hosts(records),
        ("python", str(host.get("python", ""))),
        ("date", max(record.created for record in records).replace("T", " ").replace("Z", " UTC")),
    ]
    if first.scenario.overrides:
        facts.insert(1, ("set", ", ".join(first.scenario.overrides)))
    for item in {item.sha256: item for record in records for item in record.inputs}.values():
        facts.append(("input", f"{Path(item.path).name}, {units.size(item.bytes)}, sha256 {item.sha256[:16]}"))
    return facts


def _of_hosts(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Return the two hosts of each pair that runs went between, once."""
    ends = [record.host[side] for record in records for side in ("left", "right") if side in record.host]
    lines = dict.fromkeys(
        f"{end['name']} ({end['address']}): Linux {end.get('kernel', '')}, {end.get('cores', '')} cores" for end in ends
    )
    return [("between", "; ".join(lines))] if lines else []


def scenarios_of(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Return each scenario's name and text, once."""
    return list(dict.fromkeys((record.scenario.name, record.scenario.text) for record in records))


def folder_of(records: Sequence[Record], base: Path) -> Path:
    """Return the default folder of a report, named after the scenario."""
    return base / (slug(records[0].scenario.name) or "report")
