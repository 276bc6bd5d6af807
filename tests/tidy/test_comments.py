"""Rules for comments: a sentence or a noun phrase, never a clause in place of a noun (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.tidy.test_tidy import text_files

CLAUSE = re.compile(r"(What|Where|Which|Who|When)(ever)?\b|(How|Whether|Whose|Whom|Why)\b")
"""First word of a clause such as "What is sent." or "Whether it is on."."""

MARKERS = {
    ".rs": re.compile(r"(///|//!|//)\s?"),
    ".c": re.compile(r"(/\*+|//)\s?"),
    ".py": re.compile(r"(#)\s?"),
    ".sh": re.compile(r"(#)\s?"),
    ".toml": re.compile(r"(#)\s?"),
}
"""Beginning of a line of comment, by the file's suffix."""

SAME_MARKERS = {".h": ".c", ".cc": ".c", ".pyi": ".py", ".tcl": ".sh"}


def comments(suffix: str, lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield number and text of the first line of each comment that has its lines to itself."""
    marker = MARKERS[suffix]
    before = None
    for number, line in enumerate(lines, 1):
        match = marker.match(line.lstrip())
        if match and match[1] != before:
            yield number, line.lstrip()[match.end() :]
        before = match[1] if match else None


def docstrings(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield number and text of the first line of each docstring, of attributes too."""
    for node in ast.walk(ast.parse("\n".join(lines))):
        body = getattr(node, "body", ())
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield statement.lineno, text.lstrip().partition("\n")[0]


def clauses(name: str, lines: list[str]) -> list[tuple[int, str]]:
    """Return number and text of the comments of a file that begin with a clause."""
    suffix = "." + name.rpartition(".")[2]
    suffix = SAME_MARKERS.get(suffix, suffix)
    found = list(comments(suffix, lines)) if suffix in MARKERS else []
    if suffix == ".py":
        found += docstrings(lines)
    return [(number, text) for number, text in found if CLAUSE.match(text)]


def test_clauses_are_found_in_every_language() -> None:
    rust = "//! What it is.\n/// Sends.\n/// What is sent.\nfn send() {\n    // Where it goes.\n}".split("\n")
    assert clauses("one.rs", rust) == [(1, "What it is."), (5, "Where it goes.")]
    assert clauses("one.h", ["/* How much. */", "int much; /* Whatever. */"]) == [(1, "How much. */")]
    python = 'def f():\n    """Whether it is."""\n\nLIMIT = 1\n"""Whoever."""\n# Why not.\nLIMIT = "What?"'.split("\n")
    assert {number for number, _ in clauses("one.py", python)} == {2, 5, 6}
    assert not clauses("one.md", ["# What is this?"]) and not clauses("one.py", ["# Whatsoever."])


def test_no_comment_begins_with_a_clause() -> None:
    found = [
        f"{name}:{number}: {text!r}: begin with the noun or the verb"
        for name, lines in text_files()
        for number, text in clauses(name, lines)
    ]
    assert not found, "\n".join(found)
