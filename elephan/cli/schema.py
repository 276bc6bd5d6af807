"""`elephan schema`."""

from __future__ import annotations

import typer

from elephan.cli.console import emit


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(schema)


def schema() -> None:
    """Print the scenario's JSON schema, for editors and checkers."""
    from elephan.scenario.schema import text

    emit(text())
