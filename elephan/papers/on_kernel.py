"""The kernel's column: what of a paper runs over this machine's own TCP as well, with what changed, and what not.

A claim has a `kernel` in claims.toml where its scenarios, perhaps with keys set, can be run there; a function of the
paper marked with `kernel_reader` says which numbers these runs give. Verdicts stay those of the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence

from elephan import backends
from elephan.api import jobs_of, load
from elephan.backends import Job
from elephan.errors import InputError
from elephan.papers.claims import Claim, Paper
from elephan.papers.kernel_column import KernelColumn
from elephan.papers.readers import kernel_readers_of
from elephan.record import Record


def jobs(paper: Paper, claims: Sequence[Claim]) -> list[tuple[Claim, list[Job]]]:
    """Return the runs on the kernel, by claim.

    Raises `InputError` when there are none, or this machine cannot do them.
    """
    entries: list[tuple[Claim, list[Job]]] = []
    for claim in claims:
        if claim.kernel is not None:
            entries.append((claim, _jobs(paper, claim, kernel=True)))
    if not entries:
        there = ", ".join(claim.id for claim in paper.claims if claim.kernel is not None) or "none"
        raise InputError(f"--on kernel: nothing of this runs on the kernel; of {paper.id} there is {there}")
    backends.check(job for _, part in entries for job in part)
    backends.require(["kernel"])
    return entries


def column(paper: Paper, claims: Sequence[Claim], runs: Sequence[tuple[Claim, Sequence[Record]]]) -> KernelColumn:
    """Return what the runs gave, and a line for every claim that has none."""
    read = kernel_readers_of(paper)
    measured = {claim.id: read[claim.id](records) for claim, records in runs}
    records = tuple(record for _, part in runs for record in part)
    lines = []
    for claim, part in runs:
        assert claim.kernel is not None
        if claim.kernel.differs:
            lines.append(f"{claim.id} on the kernel: {claim.kernel.differs}")
        faults = [note for record in part for note in record.notes if note.startswith(("EMULATOR:", "TRAFFIC:"))]
        if faults:
            bad = sum(any(note in faults for note in record.notes) for record in part)
            lines.append(
                f"{claim.id} on the kernel: {bad} of {len(part)} runs are not to be trusted, such as: {faults[0]}"
            )
    done = {claim.id for claim, _ in runs}
    lines += [f"{claim.id}: not on the kernel: {_why(paper, claim)}" for claim in claims if claim.id not in done]
    kernel = str(records[0].host.get("kernel", "this kernel")) if records else ""
    return KernelColumn(measured, tuple(lines), kernel, records)


def _jobs(paper: Paper, claim: Claim, kernel: bool) -> list[Job]:
    runs = claim.kernel.runs if kernel and claim.kernel is not None else claim.runs
    return [job for entry in runs for job in jobs_of(load(paper.folder / entry.file, entry.set), backend="kernel")]


def _why(paper: Paper, claim: Claim) -> str:
    """Say in one line why a claim is not measured there."""
    if claim.not_yet:
        return claim.not_yet
    if claim.held_by:
        return f"no run measures it; {claim.held_by} holds it"
    try:
        backends.check(_jobs(paper, claim, kernel=False))
    except InputError as error:
        return str(error).removeprefix(f"{paper.folder}/")
    return "its numbers are not read from the kernel's runs; elephan run FILE --on kernel runs its scenarios"
