"""Faults of a paper's folder: one error before anything runs, and no other paper is kept from its readers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from elephan.errors import InputError, RunError
from elephan.papers import run
from elephan.papers.catalogue import find, folder
from elephan.papers.readers import kernel_readers_of


@pytest.fixture
def papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with copies of two papers, where papers are looked for."""
    place = tmp_path / "papers"
    for name in ("dr", "dsan"):
        shutil.copytree(folder() / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("ELEPHAN_PAPERS", str(place))
    return place


def test_a_paper_that_is_being_written_keeps_no_other_from_its_readers(papers: Path) -> None:
    (papers / "draft").mkdir()
    (papers / "draft" / "claims.toml").write_text("format = 1\n")
    assert find("dr").id == "dr"
    with pytest.raises(InputError, match="draft"):
        find("draft")
    with pytest.raises(InputError, match="there are dr, draft, dsan"):
        find("nobody")


@pytest.mark.parametrize("text", ["def broken(:\n", "import nothing_of_that_name\n", "1 / 0\n"])
def test_a_module_that_fails_is_named_before_anything_runs(papers: Path, text: str) -> None:
    (papers / "dr" / "added.py").write_text(text)
    with pytest.raises(InputError, match=r"added\.py: (Syntax|ModuleNotFound|ZeroDivision)Error"):
        run("dr", store="none")


@pytest.mark.parametrize(
    ("marked", "fault"),
    [
        ("dsan.no_such", "no claim of that id"),
        ("dsan.table1", "two functions are marked"),
    ],
)
def test_a_reader_of_the_wrong_claim_is_refused(papers: Path, marked: str, fault: str) -> None:
    (papers / "dsan" / "added.py").write_text(
        "from elephan.papers.evaluation import kernel_reader\n\n\n"
        f'@kernel_reader("{marked}")\ndef read(records):\n    return {{}}\n'
    )
    with pytest.raises(InputError, match=fault):
        run("dsan", store="none")


def test_every_claim_of_the_kernel_has_its_reader(papers: Path) -> None:
    readers = kernel_readers_of(find("dsan"))
    assert set(readers) == {claim.id for claim in find("dsan").claims if claim.kernel is not None}


SCENARIO = """
[run]
duration = "200ms"
[path]
bandwidth = "10Mbit/s"
rtt = "20ms"
queue = "1bdp"
[[flow]]
"""

CLAIMS = """
format = 1
id = "toy"
title = "t"
authors = ["a"]
venue = "v"
summary = "s"
[[claim]]
id = "toy.one"
title = "t"
text = "t"
source = "s"
runs = [{ file = "one.toml" }]
[[claim.region]]
name = "holds"
label = "it holds"
on = ["the queue"]
"""

READER = """
from elephan.papers.evaluation import Evaluation, part


@part("one.toml")
def one(results):
    return Evaluation({"toy.one": {"holds": %s}})
"""


@pytest.mark.parametrize(
    ("measured", "fault"),
    [
        ("0.6", r"toy\.one: holds: a set-up has 1 where the statement holds, else 0, not \(0\.6,\)"),
        ("[]", r"toy\.one: holds was not measured"),
        ('[1.0, float("nan")]', r"toy\.one: holds was not measured"),
    ],
)
def test_what_a_reader_measures_of_a_region_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: str, fault: str
) -> None:
    place = tmp_path / "papers" / "toy"
    place.mkdir(parents=True)
    (place / "one.toml").write_text(SCENARIO)
    (place / "claims.toml").write_text(CLAIMS)
    (place / "reader.py").write_text(READER % measured)
    monkeypatch.setenv("ELEPHAN_PAPERS", str(place.parent))
    with pytest.raises(RunError, match=fault):
        run("toy", store="none")
