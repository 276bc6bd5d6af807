"""Print a paper: its claims, the paper's numbers beside ours, the verdicts and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elephan.papers.chance import words_on
from elephan.papers.claims import Outcome
from elephan.papers.evaluation import Table
from elephan.papers.spread import Measured, Spread, shown, shown_with_range
from elephan.papers.verdict import Judgement, OrderCheck, ValueCheck, Verdict
from elephan.units import pluralize

if TYPE_CHECKING:
    from rich.console import Console

    from elephan.papers.paper_run import PaperRun

STYLES = {
    Verdict.REPRODUCED: "bold green",
    Verdict.ORDERING_HOLDS: "bold yellow",
    Verdict.NOT_DECIDED: "bold yellow",
    Verdict.DEPENDS: "bold yellow",
    Verdict.DIFFERS: "bold red",
    Verdict.HELD: "bold green",
    Verdict.NOT_YET: "dim",
}


EXPLAINED = (Verdict.ORDERING_HOLDS, Verdict.NOT_DECIDED, Verdict.DEPENDS, Verdict.DIFFERS)
"""Verdicts after which the claim's reasons are shown."""


OUTCOME_STYLES = {Outcome.HOLDS: "", Outcome.NOT_DECIDED: "yellow", Outcome.BROKEN: "red"}


def summary(judgements: tuple[Judgement, ...]) -> str:
    """Return how many claims got which verdict, in a sentence."""
    counts = {verdict: sum(1 for item in judgements if item.verdict is verdict) for verdict in Verdict}
    parts = [f"{count} {verdict.value}" for verdict, count in counts.items() if count]
    return f"{pluralize(len(judgements), 'claim')}: {', '.join(parts)}."


def paper_number(check: ValueCheck) -> str:
    """Return the paper's number as the paper writes it, with its unit."""
    value = check.value.paper
    digits = f"{value:.2f}" if check.unit == "MB/s" and value >= 20 else shown(value)
    return _with_unit(digits, check.unit)


def our_number(check: ValueCheck) -> str:
    """Return the measured number with its unit, of repetitions the median and the range."""
    return _with_unit(shown_with_range(check.spread), check.unit)


def kernel_number(check: ValueCheck, measured: Measured | None) -> str:
    """Return what the kernel gave, as `our_number`; empty where it was not asked."""
    return "" if measured is None else _with_unit(shown_with_range(Spread.of(measured)), check.unit)


def our_order(check: OrderCheck, unit: str) -> str:
    """Return the measured sizes in the paper's order, with their unit, or that of the claim."""
    own = check.order.unit
    return _with_unit(", ".join(map(shown_with_range, check.spreads)), unit if own is None else own)


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}".rstrip()


def show(done: PaperRun, console: Console) -> None:
    """Print everything on a rich console."""
    from rich.table import Table as RichTable
    from rich.text import Text

    console.print(Text(done.paper.title, style="bold"))
    table = RichTable(box=None, header_style="bold", pad_edge=False)
    heads = [("claim", "left"), ("quantity", "left"), ("paper", "right")]
    kernel = done.kernel
    heads += [("measured", "right")] if kernel is None else [("simulator", "right"), ("kernel", "right")]
    for head, justify in heads:
        table.add_column(head, justify=justify, overflow="fold")  # type: ignore[arg-type]  # a plain str
    table.add_column("verdict", overflow="fold")
    for item in done.judgements:
        verdict = Text(item.verdict.value, style=STYLES[item.verdict])
        if not item.values:
            none = [""] * (len(heads) - 2)
            table.add_row(Text(item.claim.id, style="bold"), Text(item.claim.title), *none, verdict)
            for order in item.orders:
                sizes = our_order(order, item.claim.unit)
                table.add_row("", Text(order.order.label), "", Text(sizes, style=OUTCOME_STYLES[order.outcome]))
            for region in item.regions:
                table.add_row("", Text(region.region.label), "", Text(region.said))
            continue
        for index, check in enumerate(item.values):
            first = index == 0
            measured = Text(our_number(check), style="" if check.holds else "red")
            theirs = [] if kernel is None else [Text(kernel_number(check, kernel.of(item.claim.id, check.value.name)))]
            table.add_row(
                Text(item.claim.id if first else "", style="bold"),
                Text(check.value.label),
                Text(paper_number(check)),
                measured,
                *theirs,
                verdict if first else Text(""),
            )
    console.print(table)
    for extra in done.evaluation.tables:
        _show_table(extra, console)
    console.print()
    for item in done.judgements:
        line = Text.assemble(
            (item.claim.id, "bold"), " ", (item.verdict.value, STYLES[item.verdict]), f": {item.because}."
        )
        console.print(line)
        if item.verdict in EXPLAINED and item.claim.why:
            console.print(Text(f"  {item.claim.why}", style="dim"))
        if drawn := words_on(item.claim, done.results):
            console.print(Text(f"  {drawn}", style="dim"))
    for note in kernel.lines if kernel is not None else ():
        console.print(Text(note, style="dim"))
    console.print()
    console.print(Text(summary(done.judgements), style="bold"))


def _show_table(extra: Table, console: Console) -> None:
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        box=None,
        header_style="bold",
        pad_edge=False,
        title=extra.title,
        title_style="bold",
        title_justify="left",
        caption=extra.caption,
        caption_justify="left",
    )
    for index, head in enumerate(extra.heads):
        drawn.add_column(head, justify="left" if index == 0 else "right", overflow="fold")
    for row in extra.rows:
        drawn.add_row(*(Text(cell) for cell in row))
    console.print()
    console.print(drawn)
