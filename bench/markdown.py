"""Markdown of generated pages: tables, and paragraphs filled to the repository's line length."""

from __future__ import annotations

import textwrap

LINE_LENGTH = 120
UNFILLED = ("|", "#", "-", " ", "```")
"""Blocks that begin so are kept as they are: tables, headings, lists, code."""


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table: the first column to the left, all others, numbers mostly, to the right."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows])


def filled(text: str) -> str:
    """Return a page with its paragraphs filled."""
    blocks = [
        block if block.startswith(UNFILLED) else textwrap.fill(block, LINE_LENGTH, break_long_words=False)
        for block in text.strip().split("\n\n")
    ]
    return "\n\n".join(blocks) + "\n"
