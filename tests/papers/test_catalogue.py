"""Rules that hold for every paper: its files, its claims and its code fit together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest

from elephan.api import load
from elephan.cli.main import call
from elephan.errors import InputError
from elephan.papers.catalogue import catalogue, find, folder
from elephan.papers.claims import read
from elephan.papers.evaluation import Evaluation
from elephan.papers.page import render
from elephan.papers.readers import parts_of
from elephan.papers.verdict import judge

IDS = [paper.id for paper in catalogue()[0]]


def test_every_folder_is_a_paper() -> None:
    assert IDS == sorted(place.name for place in folder().iterdir() if place.is_dir() and place.name != "__pycache__")


def test_a_paper_is_called_as_its_folder_is(tmp_path: Path) -> None:
    text = (folder() / "dr" / "claims.toml").read_text()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "claims.toml").write_text(text)
    with pytest.raises(InputError, match='"dr" is not the name of its folder, other'):
        read(tmp_path / "other")


def test_a_paper_that_cannot_be_read_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("alike", "format = 1\n"), ("dr", (folder() / "dr" / "claims.toml").read_text())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "claims.toml").write_text(text)
    monkeypatch.setenv("ELEPHAN_PAPERS", str(tmp_path))
    assert call(["paper", "list"]) == 2
    said = capsys.readouterr()
    assert "dr" in said.out and "alike" not in said.out
    assert said.err.count("error: ") == 1 and str(tmp_path / "alike" / "claims.toml") in said.err


def test_parts_come_as_the_claims_name_their_files() -> None:
    for paper_id in IDS:
        paper = find(paper_id)
        files = [runs.file for claim in paper.claims for runs in claim.runs]
        first = [min(files.index(file) for file in part.files) for part in parts_of(paper)]
        assert first == sorted(first)
    assert [part.evaluate.__name__ for part in parts_of(find("tenge"))] == [
        "figure8",
        "figure10",
        "line",
        "figure4",
        "figure6",
        "figure7",
        "figure9",
        "figure11",
    ]


def test_a_reader_of_a_file_that_no_claim_names_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "dr"
    place.mkdir()
    (place / "claims.toml").write_text((folder() / "dr" / "claims.toml").read_text())
    (place / "reader.py").write_text(
        "from elephan.papers.evaluation import Evaluation, part\n\n\n"
        "@part('figure4.toml')\ndef figure4(results):\n    return Evaluation()\n"
    )
    with pytest.raises(InputError, match="figure4 reads figure4.toml; no claim names it"):
        parts_of(read(place))


@pytest.mark.parametrize("paper_id", IDS)
def test_every_scenario_loads_and_serves_a_claim_or_is_explained(paper_id: str) -> None:
    paper = find(paper_id)
    files = {file.name for file in (folder() / paper_id).glob("*.toml")} - {"claims.toml"}
    named = {runs.file for claim in paper.claims for runs in claim.runs}
    assert named == {file for part in parts_of(paper) for file in part.files} <= files
    readme = (folder() / paper_id / "README.md").read_text()
    for beside in files - named:
        assert f"`{beside}`" in readme or f"{paper_id}/{beside}" in readme, f"{beside} serves no claim; say what for"
        assert load(folder() / paper_id / beside).points()
    for runs in (runs for claim in paper.claims for runs in claim.runs):
        assert load(folder() / paper_id / runs.file, runs.set).points()


@pytest.mark.parametrize("paper_id", IDS)
def test_the_tests_that_hold_a_claim_exist(paper_id: str) -> None:
    root = Path(__file__).parents[2]
    assert all((root / claim.held_by).is_file() for claim in find(paper_id).claims if claim.held_by)


@pytest.mark.parametrize("paper_id", IDS)
def test_every_claim_is_in_the_readme_and_the_paper_in_the_documents(paper_id: str) -> None:
    root = Path(__file__).parents[2]
    readme = (folder() / paper_id / "README.md").read_text()
    # Neighbouring figures may share a line: "dsan.fig5, fig6, fig7".
    missing = [claim.id for claim in find(paper_id).claims if claim.id.split(".")[1] not in readme]
    assert not missing
    assert f"../evaluation/papers/{paper_id}/README.md" in (root / "docs" / "howto" / "papers.md").read_text()


def in_order(orders: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return numbers with which all orders hold: each is above those before it in any order."""
    places = {name: 0.0 for order in orders for name in order}
    for _ in places:
        for left, right in (pair for order in orders for pair in pairwise(order)):
            places[right] = max(places[right], places[left] + 1)
    return places


@pytest.mark.parametrize("paper_id", IDS)
def test_the_page_names_commands_of_this_paper_and_what_orders_rest_on(paper_id: str) -> None:
    paper = find(paper_id)
    claims = [claim for claim in paper.claims if claim.runs]
    measured = [
        {item.name: item.paper for item in claim.value}
        | in_order([order.rising for order in claim.order])
        | {item.name: 1.0 for item in claim.region}
        for claim in claims
    ]
    judged = [judge(claim, found) for claim, found in zip(claims, measured, strict=True)]
    text = unescape(render(paper, judged, Evaluation(), []))
    for runs in (runs for claim in claims for runs in claim.runs):
        assert f"elephan run evaluation/papers/{paper_id}/{runs.file}" in text
    for order in (order for claim in claims for order in claim.order):
        assert re.search(rf">{re.escape(order.label)}</th><td[^>]*></td><td[^>]*>[^<]+</td><td[^>]*>holds</td>", text)
