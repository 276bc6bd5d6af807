"""Facts of a path by measuring it: a series of path tests within a budget of time and bytes."""

from __future__ import annotations

from elephan.advise.facts import PathFacts

BUDGET_S = 20.0
SHARE = 0.01
"""Largest share of the data to copy that the tests may send."""


def facts_of_path(
    towards: str, bytes_to_copy: int, *, budget_s: float = BUDGET_S, share: float = SHARE, from_: str | None = None
) -> PathFacts:
    """Return the facts of the path to a reflector (`HOST:PORT`, or a host of the book), measured from here or from a
    host of the book. Raises `InputError`, `RunError`, `native.Stopped`."""
    raise NotImplementedError
