"""The table as HTML for a notebook: no style sheet, no script, readable on light and dark."""

from __future__ import annotations

from html import escape

from elephan.report.table import Table


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
