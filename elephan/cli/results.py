"""`elephan results`: stored runs, shown, compared, checked and removed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from elephan.cli.console import console, emit, say
from elephan.cli.options import Out, StoreAt
from elephan.errors import InputError
from elephan.units import pluralize

app = typer.Typer(
    help="List, show, compare, plot, export, repeat, check, send and remove stored runs.", no_args_is_help=True
)

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
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")]
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
    listing.name_damaged(found.damaged)


@app.command()
def show(ids: Ids, store: StoreAt = None) -> None:
    """Show all that is known of runs."""
    from elephan.cli import listing

    found = listing.chosen(store, ids)
    for record in found.records:
        for part in listing.details(record):
            console().print(part)
    listing.name_damaged(found.damaged)


@app.command()
def plot(
    ids: MaybeIds = None, scenario: ScenarioName = None, where: Where = None, store: StoreAt = None, out: Out = None
) -> None:
    """Write a report with plots of stored runs, side by side."""
    from elephan.cli import listing
    from elephan.cli.run import DEFAULT_OUT, write
    from elephan.report.html import folder_of

    found = listing.chosen(store, ids, scenario, where)
    if found.records or not found.damaged:
        write(found, out or folder_of(found.records, DEFAULT_OUT))
    listing.name_damaged(found.damaged)


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
        number, damaged = listing.export_series(found, out)
        say(f"the series of {pluralize(number, 'run')} are in {out}")
        listing.name_damaged([*found.damaged, *damaged])
        return
    if form is Form.PARQUET and out is None:
        raise InputError("--format parquet is not text: give a file with --out")
    content = listing.exported(found, form.value)
    if out is None:
        emit(content.decode())
    else:
        from elephan.store.files import write_atomically

        write_atomically(out, content)
        say(f"{pluralize(len(found), 'run')} {'is' if len(found) == 1 else 'are'} in {out}")
    listing.name_damaged(found.damaged)


@app.command()
def rerun(
    ids: Ids,
    store: StoreAt = None,
) -> None:
    """Run stored runs again from what is stored, and compare to the byte. Exit code 1 when they differ."""
    from elephan.cli import repeat

    if not repeat.all_same(ids, store):
        raise typer.Exit(1)


@app.command()
def diff(
    old: Annotated[str, typer.Argument(metavar="A", help="A run, by the start of its id.", show_default=False)],
    new: Annotated[str, typer.Argument(metavar="B", help="Another one.", show_default=False)],
    store: StoreAt = None,
    json: AsJson = False,
) -> None:
    """Show what differs between two runs: scenario, parameters, versions, host and metrics, B relative to A."""
    from elephan.cli import difference, listing

    found = listing.existing(store)
    difference.show(found.get(old), found.get(new), json)


@app.command()
def check(ids: MaybeIds = None, store: StoreAt = None) -> None:
    """Compare records and series, all when none is named, with their digests. Exit code 1 when one is damaged."""
    from elephan.cli import upkeep

    if not upkeep.all_whole(ids or [], store):
        raise typer.Exit(1)


@app.command()
def send(store: StoreAt = None) -> None:
    """Send runs that were kept here while a store's server was away. Exit code 1 when it still is."""
    from elephan.cli import upkeep

    upkeep.send(store)


@app.command()
def delete(ids: Ids, yes: Yes = False, store: StoreAt = None) -> None:
    """Remove runs and their series from the store."""
    from elephan.cli import upkeep

    upkeep.delete(ids, store, yes)


@app.command()
def prune(
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Runs older than 12h, 30d, 4w, or of before a date.", show_default=False),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="All but the newest N of each point (equal scenario, backend, parameters and seed).",
            show_default=False,
        ),
    ] = None,
    other_versions: Annotated[
        bool, typer.Option("--other-versions", help="Runs of other versions than this elephan's.")
    ] = False,
    without_series: Annotated[
        bool, typer.Option("--without-series", help="Runs whose files of series are missing.")
    ] = False,
    stray_files: Annotated[bool, typer.Option("--stray-files", help="Files of series that belong to no run.")] = False,
    scenario: ScenarioName = None,
    where: Where = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go.")] = False,
    yes: Yes = False,
    store: StoreAt = None,
) -> None:
    """Remove runs that fit every option given, and files that belong to none."""
    from elephan.cli import listing, upkeep
    from elephan.core import version
    from elephan.store.prune import Rule, moment

    rule = Rule(
        None if older_than is None else moment(older_than), keep, version() if other_versions else None, without_series
    )
    upkeep.prune(store, rule, listing.filter_of(scenario, where), stray_files, dry_run, yes)
