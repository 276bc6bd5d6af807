"""Papers: what they claim as data, measured by running their scenarios, with a verdict on each claim.

What it does: runs the scenarios of `evaluation/papers/<id>/`, measures what the claims name, judges, prints, draws.
What it does not: tune anything until a number fits. **Invariant: a verdict follows from claims.toml, the records and
the tables of earlier runs in the paper's folder alone.**
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elephan.papers.catalogue import find
    from elephan.papers.paper_run import PaperRun
    from elephan.papers.runner import run

__all__ = ["PaperRun", "find", "run"]

_PLACES = {
    "find": "elephan.papers.catalogue",
    "run": "elephan.papers.runner",
    "PaperRun": "elephan.papers.paper_run",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'elephan.papers' has no attribute {name!r}")
