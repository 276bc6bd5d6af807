"""The page of a paper: claims, numbers, verdicts and figures in one HTML file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephan import user_files
from elephan.api import Results
from elephan.papers import chance, drawing
from elephan.papers.claims import Outcome, Paper, Runs
from elephan.papers.console import kernel_number, our_number, our_order, paper_number, summary
from elephan.papers.evaluation import Evaluation
from elephan.papers.kernel_column import KernelColumn
from elephan.papers.verdict import Judgement, Verdict, percent
from elephan.report import draw, html_table
from elephan.report.figures import slug
from elephan.report.html import PAGE as REPORT_PAGE
from elephan.report.html import facts_of
from elephan.report.html_table import Cell, Head, Line
from elephan.store.files import write_atomically

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

PAGE = Path(__file__).parent / "page"

LONG_CHARS = 48
"""Letters of the sizes of an order beyond which they stand below its row: a wide column makes blocks of all rows."""

CLASSES = {
    Verdict.REPRODUCED: "good",
    Verdict.ORDERING_HOLDS: "fair",
    Verdict.NOT_DECIDED: "fair",
    Verdict.DEPENDS: "fair",
    Verdict.DIFFERS: "poor",
    Verdict.HELD: "good",
    Verdict.NOT_YET: "open",
}


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["verdict_class"] = lambda verdict: CLASSES[verdict]
    return environment.get_template("paper.html.j2")


def write(
    paper: Paper,
    judgements: Sequence[Judgement],
    evaluation: Evaluation,
    results: Sequence[tuple[Runs, Results]],
    folder: Path,
    kernel: KernelColumn | None = None,
) -> tuple[Path, tuple[Path, ...]]:
    """Write paper.html and a PNG per figure into `folder`; return their paths. Raises `StoreError`."""
    images = []
    for figure in evaluation.figures:
        images.append(folder / f"{figure.key}.png")
        write_atomically(images[-1], drawing.png(figure))
    page = folder / "paper.html"
    write_atomically(page, render(paper, judgements, evaluation, results, kernel).encode())
    return page, tuple(images)


def render(
    paper: Paper,
    judgements: Sequence[Judgement],
    evaluation: Evaluation,
    results: Sequence[tuple[Runs, Results]],
    kernel: KernelColumn | None = None,
) -> str:
    """Return the page."""
    records = [record for _, part in results for record in part]
    return _template().render(
        paper=paper,
        lead=summary(tuple(judgements)),
        claims=[_claim(paper, item, evaluation, results, kernel) for item in judgements],
        references=[reference if kernel is None else kernel.instead_of(reference) for reference in paper.references],
        kernel=kernel,
        facts=[fact for fact in facts_of(records) if fact[0] not in ("scenario", "set")] if records else [],
        scenarios=list(dict.fromkeys((runs.file, _text(paper.folder / runs.file)) for runs, _ in results)),
        light=draw.LIGHT,
        dark=draw.DARK,
        style=(REPORT_PAGE / "style.css").read_text() + (PAGE / "paper.css").read_text(),
    )


def _text(scenario: Path) -> str:
    return user_files.read_text(scenario, user_files.TOML)


def _claim(
    paper: Paper,
    item: Judgement,
    evaluation: Evaluation,
    results: Sequence[tuple[Runs, Results]],
    kernel: KernelColumn | None,
) -> dict[str, Any]:
    return {
        "claim": item.claim,
        "chance": chance.words_on(item.claim, results),
        "verdict": item.verdict,
        "because": item.because,
        "numbers": _numbers(item, kernel) if item.values or item.orders or item.regions else "",
        "commands": [_command(paper, runs) for runs in item.claim.runs],
        "figures": [
            {"title": figure.title, "caption": figure.caption, "svg": drawing.svg(figure), "key": figure.key}
            for figure in evaluation.figures
            if figure.claim == item.claim.id
        ],
        "tables": [
            (table, _table(f"table{number}-{slug(item.claim.id)}", table.heads, table.rows))
            for number, table in enumerate(evaluation.tables)
            if table.claim == item.claim.id
        ],
    }


def _numbers(item: Judgement, kernel: KernelColumn | None) -> Markup:
    """Return the table of a claim's values and orders, beside what the paper says."""
    ours = ("simulator", "kernel") if kernel is not None else ("measured",)
    blank = [Cell("")] * (len(ours) - 1)
    lines = []
    for check in item.values:
        measured = [Cell(our_number(check), kind="" if check.holds else "outside")]
        if kernel is not None:
            measured.append(Cell(kernel_number(check, kernel.of(item.claim.id, check.value.name))))
        off = "" if check.deviation is None else percent(check.deviation)
        tolerance = "equal" if check.value.tolerance == 0 else f"± {check.value.tolerance * 100:g} %"
        cells = (Cell(check.value.label), Cell(paper_number(check)), *measured, Cell(off), Cell(tolerance))
        lines.append(Line(cells))
    for order in item.orders:
        kind = "outside" if order.outcome is Outcome.BROKEN else ""
        sizes, below = our_order(order, item.claim.unit), ""
        if len(sizes) > LONG_CHARS:
            # As wide as that it would make blocks of all rows.
            sizes, below = "", sizes
        cells = (Cell(order.order.label), Cell(""), Cell(sizes, kind=kind), *blank, Cell(order.outcome.value), Cell(""))
        lines.append(Line(cells, below))
    for region in item.regions:
        by = f"{region.region.label} (by {', '.join(region.region.on)})"
        lines.append(Line((Cell(by), Cell(""), Cell(region.said), *blank, Cell(""), Cell(""))))
    heads = [Head("quantity", of_row=True), *map(Head, ("paper", *ours, "difference", "tolerance"))]
    return html_table.html(f"numbers-{slug(item.claim.id)}", heads, lines)


def _table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """Return a table whose first column names the row."""
    titles = [Head(head, of_row=number == 0) for number, head in enumerate(heads)]
    return html_table.html(name, titles, [Line(tuple(map(Cell, row))) for row in rows])


def _command(paper: Paper, runs: Runs) -> str:
    """Return the command that does the same runs alone."""
    changes = " ".join(f"--set {key}={value}" for key, value in runs.set.items())
    return re.sub(r"\s+", " ", f"elephan run {_in_tree(paper.folder / runs.file)} {changes}").strip()


def _in_tree(file: Path) -> Path:
    """Return a file of the source tree as seen from its root, another one as it is."""
    root = Path(__file__).resolve().parents[2]
    return file.resolve().relative_to(root) if file.resolve().is_relative_to(root) else file
