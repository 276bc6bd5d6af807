"""`elephan path`: a scenario's path on this machine, for any program."""

from __future__ import annotations

from typing import Annotated

import typer

from elephan.cli.console import emit, say
from elephan.cli.options import Changes, File
from elephan.report.units import things

app = typer.Typer(help="A scenario's path on this machine, between two namespaces, for any program. Needs root.")


@app.command()
def shell(
    file: File,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND ...]", help="What to run. Default: a shell.", show_default=False),
    ] = None,
    set_: Changes = None,
) -> None:
    """Run a program at the sender of a scenario's [path], and return its exit code.

    The far end is $ELEPHAN_PATH_FAR; `ip netns exec $ELEPHAN_PATH_FAR_NETNS ...` runs something there. What the
    path did, and what the emulator did wrong, is said at the end.
    """
    from elephan.path import run

    code, report = run(file, command or [], set_ or [])
    say(report.text())
    raise typer.Exit(code)


@app.command()
def clean() -> None:
    """Remove what a path that was killed (kill -9) has left. Paths that live are left alone."""
    from elephan.path import clean as sweep

    cleaned, living = sweep()
    emit(f"removed {things(cleaned, 'path')}" + (f"; {things(living, 'path')} in use left alone" if living else ""))
