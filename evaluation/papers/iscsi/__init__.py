"""The paper iscsi: what each of its claims is measured from. The claims are in evaluation/papers/iscsi/claims.toml."""

from __future__ import annotations

from elephan.papers.evaluation import Evaluation, PaperResults, evaluated
from evaluation.papers.iscsi import assumptions, burst, connections, fairness, intro, testbed

PARTS = (
    intro.introduction,
    testbed.figure6,
    connections.figures7_and_8,
    assumptions.assumptions,
    burst.figures9_and_10,
    fairness.figures11_to_13,
)
"""Code of the claims, in the paper's order; each is skipped when its scenarios were not run."""


def evaluate(results: PaperResults) -> Evaluation:
    """Measure every claim whose scenarios were run."""
    return evaluated(PARTS, results)
