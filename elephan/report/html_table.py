"""Tables of a page that fit every width without cutting a number off.

If a table is wider than its place, its rows become columns, as on a narrow terminal. If there are too many rows for
that, each row becomes a block of its own, its numbers with their titles. Container queries do it, with widths that are
estimated here from the longest texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

LETTER_PX = 8.6
"""Width of a letter at 13.5 px, in the widest fonts that browsers take (DejaVu Sans, Verdana), bold."""

PADDING_PX = 14
"""Between two columns: padding of th and td in style.css."""

BREAK_CHARS = 16
"""Letters after which a head of a row may be broken."""


@dataclass(frozen=True)
class Head:
    """A column's title."""

    title: str
    text: str = ""
    """Explanation, shown when the pointer is on it."""
    of_row: bool = False
    """True if it names the row: to the left, in front of the numbers."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    small: str = ""
    """Below it, such as half of an interval."""
    kind: str = ""
    """Its class: "best" is bold."""


@dataclass(frozen=True)
class Line:
    """A row."""

    cells: tuple[Cell, ...]
    below: str = ""
    """A sentence across the whole table."""
    kind: str = ""
    """Class of the row."""


def html(name: str, heads: Sequence[Head], lines: Sequence[Line], nonce: str = "") -> Markup:
    """Return the table; `name` is unique in its page; `nonce` is that of a page whose policy asks for one."""
    from markupsafe import Markup, escape

    lying_px = sum(_width(head, [line.cells[index] for line in lines]) for index, head in enumerate(heads))
    titles_px = max((len(head.title) for head in heads), default=0) * LETTER_PX + PADDING_PX
    upright_px = titles_px + sum(max(_letters(cell) for cell in line.cells) * LETTER_PX + PADDING_PX for line in lines)
    # Sentences below rows have no place beside columns.
    may_stand = upright_px < lying_px and not any(line.below for line in lines)
    style = _style(name, len(heads), lying_px, upright_px if may_stand else lying_px)
    head = "".join(
        f'<th scope="col"{_class(["head"] if item.of_row else [])}{_title(item.text)}>{escape(item.title)}</th>'
        for item in heads
    )
    long = [any(len(line.cells[index].text) > BREAK_CHARS for line in lines) for index in range(len(heads))]
    body = "".join(_row(line, heads, long) for line in lines)
    return Markup(
        f"<style{f' nonce={nonce!r}' if nonce else ''}>{style}</style>"
        f'<div class="fit"><table id="{escape(name)}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _style(name: str, columns: int, lying_px: float, upright_px: float) -> str:
    """Return the rules of one table: upright below the one width, in blocks below the other."""
    table = f"#{name}"
    upright = (
        f"@container (max-width:{lying_px:.0f}px){{{table}{{display:grid;grid-auto-flow:column;"
        f"grid-template-rows:repeat({columns},auto);width:max-content}}{table} :is(thead,tbody,tr){{display:contents}}"
        f"{table} th[scope=col]{{text-align:left}}{table} th[scope=row]{{text-align:right}}}}"
    )
    blocks = (
        f"@container (max-width:{upright_px:.0f}px){{{table}{{display:block;width:auto}}"
        f"{table} thead{{display:none}}{table} tbody{{display:block}}"
        f"{table} tr{{display:grid;grid-template-columns:repeat(auto-fill,minmax(132px,1fr));"
        f"padding:8px 0;border-bottom:1px solid var(--line)}}"
        f"{table} :is(td,th){{border:0;padding:2px 10px 2px 0;text-align:left;white-space:normal;"
        f"overflow-wrap:anywhere}}{table} th[scope=row]{{text-align:left;order:-1}}{table} th.long{{grid-column:1/-1}}"
        f"{table} td:empty{{display:none}}"
        f"{table} tr.followed{{border:0;padding-bottom:0}}{table} tr.below{{padding-top:0}}"
        f"{table} [data-title]::before{{content:attr(data-title);display:block;color:var(--muted);font-size:11.5px;"
        f"font-weight:400}}{table} .below td{{grid-column:1/-1}}{table} .below td::before{{content:none}}}}"
    )
    return (upright if upright_px < lying_px else "") + blocks


def _row(line: Line, heads: Sequence[Head], long: Sequence[bool]) -> str:
    from markupsafe import escape

    cells = ""
    for cell, head, is_long in zip(line.cells, heads, long, strict=True):
        small = f"<small>{escape(cell.small)}</small>" if cell.small else ""
        inside = f' data-title="{escape(head.title)}">{escape(cell.text)}{small}'
        if head.of_row:
            cells += f'<th scope="row"{_class(["head", "long"] if is_long else ["head"])}{inside}</th>'
        else:
            cells += f"<td{_class([cell.kind] if cell.kind else [])}{inside}</td>"
    below = f'<tr class="below"><td colspan="{len(heads)}">{escape(line.below)}</td></tr>' if line.below else ""
    classes = [name for name in (line.kind, "followed" if line.below else "") if name]
    return f"<tr{_class(classes)}>{cells}</tr>{below}"


def _class(names: list[str]) -> str:
    return f' class="{" ".join(names)}"' if names else ""


def _title(text: str) -> str:
    from markupsafe import escape

    return f' title="{escape(text)}"' if text else ""


def _width(head: Head, cells: Sequence[Cell]) -> float:
    """Return a column's width, px."""
    letters = max([len(head.title), *(_letters(cell) for cell in cells)])
    if head.of_row:
        words = [word for text in (head.title, *(cell.text for cell in cells)) for word in text.split()]
        letters = max([min(letters, BREAK_CHARS), *map(len, words)])
    return letters * LETTER_PX + PADDING_PX


def _letters(cell: Cell) -> float:
    # A small text has 11 of 13.5 px.
    return max(len(cell.text), 0.83 * len(cell.small))
