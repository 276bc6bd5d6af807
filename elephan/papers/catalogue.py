"""Which papers there are: the folders of `evaluation/papers/` with a claims.toml, and the code that measures each."""

from __future__ import annotations

import importlib
import os
from functools import cache
from pathlib import Path

from elephan.errors import InputError
from elephan.papers.claims import Paper, read
from elephan.papers.evaluation import Evaluate

CODE = {name: f"evaluation.papers.{name}" for name in ("dr", "dsan", "hybrid", "iscsi", "tenge")}
"""Module of each paper; it has `evaluate`."""


def folder() -> Path:
    """Return where the papers' scenarios are: $ELEPHAN_PAPERS, else `evaluation/papers/` beside the package.

    Raises `InputError`.
    """
    given = os.environ.get("ELEPHAN_PAPERS")
    place = Path(given) if given else Path(__file__).parents[2] / "evaluation" / "papers"
    if not place.is_dir():
        raise InputError(
            f"no folder {place} with the papers' scenarios; they are in elephan's source tree: run from there, or set "
            "ELEPHAN_PAPERS to its folder evaluation/papers/"
        )
    return place


@cache
def _read(place: Path) -> Paper:
    return read(place)


def catalogue() -> list[Paper]:
    """Return all papers by id. Raises `InputError` when a claims.toml is wrong."""
    found = [_read(file.parent) for file in sorted(folder().glob("*/claims.toml"))]
    return [paper for paper in found if paper.id in CODE]


def find(paper_id: str) -> Paper:
    """Return one paper. Raises `InputError` that lists those there are."""
    papers = catalogue()
    for paper in papers:
        if paper.id == paper_id:
            return paper
    raise InputError(f"no paper {paper_id!r}; there are {', '.join(paper.id for paper in papers)}")


def code_of(paper: Paper) -> Evaluate:
    """Return the function that measures a paper's claims from records."""
    evaluate: Evaluate = importlib.import_module(CODE[paper.id]).evaluate
    return evaluate
