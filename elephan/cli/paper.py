"""`elephan paper`: reproduce a paper's tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elephan.cli.console import console, failed, say
from elephan.cli.options import Again, On, Out, StoreAt, Workers
from elephan.units import pluralize

if TYPE_CHECKING:
    from elephan.papers.claims import Claim

app = typer.Typer(help="Reproduce a paper's claims: paper, measured, verdict.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """List the papers and their claims. A paper that cannot be read is named after the others: exit code 2."""
    from rich.table import Table

    from elephan.papers.catalogue import catalogue

    readable, faults = catalogue()
    for entry in readable:
        console().print(f"[bold]{entry.id}[/bold]  {entry.title}")
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
        for claim in entry.claims:
            table.add_row(claim.id, claim.title, _of_no_run(claim))
        console().print(table)
    if faults:
        raise typer.Exit(max(failed(str(fault), fault.exit_code) for fault in faults))


def _of_no_run(claim: Claim) -> str:
    """Return a word on a claim that no run measures."""
    return "not measured yet" if claim.not_yet else "held by tests" if claim.held_by else ""


@app.command("run")
def run(
    paper: Annotated[str, typer.Argument(metavar="ID", help="As `elephan paper list` calls it.", show_default=False)],
    on: On = "sim",
    out: Out = None,
    store: StoreAt = None,
    workers: Workers = None,
    claim: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this claim. May be repeated.", show_default=False)
    ] = None,
    again: Again = False,
) -> None:
    """Run a paper's scenarios, print claim, paper, measured and verdict, draw its figures.

    With --on kernel (or sim,kernel), what can be runs over this machine's own TCP as well, in a column of its own.
    """
    from elephan import papers

    done = papers.run(paper, out or Path("out") / paper, store, workers, console(), on=on, claims=claim, again=again)
    if done.page is not None:
        say(f"report: {done.page} ({pluralize(len(done.images), 'figure')} beside it)")
