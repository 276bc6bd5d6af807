"""The paper tenge: what each of its claims is measured from. The claims are in evaluation/papers/tenge/claims.toml."""

from __future__ import annotations

from elephan.papers.evaluation import Evaluation, PaperResults, evaluated
from evaluation.papers.tenge import background, burst

PARTS = (background.figure8, burst.figure10)
"""Code of the claims, in the paper's order; each is skipped when its scenarios were not run."""


def evaluate(results: PaperResults) -> Evaluation:
    """Measure every claim whose scenarios were run."""
    return evaluated(PARTS, results)
