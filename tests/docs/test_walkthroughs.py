"""The pages that explain how to extend elephan: every file, module, function and command that they name exists, and the
paper of the page on papers runs."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("congestion-control", "node", "paper", "probe", "specification-key", "transport", "workload")
PAGES = [ROOT / "docs" / "design" / f"add-a-{what}.md" for what in KINDS]

SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
PLACEHOLDER = re.compile(r"\b(NAME|ID)\b")
"""Stands for a name of the reader's own: any file will do in its place."""

COMMANDS = ("elephan", "make", "cargo", "python")
TOP_LEVEL = {path.name for path in ROOT.iterdir()}


def spans(page: Path) -> Iterator[str]:
    """Yield the code spans of a page, without what stands in fenced blocks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    yield from SPAN.findall(text)


def is_path(span: str) -> bool:
    """Return True if a span names a file or folder of the source tree."""
    return " " not in span and span.split("/")[0] in TOP_LEVEL and ("/" in span or "." in span)


def is_module(span: str) -> bool:
    """Return True if a span names a module of elephan, or something in one."""
    return re.fullmatch(r"elephan(\.\w+)+", span) is not None


def linked(page: Path) -> list[Path]:
    """Return the files and folders that a page links to."""
    return [(page.parent / target).resolve() for target in LINK.findall(page.read_text())]


def files_of(page: Path) -> list[Path]:
    """Return the files that a page names or links to."""
    named = [place for span in spans(page) if is_path(span) for place in ROOT.glob(PLACEHOLDER.sub("*", span))]
    modules = [
        ROOT / "/".join(span.split(".")[:length]) for span in spans(page) if is_module(span) for length in (2, 3)
    ]
    found = [*named, *linked(page), *(module.with_suffix(".py") for module in modules)]
    return [place for place in found if place.is_file()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_exists(page: Path) -> None:
    missing = [span for span in spans(page) if is_path(span) and not any(ROOT.glob(PLACEHOLDER.sub("*", span)))]
    assert not missing + [target for target in linked(page) if not target.exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_module_has_what_the_page_takes_from_it(page: Path) -> None:
    for span in filter(is_module, spans(page)):
        parent, _, name = span.rpartition(".")
        try:
            importlib.import_module(span)
        except ModuleNotFoundError:
            assert hasattr(importlib.import_module(parent), name), span


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    ran = 0
    for span in spans(page):
        program, *words = span.split()
        if program == "make":
            assert words[0] in targets, span
        elif program == "cargo":
            crate = ROOT / "crates" / words[words.index("-p") + 1]
            assert crate.is_dir(), span
            if "--test" in words:
                # A filter that no test matches passes without a word.
                assert f'"{words[words.index("--test") + 1]}"' in (crate / "Cargo.toml").read_text(), span
                assert "#[test]" in (crate / "tests" / f"{words[-1].replace('::', '/')}.rs").read_text(), span
        elif program == "elephan":
            # The words before the reader's own name are the command; typer repeats them in its usage.
            command = [word for word in words if re.fullmatch(r"[a-z]+", word)]
            called = [sys.executable, "-c", "from elephan.cli import main; main()", *words, "--help"]
            done = subprocess.run(called, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{span}: {done.stderr}"
            assert " ".join(command) in " ".join(done.stdout.split()), span
        ran += program in COMMANDS
    assert ran >= 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_other_name_stands_in_a_file_of_the_page(page: Path) -> None:
    text = "\n".join(place.read_text() for place in files_of(page))
    names = {
        name
        for span in spans(page)
        for name in re.sub(r"[\[\]()]", "", span).split("::")
        if not is_path(span)
        and not is_module(span)
        and span.split()[0] not in COMMANDS
        and not PLACEHOLDER.search(span)
    }
    missing = sorted(name for name in names if not re.search(rf"\b{re.escape(name)}\b", text))
    assert not missing


FENCED = re.compile(r"^```\w+\n# (?P<name>[\w.]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
"""A block with a whole file, whose name is a comment on its first line."""


def test_the_paper_of_the_page_is_a_folder_and_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "design" / "add-a-paper.md").read_text()
    paper = tmp_path / "papers" / "filled"
    paper.mkdir(parents=True)
    for block in FENCED.finditer(page):
        (paper / block["name"]).write_text(block["text"])
    assert sorted(file.name for file in paper.iterdir()) == ["claims.toml", "goodput.py", "window.toml"]

    def elephan(*words: str) -> str:
        environment = os.environ | {
            "ELEPHAN_PAPERS": str(paper.parent),
            "ELEPHAN_STORE": str(tmp_path / "store.sqlite"),
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-c", "from elephan.cli import main; main()", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "filled.window" in elephan("paper", "list")
    printed = elephan("paper", "run", "filled")
    assert "filled.window reproduced" in printed and "1 claim: 1 reproduced." in printed
    html = (tmp_path / "out" / "filled" / "paper.html").read_text()
    assert f"elephan run {paper / 'window.toml'}" in html
    # A claim that the records refute is not reproduced: the verdict comes from the folder's own numbers.
    claims = paper / "claims.toml"
    claims.write_text(claims.read_text().replace("paper = 1.25", "paper = 2.5"))
    assert "1 claim: 1 ordering holds." in elephan("paper", "run", "filled")


def test_a_name_that_is_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("See `congestion/reno.c` and its `no_such_hook`.\n")
    with pytest.raises(AssertionError, match="no_such_hook"):
        test_every_other_name_stands_in_a_file_of_the_page(page)
    page.write_text("See `congestion/no_such_file.c`.\n")
    with pytest.raises(AssertionError, match="no_such_file"):
        test_every_file_exists(page)
