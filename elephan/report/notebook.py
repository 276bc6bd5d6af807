"""The table for a notebook: as HTML without style sheet or script, readable on light and dark, and as text."""

from __future__ import annotations

import io
import shutil
from dataclasses import replace
from html import escape

from elephan.printable import printable
from elephan.report.table import Table, print_table

ROWS = 60
"""Rows of the table as text; the rest is counted. The HTML has all."""

WIDTH = 200
"""Columns of the text where there is no terminal."""


def as_text(table: Table) -> str:
    """Return the table and its notes as `print` shows them, as wide as the terminal."""
    from rich.console import Console

    shown = replace(table, rows=table.rows[:ROWS])
    text = io.StringIO()
    console = Console(file=text, width=shutil.get_terminal_size((WIDTH, 24)).columns, highlight=False, no_color=True)
    print_table(shown, console)
    lines = [line.rstrip() for line in printable(text.getvalue()).splitlines()]
    if len(table.rows) > ROWS:
        lines.append(f"and {len(table.rows) - ROWS} more rows; to_pandas() has all")
    return "\n".join(lines)


def as_html(table: Table) -> str:
    """Return a `<table>` with its notes."""
    left, right = 'style="text-align:left"', 'style="text-align:right"'
    heads = "".join(f"<th {left}>{escape(head)}</th>" for head in table.heads)
    heads += "".join(
        f'<th {right} title="{escape(column.text)}">{escape(column.title)}</th>' for column in table.columns
    )
    rows = []
    for row in table.rows:
        cells = "".join(f"<th {left}>{escape(head)}</th>" for head in row.heads)
        for cell in row.cells:
            text = escape(cell.text) + (f"<br><small>± {escape(cell.spread)}</small>" if cell.spread else "")
            cells += f"<td {right}>{f'<b>{text}</b>' if cell.best else text}</td>"
        rows.append(f"<tr>{cells}</tr>")
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    return (
        f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f"<p><small>{escape(table.caption)}</small></p>" + (f"<ul>{notes}</ul>" if notes else "")
    )
