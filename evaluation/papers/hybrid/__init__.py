"""The paper hybrid: what each of its claims is measured from. The claims are in claims.toml."""

from __future__ import annotations

from elephan.papers.evaluation import Evaluation, PaperResults, evaluated
from evaluation.papers.hybrid import drops, managed, reordering, variants

PARTS = (
    reordering.scenario_a,
    reordering.scenario_b,
    reordering.scenario_c1,
    reordering.scenario_c2,
    drops.scenario_d,
    variants.congestion_controls,
    variants.today,
    variants.udp,
    managed.manager,
    variants.switches_b,
    variants.switches_d,
)
"""Code of the claims, in the paper's order; each is skipped when its scenarios were not run."""


def evaluate(results: PaperResults) -> Evaluation:
    """Measure every claim whose scenarios were run."""
    return evaluated(PARTS, results)
