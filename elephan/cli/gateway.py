"""`elephan gateway`: Fibre Channel on real interfaces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elephan.cli.console import emit, say

app = typer.Typer(help="Fibre Channel on real interfaces: serve a fabric to hosts and disks.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The gateway's file, TOML.", show_default=False)]


@app.command()
def run(
    file: File,
    json_: Annotated[bool, typer.Option("--json", help="Ports and counters, a line of JSON a second.")] = False,
) -> None:
    """Serve a fabric until Ctrl-C or SIGTERM: then end its virtual links, so that hosts log in elsewhere or wait."""
    from elephan.gateway import load
    from elephan.gateway import run as run_gateway

    run_gateway(file, load(file), say=say, emit=emit if json_ else None)


@app.command()
def check(file: File) -> None:
    """Read a gateway's file, and say what is wrong with it."""
    from elephan.gateway import load

    load(file)
    say(f"{file}: valid")
