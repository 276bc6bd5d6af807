"""Programs write the tables of docs/results."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from evaluation.parts import RESULTS, Part, parts_of, replaced
from tests.tidy.test_tidy import ROOT

PAGES = sorted(RESULTS.glob("*.md"))
WHOLE = re.compile(r"Written by `make|Written by `python -m|[Gg]enerated")
"""A page that a program writes from its first line to its last says so at its top."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_program_writes_every_table(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    parts = parts_of(text)
    assert len(parts) == text.count("<!-- part "), "every part has an end"
    if parts or not WHOLE.search(text[:600]):
        for part in parts:
            text = text.replace(part.text, "")
            assert part.command in part.text.splitlines()[0], f"{part.name} begins with its command"
        assert not re.search(r"^\|", text, re.MULTILINE), "a table that no program writes"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_part_names_a_program_that_is_there(page: Path) -> None:
    for part in parts_of(page.read_text(encoding="utf-8")):
        words = shlex.split(part.command)
        assert words[:2] == ["python", "-m"], part.command
        module = ROOT / words[2].replace(".", "/")
        assert module.with_suffix(".py").is_file() or (module / "__main__.py").is_file(), part.command


def test_a_part_is_replaced_and_the_rest_stays() -> None:
    page = 'Before.\n\n<!-- part "a": x -->\nold\n<!-- end -->\n\n<!-- part "b": y -->\nkept\n<!-- end -->\n\nAfter.\n'
    new = replaced(page, "x", {"a": "| new |"})
    first, second = parts_of(new)
    assert first.text.startswith("`x`, 20") and first.text.endswith("\n\n| new |")
    assert second == Part("b", "y", "kept")
    assert new.startswith("Before.\n\n<!--") and new.endswith("-->\n\nAfter.\n")
    for texts in ({}, {"b": ""}, {"a": "", "c": ""}):
        with pytest.raises(ValueError, match="the page has"):
            replaced(page, "x", texts)
