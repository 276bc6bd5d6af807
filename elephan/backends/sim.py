"""The backend `sim`: packet by packet in virtual time, by the native core, which releases the GIL while it runs."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from elephan import control_process
from elephan.backends.job import Job, Progress, Stopped
from elephan.backends.record_builder import PROGRESS_INTERVAL_S, build_record, one_line
from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.record import Record, canonical_json
from elephan.run_spec.types import RunSpec
from elephan.scenario import receive_buffers
from elephan.scenario.program import notes_of
from elephan.store.series import Series
from elephan.writability import is_disk_fault

if TYPE_CHECKING:
    pass

BACKEND = "sim"


def run(job: Job, progress: Progress | None = None) -> tuple[Record, Series]:
    """Simulate one point.

    Raises `InputError` when the core refuses the specification or a file, `RunError` when it fails in a run or the disk
    is full, `Stopped` when `progress` said so.
    """
    inputs = job.inputs
    # Of this thread alone, so that jobs beside it do not count; threads that share the run tell theirs.
    began_s = time.thread_time()
    try:
        result = control_process.simulate(canonical_json(job.spec), progress, PROGRESS_INTERVAL_S, job.cores)
    except native.CompileError as error:
        # The compiler's text has many lines, and every one of them is what the user needs.
        raise InputError(str(error)) from error
    except OSError as error:
        # A full disk is no fault of the path that was given.
        kind = RunError if is_disk_fault(error) else InputError
        raise kind(error.strerror or one_line(error)) from error
    except ValueError as error:
        raise InputError(one_line(error)) from error
    except RuntimeError as error:
        raise RunError(one_line(error)) from error
    cpu_s = time.thread_time() - began_s + result.other_threads_cpu_s
    if progress is not None:
        # It is simulated: whether or not it is to stop, its record is kept.
        with suppress(Stopped):
            progress(job.spec["duration_ns"], job.spec["duration_ns"])
    # To run it again must not write the capture again, nor over another one.
    spec: RunSpec = {**job.spec, "measure": {**job.spec["measure"], "pcap": None}}
    notes = [*result.notes, *notes_of(job.spec["flows"], simulated=True), *receive_buffers.notes_of(job.spec["flows"])]
    return build_record(BACKEND, job, inputs, spec, result, {"cpu_s": cpu_s}, notes)
