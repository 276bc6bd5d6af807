"""Backends: where a point runs. Each takes a `Job` and gives a record with its series, all of one form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from elephan.backends.job import Job, Progress, Stopped
from elephan.errors import InputError

if TYPE_CHECKING:
    from elephan.record import Record
    from elephan.store.series import Series

BACKENDS = ("sim", "kernel", "hosts")


def named(text: str) -> list[str]:
    """Return the backends of a list such as "sim,kernel". Raises `InputError`."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in BACKENDS:
            raise InputError(f'--on {text}: no backend "{name}"; there are {", ".join(BACKENDS)}')
    if len(set(names)) < len(names):
        raise InputError(f"--on {text}: each backend once")
    return names


def check(jobs: Iterable[Job]) -> None:
    """Check that the jobs' backends can do what they ask for, without making anything. Raises `InputError`."""
    of_kernel = [job for job in jobs if job.backend == "kernel"]
    if of_kernel:
        from elephan.backends import kernel

        kernel.check(of_kernel)


def require(names: Sequence[str]) -> None:
    """Check that this machine and user have what the backends need. Raises `InputError`."""
    if "kernel" in names:
        from elephan.backends import kernel

        kernel.require()


def run(job: Job, progress: Progress | None = None) -> tuple[Record, Series]:
    """Run a job on its backend. Raises what that raises."""
    if job.backend == "kernel":
        from elephan.backends import kernel

        return kernel.run(job, progress)
    if job.backend == "hosts":
        # It runs with the agents of `elephan.backends.hosts.HostBackend`, which a caller has to open.
        raise InputError("the backend hosts is for elephan run and elephan check")
    from elephan.backends import sim

    return sim.run(job, progress)


__all__ = ["BACKENDS", "Job", "Progress", "Stopped", "check", "named", "require", "run"]
