"""Run a paper: all its scenarios in one go, then measure, judge, print, draw.

The runs are ordinary ones: each is stored when it ends, and what is stored is not run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elephan import backends
from elephan.api import Results, jobs_of, load, run_jobs
from elephan.backends import Job
from elephan.errors import RunError
from elephan.papers import on_kernel
from elephan.papers.catalogue import find
from elephan.papers.claims import Claim, Paper, Runs
from elephan.papers.evaluation import Evaluation, PaperResults
from elephan.papers.kernel_column import KernelColumn
from elephan.papers.paper_run import PaperRun
from elephan.papers.readers import evaluate, kernel_readers_of, parts_of
from elephan.papers.verdict import Judgement, judge
from elephan.store import Store, store_for
from elephan.sweep.progress import Bars, Watcher

if TYPE_CHECKING:
    from rich.console import Console


def run(
    paper_id: str,
    out: str | Path | None = None,
    store: str | Store | None = None,
    workers: int | None = None,
    console: Console | None = None,
    *,
    on: str = "sim",
    claims: Sequence[str] | None = None,
    again: bool = False,
    watcher: Watcher | None = None,
) -> PaperRun:
    """Reproduce a paper.

    `out` takes paper.html and the PNGs (none when None); `store` is where records are kept and looked for, as for
    `elephan.run` ("none" for nowhere); `claims` are ids to restrict the work to; `console` is printed to. With the
    backend kernel in `on`, what can be is measured over this machine's own TCP as well, beside the simulator. Raises
    `InputError` for an unknown paper or claim, and what `elephan.sweep.executor.execute` raises; what had ended is
    stored in any case.
    """
    paper = find(paper_id)
    chosen = _chosen(paper, claims)
    there = on_kernel.jobs(paper, chosen) if "kernel" in backends.named(on) else None
    # Faults of the readers show before hours of runs, not after.
    parts_of(paper)
    kernel_readers_of(paper)
    keep = store_for(store)
    watcher = watcher or Bars()
    results = _run_all(paper, chosen, keep, workers, again, watcher)
    kernel = None if there is None else _run_on_kernel(paper, chosen, there, keep, workers, again, watcher)
    evaluation = evaluate(paper, PaperResults(paper, results, kernel))
    judgements = tuple(_judged(claim, evaluation) for claim in chosen)
    page: Path | None = None
    images: tuple[Path, ...] = ()
    if out is not None:
        from elephan.papers.page import write

        page, images = write(paper, judgements, evaluation, results, Path(out), kernel)
    done = PaperRun(paper, judgements, evaluation, results, page, images, kernel)
    if console is not None:
        from elephan.papers.console import show

        show(done, console)
    return done


def _chosen(paper: Paper, claims: Sequence[str] | None) -> tuple[Claim, ...]:
    from elephan.errors import InputError

    if claims is None:
        return paper.claims
    known = {claim.id: claim for claim in paper.claims}
    for claim_id in claims:
        if claim_id not in known:
            raise InputError(f"no claim {claim_id!r} of {paper.id}; there are {', '.join(known)}")
    return tuple(claim for claim in paper.claims if claim.id in claims)


def _run_all(
    paper: Paper,
    claims: Sequence[Claim],
    store: Store | None,
    workers: int | None,
    again: bool,
    watcher: Watcher,
) -> tuple[tuple[Runs, Results], ...]:
    """Run every scenario that the claims name, once."""
    entries = list(_without_repeats(runs for claim in claims for runs in claim.runs))
    groups = [jobs_of(load(paper.folder / runs.file, runs.set)) for runs in entries]
    results = run_jobs(groups, store=store or "none", workers=workers, again=again, watcher=watcher)
    return tuple(zip(entries, results, strict=True))


def _without_repeats(runs: Iterable[Runs]) -> Iterator[Runs]:
    """Yield each entry once; their changes are tables, which have no hash."""
    seen: list[Runs] = []
    for entry in runs:
        if entry not in seen:
            seen.append(entry)
            yield entry


def _run_on_kernel(
    paper: Paper,
    claims: Sequence[Claim],
    entries: Sequence[tuple[Claim, list[Job]]],
    store: Store | None,
    workers: int | None,
    again: bool,
    watcher: Watcher,
) -> KernelColumn:
    """Run what the kernel can, one run at a time unless `workers` says otherwise."""
    groups = [jobs for _, jobs in entries]
    results = run_jobs(groups, store=store or "none", workers=workers or 1, again=again, watcher=watcher)
    runs = [(claim, part.records) for (claim, _), part in zip(entries, results, strict=True)]
    return on_kernel.column(paper, claims, runs)


def _judged(claim: Claim, evaluation: Evaluation) -> Judgement:
    try:
        return judge(claim, evaluation.measured.get(claim.id, {}))
    except KeyError as error:
        raise RunError(f"{error.args[0]}") from error
    except ValueError as error:
        raise RunError(f"{claim.id}: {error}") from error
