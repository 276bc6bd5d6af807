"""`elephan paper`: reproduce a paper's tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elephan.cli.console import console
from elephan.cli.options import Out, StoreAt, Workers

app = typer.Typer(help="Reproduce a paper's claims: paper, measured, verdict.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """List the papers and their claims."""
    from rich.table import Table

    from elephan import papers

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for head in ("id", "title", "claims"):
        table.add_column(head)
    for entry in papers.catalogue():
        table.add_row(entry.id, entry.title, ", ".join(getattr(claim, "id", str(claim)) for claim in entry.claims))
    console().print(table)


@app.command("run")
def run(
    paper: Annotated[str, typer.Argument(metavar="ID", help="As `elephan paper list` calls it.", show_default=False)],
    out: Out = None,
    store: StoreAt = None,
    workers: Workers = None,
) -> None:
    """Run a paper's scenarios, print claim, paper, measured and verdict, draw its figures."""
    from elephan import papers

    papers.run(paper, out or Path("out") / paper, store, workers, console())
