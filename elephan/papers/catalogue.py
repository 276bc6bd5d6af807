"""The papers there are: every folder with a claims.toml in one place is a paper."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from elephan.errors import InputError
from elephan.papers.claims import Paper, read


def folder() -> Path:
    """Return the folder of the papers' folders: $ELEPHAN_PAPERS, else `evaluation/papers/` beside the package.

    Raises `InputError`.
    """
    given = os.environ.get("ELEPHAN_PAPERS")
    place = Path(given) if given else Path(__file__).parents[2] / "evaluation" / "papers"
    if not place.is_dir():
        raise InputError(
            f"no folder {place} with papers; elephan's are in its source tree: run from there, or set ELEPHAN_PAPERS "
            "to a folder that has a folder with a claims.toml for each paper"
        )
    return place


@cache
def _read(place: Path) -> Paper:
    return read(place)


def catalogue() -> tuple[list[Paper], list[InputError]]:
    """Return all papers by id, and the faults of those whose claims.toml is wrong. Raises `InputError` as `folder`."""
    papers, faults = [], []
    for file in sorted(folder().glob("*/claims.toml")):
        try:
            papers.append(_read(file.parent))
        except InputError as fault:
            faults.append(fault)
    return papers, faults


def find(paper_id: str) -> Paper:
    """Return one paper. Raises `InputError` that lists those there are."""
    place = folder()
    there = sorted(file.parent.name for file in place.glob("*/claims.toml"))
    # Only this one is read: a paper that is being written beside it keeps nobody from it.
    if paper_id in there:
        return _read(place / paper_id)
    names = ", ".join(there) or "none"
    raise InputError(f"no paper {paper_id!r}; there are {names}")
