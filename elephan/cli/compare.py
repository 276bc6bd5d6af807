"""`elephan compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elephan.cli.console import console, counted, emit, say
from elephan.cli.options import Again, Changes, File, NoReport, On, Out, Seed, StoreAt, Workers

if TYPE_CHECKING:
    from rich.console import Console

    from elephan.compare import Comparison

DEFAULT_OUT = Path("out")

WIDE = 150
"""Columns of a terminal from which the words stand in the table; below, they stand under it."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(compare)


def compare(
    file: File,
    stacks: Annotated[
        str,
        typer.Option(
            metavar="LIST", help='"all", or names and .c files: reno,cubic(beta=1/2),./mine.c', show_default=True
        ),
    ] = "all",
    on: On = "sim",
    by: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="What the rank is by: goodput, lag, latency, completion, neighbour, queue, drops, retransmissions. "
            "Default: what the workload is about.",
            show_default=False,
        ),
    ] = None,
    set_: Changes = None,
    seed: Seed = None,
    json: Annotated[bool, typer.Option("--json", help="Print one array of rows by rank, and nothing else.")] = False,
    out: Out = None,
    store: StoreAt = None,
    workers: Workers = None,
    again: Again = False,
    no_report: NoReport = False,
) -> None:
    """Run a scenario under every stack, alone and beside a reno flow; print one ranked table and why each stands there.

    Every run is stored, and what is in the store already is not run again.
    """
    from elephan import grounds
    from elephan.compare import check
    from elephan.compare import compare as run
    from elephan.sweep.progress import Bars

    names = grounds.named(on)
    if len(names) > 1:
        # Both before the first: what the second refuses is not to be said after an hour of the first.
        check(file, stacks, set_ or [], on=on, seed=seed)
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(names):
        done = run(
            file,
            stacks,
            set_ or [],
            on=name,
            by=by,
            seed=seed,
            workers=workers,
            store=store,
            again=again,
            watcher=Bars(),
        )
        rows += as_rows(done)
        if not json:
            if len(names) > 1:
                emit(f"{chr(10) if number else ''}on {name}:")
            show(done, console())
        if not no_report and (out is not None or not json):
            folder = out or DEFAULT_OUT / f"compare-{Path(file).stem}"
            _write(done, folder if len(names) == 1 else folder / name)
    if json:
        import json as library

        emit(library.dumps(rows, indent=1, ensure_ascii=False))


def _write(done: Comparison, folder: Path) -> None:
    from elephan.compare.page import write
    from elephan.report.units import things

    with counted("drawing") as tell:
        page, images = write(done, folder, tell)
    say(f"report: {page} ({things(len(images), 'plot')} beside it)")


def as_rows(done: Comparison) -> list[dict[str, Any]]:
    """Return the rows as JSON holds them: numbers in the unit of their name, ids of the runs behind them."""
    from dataclasses import asdict

    repetitions = len(done.alone) // max(1, len(done.rows))
    rows = []
    for number, row in enumerate(done.rows):
        part = slice(number * repetitions, (number + 1) * repetitions)
        rows.append(
            {
                "rank": row.rank,
                "by": done.by,
                "ground": done.ground,
                **asdict(row.numbers),
                "queue_s": row.queue_s,
                "why": list(row.why),
                "runs_alone": [record.id for record in done.alone.records[part]],
                "runs_beside_reno": [record.id for record in done.beside.records[part]],
            }
        )
    return rows


def show(done: Comparison, console: Console) -> None:
    """Print the table, the bars, and what the numbers are of."""
    from rich.table import Table
    from rich.text import Text

    from elephan.compare.table import caption, columns

    wide = console.width >= WIDE
    table = Table(box=None, header_style="bold", pad_edge=False)
    heads = columns(done)
    for head in heads:
        table.add_column(
            head.title, justify="left" if head.title == "stack" else "right", no_wrap=head.title == "stack"
        )
    if wide:
        table.add_column("why", overflow="fold", min_width=30)
    for row in done.rows:
        cells = [Text(head.show(row), style="bold" if head.title == "stack" else "") for head in heads]
        table.add_row(*cells, *([Text("; ".join(row.why))] if wide else []))
    console.print(table)
    if not wide:
        console.print()
        for row in done.rows:
            console.print(Text.assemble((f"{row.rank} {row.stack}: ", "bold"), "; ".join(row.why)))
    console.print()
    _print_bars(done, console)
    console.print()
    console.print(Text(caption(done), style="dim"))
    for text in faults(done):
        console.print(Text(text, style="bold red"))


def faults(done: Comparison) -> list[str]:
    """Return a line about runs whose network or senders were not what the scenario says, if there were any."""
    records = [*done.alone.records, *done.beside.records]
    told = [note for record in records for note in record.notes if note.startswith(("EMULATOR:", "TRAFFIC:"))]
    if not told:
        return []
    bad = sum(any(note in told for note in record.notes) for record in records)
    return [f"{bad} of {len(records)} runs are not to be trusted, such as: {told[0]}"]


def _print_bars(done: Comparison, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    from elephan.report import units
    from elephan.report.textplot import bar

    most = max(row.numbers.goodput_bps for row in done.rows) or 1.0
    kept = [row.numbers.neighbour_kept or 0.0 for row in done.rows]
    longest = max([1.0, *kept])
    table = Table(box=None, header_style="dim", pad_edge=False)
    for head in ("", "goodput", "", "a reno neighbour keeps", ""):
        table.add_column(head, no_wrap=True)
    for row, share in zip(done.rows, kept, strict=True):
        numbers = row.numbers
        table.add_row(
            Text(row.stack),
            Text(bar(numbers.goodput_bps / most, 24), style="cyan"),
            Text(units.rate(numbers.goodput_bps)),
            Text(bar(share / longest, 24), style="yellow"),
            Text(units.share(numbers.neighbour_kept)),
        )
    console.print(table)
