"""Two runs beside each other, as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from elephan.cli.console import console, emit
from elephan.record import Record, finite
from elephan.report.difference import Difference, Section, difference

if TYPE_CHECKING:
    from rich.console import JustifyMethod

TEXT_LINES = 60
"""Lines of the scenario files' difference that are shown."""


def show(old: Record, new: Record, as_json: bool) -> None:
    """Print what differs."""
    found = difference(old, new)
    if as_json:
        emit(json.dumps(finite(found.as_data()), ensure_ascii=False))
        return
    from rich.text import Text

    out = console()
    out.print(Text.assemble(("A ", "bold"), old.id, ("  B ", "bold"), new.id))
    for section in found.sections:
        if section.changes:
            out.print(Text(section.title, style="bold"))
            out.print(_table(section))
    _print_text(found)
    equal = [f"{section.equal} of {section.title}" for section in found.sections if section.equal]
    if equal:
        out.print(Text("equal: " + ", ".join(equal), style="dim"))


def _table(section: Section) -> object:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 2), show_header=True)
    heads: tuple[tuple[str, JustifyMethod], ...] = (("", "left"), ("A", "right"), ("B", "right"), ("B to A", "right"))
    for head, justify in heads:
        table.add_column(head, justify=justify, overflow="fold")
    for change in section.changes:
        table.add_row(*(Text(text) for text in (change.name, change.old_text, change.new_text, change.relative_text)))
    return table


def _print_text(found: Difference) -> None:
    from rich.text import Text

    if found.text:
        console().print(Text("text of the scenario", style="bold"))
        for line in found.text[:TEXT_LINES]:
            console().print(Text(f"  {line}"))
        if len(found.text) > TEXT_LINES:
            console().print(Text(f"  and {len(found.text) - TEXT_LINES} more lines", style="dim"))
