"""`elephan results`: what is in the store."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from elephan.cli.console import console, emit, say
from elephan.cli.options import Out, StoreAt
from elephan.errors import InputError
from elephan.report.units import things

app = typer.Typer(help="List, show, plot, export and repeat stored runs.", no_args_is_help=True)

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Runs, by the start of their id.", show_default=False)]
MaybeIds = Annotated[
    list[str] | None, typer.Argument(metavar="[ID...]", help="Runs, by the start of their id.", show_default=False)
]
ScenarioName = Annotated[
    str | None, typer.Option("--scenario", metavar="NAME", help="Only runs of this scenario.", show_default=False)
]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Only runs with this parameter. May be repeated."),
]
Newest = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="At most so many, newest first.", show_default=False)
]


class Form(StrEnum):
    """Forms of an export."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


@app.command("list")
def list_(
    scenario: ScenarioName = None,
    where: Where = None,
    newest: Newest = None,
    store: StoreAt = None,
    json: Annotated[bool, typer.Option("--json", help="Print one array of records, and nothing else.")] = False,
) -> None:
    """List stored runs, newest first."""
    from elephan.cli import listing

    found = listing.chosen(store, None, scenario, where, newest)
    if json:
        from elephan.cli.run import as_json

        emit(as_json(found))
    elif not len(found):
        say("no runs")
    else:
        console().print(listing.overview(found.records))


@app.command()
def show(ids: Ids, store: StoreAt = None) -> None:
    """Show all that is known of runs."""
    from elephan.cli import listing

    for record in listing.chosen(store, ids).records:
        for part in listing.details(record):
            console().print(part)


@app.command()
def plot(
    ids: MaybeIds = None, scenario: ScenarioName = None, where: Where = None, store: StoreAt = None, out: Out = None
) -> None:
    """Write a report with plots of stored runs, side by side."""
    from elephan.cli import listing
    from elephan.cli.run import DEFAULT_OUT, write
    from elephan.report.html import folder_of

    found = listing.chosen(store, ids, scenario, where)
    write(found, out or folder_of(found.records, DEFAULT_OUT))


@app.command()
def export(
    ids: MaybeIds = None,
    form: Annotated[Form, typer.Option("--format", help="CSV and Parquet: a row per run.")] = Form.CSV,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Default: stdout.", show_default=False)
    ] = None,
    scenario: ScenarioName = None,
    where: Where = None,
    newest: Newest = None,
    series: Annotated[
        bool, typer.Option("--series", help="The time series instead: Parquet files in the folder --out.")
    ] = False,
    store: StoreAt = None,
) -> None:
    """Export runs, all when none is named: parameters and metrics as columns, or whole records as JSON."""
    from elephan.cli import listing

    found = listing.chosen(store, ids, scenario, where, newest)
    if series:
        if out is None:
            raise InputError("--series writes several files: give their folder with --out")
        number = listing.export_series(found, out)
        say(f"the series of {things(number, 'run')} are in {out}")
        return
    if form is Form.PARQUET and out is None:
        raise InputError("--format parquet is not text: give a file with --out")
    content = listing.exported(found, form.value)
    if out is None:
        emit(content.decode())
    else:
        from elephan.store.series import write_atomically

        write_atomically(out, content)
        say(f"{things(len(found), 'run')} {'is' if len(found) == 1 else 'are'} in {out}")


@app.command()
def rerun(
    ids: Ids,
    store: StoreAt = None,
) -> None:
    """Run stored runs again from what is stored, and compare to the byte. Exit code 1 when they differ."""
    from elephan.cli import repeat

    if not repeat.all_same(ids, store):
        raise typer.Exit(1)
