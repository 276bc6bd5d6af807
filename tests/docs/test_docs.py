"""The documents: the guide's commands print the shown output, links lead somewhere, and the index has every page."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

import elephan

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)")


def load_guide() -> ModuleType:
    """Load the tool beside this file, which is also a command of its own."""
    spec = importlib.util.spec_from_file_location("guide", Path(__file__).with_name("guide.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["guide"] = module
    spec.loader.exec_module(module)
    return module


guide = load_guide()


def blocks(page: Path, language: str) -> list[tuple[str, str]]:
    """Return kind and text of a page's blocks in a language."""
    return [(kind, text) for found, kind, text in guide.FENCE.findall(page.read_text()) if found == language]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", guide.PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    """After a change of the transport: `python tests/docs/guide.py --write`, then read whether the text still fits."""
    # A folder that looks like a clone; the commands build on each other.
    guide.prepare(tmp_path)
    ran = 0
    for kind, text in blocks(page, "console"):
        for step in guide.steps(text):
            if kind == "long" or ("tshark" in step.command and shutil.which("tshark") is None):
                continue
            code, output = guide.run(step.command, tmp_path)
            assert code == 0, f"{step.command}\n{output}"
            assert guide.comparable(output) == guide.comparable(step.output), step.command
            ran += 1
    assert ran >= (15 if page == guide.GUIDE else 3)


def test_what_takes_minutes_is_a_target_of_the_makefile() -> None:
    """The demo is run by every set-up; it is the only block that no test of a page runs."""
    long = [
        step.command
        for page in guide.PAGES
        for kind, text in blocks(page, "console")
        if kind
        for step in guide.steps(text)
    ]
    assert long == ["make demo"]
    assert re.search(r"^demo:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_a_number_that_differs_is_a_difference() -> None:
    """Section 4 of the guide printed other numbers than its commands: its block was not compared."""
    shown = "1e-2  10.1  12.2\n339f52ba19  2026-11-21 08:16:24   192 Mbit/s\nLinux 6.18.44: 9 steps of its verifier"
    other = (
        shown.replace("339f52ba19", "a98212dd63")
        .replace("11-21", "11-22")
        .replace("6.18.44", "6.1.0-10-amd64")
        .replace("9 steps", "12 steps")
    )
    assert guide.comparable(other) == guide.comparable(shown)
    assert guide.comparable(shown.replace("10.1", "10.2")) != guide.comparable(shown)
    assert guide.comparable(shown.replace("192", "193")) != guide.comparable(shown)


def test_the_guides_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide.prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELEPHAN_STORE", str(tmp_path / "results.sqlite"))
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, object] = {}
    for _, text in blocks(guide.GUIDE, "python"):
        exec(compile(text, str(guide.GUIDE), "exec"), names)
    assert (tmp_path / "out" / "notebook" / "report.html").is_file()


def test_the_example_cc_meets_its_equation(tmp_path: Path) -> None:
    """MulTCP, n flows under loss p: W = sqrt(n (4 n - 1) / (2 p)), 831 segments for 6 at 1e-4: 144 Mbit/s at 67 ms."""
    file = os.path.relpath(ROOT / "examples" / "own-congestion-control.toml")
    changes = {
        "sweep": "",
        "flow.congestion_control": "./congestion_controls/multcp.c",
        "run.repetitions": 3,
        "measure.series": False,
    }
    results = elephan.run(file, changes, store="none")
    goodput = sum(record.metrics["goodput_bps"] for record in results) / len(results)
    window = math.sqrt(6 * 23 / (2 * 1e-4))
    assert goodput == pytest.approx(window * 1448 * 8 / 0.067, rel=0.1)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_into_a_page_meet_a_heading(page: Path) -> None:
    """That the pages exist is held by tests/tidy."""
    for target, anchor in LINK.findall(page.read_text()):
        place = (page.parent / target).resolve() if target else page
        if anchor and place.suffix == ".md" and place.exists():
            heads = re.findall(r"^#+ (.*)$", place.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor in slugs, f"{page.name}: #{anchor}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.stem)
def test_files_that_a_page_names_exist(page: Path) -> None:
    """As `crates/tcp`: in code, from the root of the tree. Words in capitals stand for a name of the reader's own."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"out"}
    for span in re.findall(r"`([\w./*-]+/[\w./*-]*)`", page.read_text()):
        if span.split("/")[0] in folders:
            assert any(ROOT.glob(re.sub(r"\b[A-Z]+\b", "*", span.rstrip("/")))), span


def test_the_index_has_every_page() -> None:
    docs = ROOT / "docs"
    index = (docs / "README.md").read_text()
    for page in (*docs.rglob("*.md"), *docs.rglob("*.json")):
        name = page.relative_to(docs).as_posix()
        assert name == "README.md" or f"({name})" in index, name


def test_the_tree_of_documents_has_five_parts() -> None:
    folders = {path.name for path in (ROOT / "docs").iterdir() if path.is_dir()}
    assert folders == {"guide", "howto", "reference", "results", "design", "img"}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} == {"README.md", "glossary.md"}


def test_pictures_are_small() -> None:
    for picture in (ROOT / "docs" / "img").iterdir():
        assert picture.stat().st_size < 200_000, picture.name
