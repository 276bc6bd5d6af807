"""Grounds: where a point runs. Each takes a `Job` and gives a record with its series, all of one form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from elephan.errors import InputError
from elephan.grounds.job import Job, Progress, Stopped

if TYPE_CHECKING:
    from elephan.record import Record
    from elephan.store.series import Series

GROUNDS = ("sim", "kernel")


def named(text: str) -> list[str]:
    """Return the grounds of a list such as "sim,kernel". Raises `InputError`."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in GROUNDS:
            raise InputError(f'--on {text}: no ground "{name}"; there are {", ".join(GROUNDS)}')
    if len(set(names)) < len(names):
        raise InputError(f"--on {text}: each ground once")
    return names


def check(jobs: Iterable[Job]) -> None:
    """Say whether the jobs' grounds can do what they ask for, without making anything. Raises `InputError`."""
    of_kernel = [job for job in jobs if job.ground == "kernel"]
    if of_kernel:
        from elephan.grounds import kernel

        kernel.check(of_kernel)


def require(names: Sequence[str]) -> None:
    """Say whether this machine and user have what the grounds need. Raises `InputError`."""
    if "kernel" in names:
        from elephan.grounds import kernel

        kernel.require()


def run(job: Job, progress: Progress | None = None) -> tuple[Record, Series]:
    """Run a job on its ground. Raises what that raises."""
    if job.ground == "kernel":
        from elephan.grounds import kernel

        return kernel.run(job, progress)
    from elephan.grounds import sim

    return sim.run(job, progress)


__all__ = ["GROUNDS", "Job", "Progress", "Stopped", "check", "named", "require", "run"]
