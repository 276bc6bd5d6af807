"""The paper dsan: what each of its tables and figures is measured from. The claims are in claims.toml."""

from __future__ import annotations

from elephan.papers.evaluation import Evaluation, PaperResults, evaluated
from evaluation.papers.dsan import flow, loss, slow_start, trade, window

PARTS = (window.table1, slow_start.figure3, flow.figure4, flow.figures5to7, window.figure9, loss.figure10, trade.trade)
"""Code of the tables and figures, in the paper's order; each is skipped when its scenarios were not run."""

ON_KERNEL = {"dsan.table1": window.by_rtt, "dsan.fig10": loss.by_variant}
"""What is read from runs on the backend kernel, by claim."""


def evaluate(results: PaperResults) -> Evaluation:
    """Measure every claim whose scenarios were run."""
    return evaluated(PARTS, results)
