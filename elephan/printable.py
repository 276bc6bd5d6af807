"""Text that comes from files and records, made safe for a terminal."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 and C1 control characters (ECMA-48) but tab and line feed: terminals act on them. Lone surrogates: not UTF-8.
Overrides and isolates of writing direction (Unicode UAX 9) turn round what stands beside them."""


def has_control(text: str) -> bool:
    """Return True if a terminal would act on a part of `text`, tabs and line feeds aside."""
    return _CONTROL.search(text) is not None


def printable(text: str) -> str:
    """Return `text` with each control character as its escape, such as \\x1b; tabs and line feeds stay."""
    return _CONTROL.sub(lambda found: _escape(found.group()), text)


def one_line(text: str) -> str:
    """Return the same with tabs and line feeds escaped too."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
