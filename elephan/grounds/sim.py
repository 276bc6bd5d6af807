"""The ground `sim`: packet by packet in virtual time, by the native core, which releases the GIL while it runs."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from elephan.core import native, version
from elephan.errors import InputError, RunError
from elephan.grounds.host import host_facts
from elephan.grounds.job import Job, Progress
from elephan.record import Record, SeriesInfo, canonical_json
from elephan.stack import label_of
from elephan.store.series import Series

PROGRESS_INTERVAL_S = 0.1
"""Wall time between two calls of a run's progress, s: smooth to the eye, and the GIL is taken ten times a second."""

GROUND = "sim"


def run(job: Job, progress: Progress | None = None) -> tuple[Record, Series]:
    """Simulate one point.

    Raises `InputError` when the core refuses the specification or an input, `RunError` when it fails in a run,
    `Stopped` when `progress` said so.
    """
    core = native()
    inputs = job.inputs
    # Of this thread alone, so that workers beside it do not count; the core runs on the thread that calls it.
    began_s = time.thread_time()
    try:
        result = core.simulate(canonical_json(job.spec), progress, PROGRESS_INTERVAL_S)
    except core.CompileError as error:
        # The compiler's text has many lines, and every one of them is what the user needs.
        raise InputError(str(error)) from error
    except (ValueError, OSError) as error:
        raise InputError(one_line(error)) from error
    except RuntimeError as error:
        raise RunError(one_line(error)) from error
    cpu_s = time.thread_time() - began_s
    series = Series.from_columns(result.flow_series, result.link_series)
    record = Record(
        id=job.id,
        scenario=job.scenario,
        ground=GROUND,
        parameters=job.parameters,
        seed=job.seed,
        version=version(),
        metrics={**result.metrics, "cpu_s": cpu_s},
        flows=[described(flow, spec) for flow, spec in zip(result.flows, job.spec["flows"], strict=True)],
        links=list(result.links),
        background=list(result.background),
        happened_s=list(result.happened_s),
        notes=list(result.notes),
        host=host_facts(),
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        # To run it again must not write the capture again, nor over another one.
        spec={**job.spec, "measure": {**job.spec["measure"], "pcap": None}},
        inputs=inputs,
        series=SeriesInfo(flow_rows=series.flow.num_rows, link_rows=series.link.num_rows, sha256=series.digest()),
    )
    return record, series


def described(flow: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """Return the core's metrics of a connection with its name, group, stack and workload in front."""
    identity = {
        "name": spec["name"],
        "group": spec["group"],
        "stack": label_of(spec["stack"]),
        "workload": spec["workload"]["kind"],
    }
    return identity | {name: value for name, value in flow.items() if name not in identity}


def one_line(error: BaseException) -> str:
    """Return an error's text as one line."""
    return " ".join(str(error).split()) or type(error).__name__
