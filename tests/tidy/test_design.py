"""The pages of docs/design name files and items that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.test_tidy import ROOT

PAGES = [ROOT / "docs" / "design" / f"add-a-{what}.md" for what in ("node", "probe", "transport", "workload")]
"""Pages on Rust parts; tests/docs walks through those on congestion controls and papers."""

ITEM = re.compile(
    r"\b(?:struct|enum|trait|fn|type|const|mod)\s+(\w+)|^\s*(?:pub\s+)?(\w+)(?::|,$|\s*\{$|\()", re.MULTILINE
)
"""Declarations in Rust source: items, fields and variants."""


def declared() -> set[str]:
    """Return the names that the crates spec and experiment and their tests declare, with those of std that the pages
    use."""
    names = {"ControlFlow", "Break"}
    for folder in ("spec/src", "experiment/src", "experiment/tests/extensions"):
        for path in (ROOT / "crates" / folder).rglob("*.rs"):
            names |= {name for found in ITEM.findall(path.read_text(encoding="utf-8")) for name in found if name}
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_what_there_is(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    files = [(page.parent / target).resolve() for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    assert any("extensions" in file.parts for file in files), "each page refers to the second one in the tests"
    missing = [str(file) for file in files if not file.is_file()]
    names = {part for code in re.findall(r"`([^`]+)`", text) for part in code.split("::") if part.isidentifier()}
    missing += sorted(names - declared())
    assert not missing, f"{page.name}: does not exist: {missing}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_one_page(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 50
