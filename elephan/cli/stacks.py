"""`elephan stacks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from elephan.cli.console import console, emit

if TYPE_CHECKING:
    from elephan.stack import Parameter, Stack


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(stacks)


def stacks(
    name: Annotated[str | None, typer.Argument(help="One stack, or a .c file of your own.", show_default=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one array, and nothing else.")] = False,
) -> None:
    """List the congestion controls with their parameters: unit, range, default."""
    from elephan.stack import find
    from elephan.stack import stacks as all_stacks

    chosen = all_stacks() if name is None else (find(name),)
    if json:
        import json as library
        from dataclasses import asdict

        emit(library.dumps([asdict(stack) for stack in chosen], indent=1, ensure_ascii=False))
        return
    for number, stack in enumerate(chosen):
        if number:
            console().print()
        _print(stack)


def _print(stack: Stack) -> None:
    from rich.table import Table
    from rich.text import Text

    console().print(Text.assemble((stack.name, "bold"), f"  {stack.summary}"))
    if stack.source:
        console().print(Text(f"  {stack.source}", style="dim"))
    if not stack.parameters:
        return
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for head in ("", "parameter", "default", "range", "unit", "what it is"):
        table.add_column(head)
    for parameter in stack.parameters:
        default, values = parameter.text(parameter.default), range_of(parameter)
        table.add_row("", parameter.name, default, values, parameter.unit_text, Text(parameter.doc))
    console().print(table)


def range_of(parameter: Parameter) -> str:
    """Return the values that a parameter takes: "on, off", "1 .. 64", "1/16 .. 1/2", "off, slow, fast"."""
    if parameter.choices:
        return ", ".join(parameter.choices)
    if parameter.is_switch:
        return "on, off"
    return f"{parameter.text(parameter.minimum)} .. {parameter.text(parameter.maximum)}"
