"""Tables that are too wide for the console: a block of lines for each row, so that no column is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

if TYPE_CHECKING:
    from rich.table import Column, Table

GAP = 2
"""Columns of the terminal between two of a table."""
INDENT = 2
WORD = 20
"""Longest word of text that is not folded."""


def fitted(table: Table, width: int) -> Table | Text:
    """Return the table if `width` columns hold it with no word of a header broken and no number folded, else blocks.

    A table of two columns or without a header stays one: its text may be folded.
    """
    if not table.show_header or len(table.columns) < 3:
        return table
    least = [_least(column) for column in table.columns]
    if sum(least) + GAP * (len(least) - 1) > width:
        return _blocks(table)
    # Without it rich narrows the widest columns first, whatever they hold.
    for column, columns in zip(table.columns, least, strict=True):
        column.min_width = columns
    return table


def _blocks(table: Table) -> Text:
    """Return the table as text: of each row the first cell that is text, and a line for each other that has any."""
    heads = [_plain(column.header) for column in table.columns]
    cells = [[_plain(cell).replace("\n", " ") for cell in column.cells] for column in table.columns]
    title = next((number for number, column in enumerate(table.columns) if column.justify == "left"), 0)
    pad = max(cell_len(head) for number, head in enumerate(heads) if number != title)
    found = Text()
    for row in zip(*cells, strict=True):
        found.append(f"{row[title]}\n", "bold")
        for number, (head, text) in enumerate(zip(heads, row, strict=True)):
            if text and number != title:
                found.append(f"{' ' * INDENT}{head}{' ' * (pad - cell_len(head))}  {text}\n")
    if table.caption:
        found.append(_plain(table.caption), "table.caption")
    found.rstrip()
    return found


def _least(column: Column) -> int:
    """Return the least width of a column: words of text, and whole numbers."""
    least = max([*map(cell_len, _plain(column.header).split()), column.min_width or 1])
    for cell in column.cells:
        text = _plain(cell)
        if column.no_wrap or column.justify == "right":
            least = max([least, *map(cell_len, text.splitlines())])
        else:
            # A long word, such as a path, may be folded.
            least = max([least, *(min(cell_len(word), WORD) for word in text.split())])
    return least


def _plain(content: object) -> str:
    return content.plain if isinstance(content, Text) else Text.from_markup(str(content)).plain
