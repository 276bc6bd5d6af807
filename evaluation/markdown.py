"""Markdown of generated pages: tables, verdicts, paragraphs filled to the repository's line length."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Protocol

LINE_LENGTH = 120
UNFILLED = ("|", "#", "-", " ", "```")
"""Blocks that begin so are kept as they are: tables, headings, lists, code."""


def fill(text: str, indent: str = "") -> str:
    """Return a paragraph filled, its lines after the first indented; links and paths stay whole."""
    return textwrap.fill(text, LINE_LENGTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table: the first column to the left, all others, numbers mostly, to the right."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows])


def spread(values: Sequence[float], form: str) -> str:
    """Return the least and the most of values, once where both read the same."""
    return " to ".join(dict.fromkeys(format(end, form) for end in (min(values), max(values))))


class Judged(Protocol):
    """A row that is judged by a tolerance, with its text."""

    @property
    def holds(self) -> bool:
        """Return True if it lies within its tolerance."""


def verdict(judged: Sequence[Judged], what: str) -> str:
    """Return the number of those that hold, `what` in the plural, and the names of the others."""
    broken = [row for row in judged if not row.holds]
    if not broken:
        return f"All {len(judged)} {what} lie within their tolerances."
    lines = [f"{len(judged) - len(broken)} of {len(judged)} {what} lie within their tolerances. These do not:", ""]
    return "\n".join(lines + [f"- {row}" for row in broken])


def filled(text: str) -> str:
    """Return a page with its paragraphs filled."""
    blocks = [block if block.startswith(UNFILLED) else fill(block) for block in text.strip().split("\n\n")]
    return "\n\n".join(blocks) + "\n"
