"""The outcome of measuring a paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from elephan.api import Results
from elephan.papers.claims import Paper, Runs
from elephan.papers.evaluation import Evaluation
from elephan.papers.kernel_column import KernelColumn
from elephan.papers.verdict import Judgement


@dataclass(frozen=True)
class PaperRun:
    """A paper, what was measured, the verdicts, and the files that were written."""

    paper: Paper
    judgements: tuple[Judgement, ...]
    evaluation: Evaluation
    results: tuple[tuple[Runs, Results], ...]
    page: Path | None
    images: tuple[Path, ...]
    kernel: KernelColumn | None = None
