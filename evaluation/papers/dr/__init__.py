"""The paper dr: what each of its claims is measured from. The claims are in evaluation/papers/dr/claims.toml."""

from __future__ import annotations

from elephan.papers.evaluation import Evaluation, PaperResults, evaluated
from evaluation.papers.dr import congestion_controls, window

PARTS = (window.window, congestion_controls.figure4)
"""Code of the claims, in the paper's order; each is skipped when its scenarios were not run."""


def evaluate(results: PaperResults) -> Evaluation:
    """Measure every claim whose scenarios were run."""
    return evaluated(PARTS, results)
