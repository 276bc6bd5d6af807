"""The backend `kernel`: this machine's own TCP between namespaces, over the scenario's network in wall-clock time."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from elephan.backends.job import Job, Progress
from elephan.backends.kernel import cwnd_reductions, metrics, programs
from elephan.backends.kernel.mapping import Machine
from elephan.backends.kernel.plan import Layout, layout_of
from elephan.backends.record_builder import PROGRESS_INTERVAL_S, build_record, one_line
from elephan.congestion_control import verify
from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.kernel.run_controls import in_kernel
from elephan.path import netem, report, testbed
from elephan.path.session import open_path
from elephan.record import Record, canonical_json
from elephan.store.series import Series

if TYPE_CHECKING:
    from elephan._native import RunResult

BACKEND = "kernel"

FAULT = "EMULATOR: "
"""Beginning of the notes about faults of the emulator."""


def missing() -> str | None:
    """Return what this machine or user lacks for the backend, as one line; None when nothing."""
    problem = testbed.missing()
    if problem is not None:
        return problem
    return verify.lacks() or None


def require() -> None:
    """Raise `InputError` when the backend cannot be had here, with what still works."""
    problem = missing()
    if problem is not None:
        raise InputError(f"--on kernel: {problem}. What still works: --on sim, and elephan check FILE --on kernel")


def check(jobs: Iterable[Job]) -> None:
    """Check that this kernel can do what the jobs ask for, before anything is made. Raises `InputError`."""
    machine = Machine.here()
    for job in jobs:
        try:
            layout_of(job.spec, machine)
            netem.require(job.spec)
        except InputError as error:
            raise InputError(f"{job.scenario.file or job.scenario.name}: {error}") from error


def run(job: Job, progress: Progress | None = None) -> tuple[Record, Series]:
    """Run one point in real time.

    Raises `InputError` when kernel or machine cannot do what it asks for, `RunError` when it fails in the run,
    `Stopped` when `progress` said so. Whatever it made is gone afterwards.
    """
    require()
    layout = layout_of(job.spec, Machine.here())
    inputs = job.inputs
    # Of this run's threads: others may go on beside it.
    began_s = time.thread_time()
    result, done, reductions, cpu_ns = _run(job, layout, progress)
    cpu_s = time.thread_time() - began_s + cpu_ns / 1e9
    notes = [*(FAULT + fault for fault in done.faults()), *done.notes(), *layout.notes, *result.notes]
    numbers = {**done.metrics(), "cpu_s": cpu_s}
    record, series = build_record(
        BACKEND, job, inputs, job.spec, result, numbers, notes, programs.host_facts(job.spec), reductions
    )
    record.links = [done.counted(link) for link in record.links]
    return record, series


def _run(
    job: Job, layout: Layout, progress: Progress | None
) -> tuple[RunResult, report.AnyReport, list[dict[str, Any]], int]:
    """Return the core's result, the carrier's report, the senders' commands and answers, and the CPU time of the core's
    threads.
    """
    about = {"what": "run", "of": job.scenario.file or job.scenario.name}
    with (
        open_path(layout.hosts, job.spec, about) as path,
        in_kernel(path.place.id, layout.controls, layout.listening) as names,
        cwnd_reductions.listening(layout, names) as listening,
    ):
        for number, (name, settings) in enumerate(zip(path.place.names, layout.settings, strict=True)):
            metrics.enter(name, layout.pairs(job.spec, number), settings.ssthresh, settings.cwnd_clamp)
        made = programs.prepare(job.spec, layout, path.place, names)
        plan = layout.plan(path.place.plan(), names, job.spec, programs.plans(made), listening.commands)
        spec_json, plan_json = canonical_json(job.spec), canonical_json(plan)
        try:
            result, emulator = native.run_on_kernel(spec_json, plan_json, path.carrier, progress, PROGRESS_INTERVAL_S)
        except ValueError as error:
            raise InputError(one_line(error)) from error
        except (OSError, RuntimeError) as error:
            raise RunError(one_line(error)) from error
        programs.check(job.spec, made, result)
        reductions = cwnd_reductions.collect_answers(job.spec, layout, emulator["commands"], listening)
        cpu_ns = emulator["cpu_ns"] + emulator["traffic_cpu_ns"]
        return result, path.report(job.spec, emulator), reductions, cpu_ns
