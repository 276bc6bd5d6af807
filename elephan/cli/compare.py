"""`elephan compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elephan.cli.console import console, counted, emit, say
from elephan.cli.options import Again, Changes, File, NoReport, On, Out, Seed, StoreAt, Workers

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from elephan.compare import Comparison

DEFAULT_OUT = Path("out")

WIDE = 150
"""Columns of a terminal from which the words stand in the table; below, they stand under it."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(compare)


def compare(
    file: File,
    congestion_controls: Annotated[
        str,
        typer.Option(
            "--cc",
            metavar="LIST",
            help='"all", or names and .c files: reno,cubic(beta=1/2),./mine.c',
            show_default=True,
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
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="For all repetitions: processor time such as 1h, on the backend kernel real time. Default: 10min, on "
            "kernel 1h.",
            show_default=False,
        ),
    ] = None,
    harm: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=SHARE",
            help="Most packets that a [[background]] may lose, such as calls=0.1%: a congestion control under which it "
            "loses more ranks behind the others.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one array of rows by rank, and nothing else.")] = False,
    out: Out = None,
    store: StoreAt = None,
    workers: Workers = None,
    again: Again = False,
    no_report: NoReport = False,
) -> None:
    """Run a scenario under every congestion control, alone and beside a reno flow; print one ranked table and why each
    stands there.

    Where something is drawn by chance it is repeated, as often as run.repetitions says, else as often as the losses
    need within the budget. Every run is stored, and what is in the store already is not run again.
    """
    from elephan import backends
    from elephan.compare import check
    from elephan.compare import compare as run
    from elephan.sweep.progress import Bars

    names = backends.named(on)
    if len(names) > 1:
        # Check both before the first run: a refusal by the second would otherwise come after an hour of the first.
        check(file, congestion_controls, set_ or [], on=on, seed=seed)
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(names):
        done = run(
            file,
            congestion_controls,
            set_ or [],
            on=name,
            by=by,
            seed=seed,
            workers=workers,
            store=store,
            again=again,
            watcher=Bars(),
            budget=budget,
            harm=harm,
            say=None if json else say,
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
    from elephan.units import pluralize

    with counted("drawing") as on_progress:
        page, images = write(done, folder, on_progress)
    say(f"report: {page} ({pluralize(len(images), 'plot')} beside it)")


def as_rows(done: Comparison) -> list[dict[str, Any]]:
    """Return the rows as JSON holds them: means in the unit of their name, half of their 95 % intervals (null: one run;
    0: nothing is drawn by chance), ids of the runs behind them.
    """
    from elephan.compare.other_traffic import as_numbers
    from elephan.compare.run_metrics import NUMBERS, number_of
    from elephan.compare.table import in_use

    repetitions = done.plan.repetitions
    rows = []
    for number, row in enumerate(done.rows):
        part = slice(number * repetitions, (number + 1) * repetitions)
        numbers = row.numbers
        means = {name: numbers.estimate(number_of(name)) for name in NUMBERS}
        means |= {"neighbour_kept": numbers.neighbour_kept, "queue_s": row.queue_s}
        rows.append(
            {
                "rank": row.rank,
                "by": done.by,
                "backend": done.backend,
                "congestion_control": row.cc,
                "control": done.alone.records[part][0].flows[0].get("control"),
                **{name: None if found is None else found.mean for name, found in means.items()},
                "half_widths": {name: None if found is None else found.half_width for name, found in means.items()},
                "path_packets": numbers.path_packets,
                "repetitions": repetitions,
                "exact": numbers.exact,
                "why": list(row.why),
                **({"other_traffic": others} if (others := as_numbers(done.alone.records[part])) else {}),
                "in_use": in_use(done, row),
                "runs_alone": [record.id for record in done.alone.records[part]],
                "runs_beside_reno": [record.id for record in done.beside.records[part]],
            }
        )
    return rows


def show(done: Comparison, console: Console) -> None:
    """Print the table, the bars, and the caption."""
    from rich.table import Table
    from rich.text import Text

    from elephan.compare.table import caption, columns, heading_in_use, in_use, notes, winners

    wide = console.width >= WIDE
    table = Table(box=None, header_style="bold", pad_edge=False)
    heads = columns(done)
    for head in heads:
        table.add_column(
            head.title,
            justify="left" if head.title == "congestion control" else "right",
            no_wrap=head.title == "congestion control",
        )
    if wide:
        table.add_column("why", overflow="fold", min_width=30)
    for row in done.rows:
        cells = [
            _cell(head.show(row), head.spread(row), "bold" if head.title == "congestion control" else "")
            for head in heads
        ]
        table.add_row(*cells, *([Text("; ".join(row.why))] if wide else []))
    console.print(table)
    if not wide:
        console.print()
        for row in done.rows:
            console.print(Text.assemble((f"{row.rank} {row.cc}: ", "bold"), "; ".join(row.why)))
    console.print()
    _print_bars(done, console)
    console.print()
    console.print(Text(caption(done), style="dim"))
    for text in notes(done):
        console.print(Text(f"note: {text}", style="yellow"))
    for text in faults(done):
        console.print(Text(text, style="bold red"))
    console.print(Text(f"\n{heading_in_use(done)}", style="bold"))
    for text in in_use(done, done.rows[0]) if winners(done) else ():
        console.print(Text(f"  {text}"), soft_wrap=True)


def _cell(text: str, spread: str, style: str) -> Text:
    from rich.text import Text

    cell = Text(text, style=style)
    return cell.append(f"\n± {spread}", style="dim") if spread else cell


def faults(done: Comparison) -> list[str]:
    """Return a line about runs whose network or senders did not follow the scenario, if there were any."""
    records = [*done.alone.records, *done.beside.records]
    warnings = [note for record in records for note in record.notes if note.startswith(("EMULATOR:", "TRAFFIC:"))]
    if not warnings:
        return []
    bad = sum(any(note in warnings for note in record.notes) for record in records)
    return [f"{bad} of {len(records)} runs are not to be trusted, such as: {warnings[0]}"]


def _print_bars(done: Comparison, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    from elephan import units
    from elephan.compare.trade import goodput_of, kept_of
    from elephan.report.textplot import bar

    most = max(goodput_of(row) for row in done.rows) or 1.0
    kept = [kept_of(row) for row in done.rows]
    longest = max([1.0, *kept])
    table = Table(box=None, header_style="dim", pad_edge=False)
    for head in ("", "goodput", "", "a reno neighbour keeps", ""):
        table.add_column(head, no_wrap=True)
    for row, share in zip(done.rows, kept, strict=True):
        goodput = goodput_of(row)
        table.add_row(
            Text(row.cc),
            Text(bar(goodput / most, 24), style="cyan"),
            Text(units.rate(goodput)),
            Text(bar(share / longest, 24), style="yellow"),
            Text(units.share(None if row.numbers.neighbour_kept is None else share)),
        )
    console.print(table)
