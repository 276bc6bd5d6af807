"""Build a record and its series from the native core's result, for every backend."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from elephan.backends.copy_bounds import settled, with_agreement
from elephan.backends.host import host_facts
from elephan.backends.job import Job
from elephan.congestion_control import label_of, parts_of
from elephan.core import native, version
from elephan.record import InputFile, Record, SeriesInfo
from elephan.report.notes import extrapolated
from elephan.run_spec.types import FlowSpec, RunSpec
from elephan.store.series import Series, digest_of

if TYPE_CHECKING:
    from elephan._native import RunResult

PROGRESS_INTERVAL_S = 0.1
"""Wall time between two calls of a run's progress, s: smooth to the eye, and the GIL is taken ten times a second."""


MOST_WITH_TABLES = 32
"""Connections of a run up to which each has its tables of quantiles in the record: 0.6 kB each."""


def build_record(
    backend: str,
    job: Job,
    inputs: list[InputFile],
    spec: RunSpec,
    result: RunResult,
    metrics: dict[str, Any],
    notes: list[str],
    host: dict[str, Any] | None = None,
    reductions: list[dict[str, Any]] | None = None,
) -> tuple[Record, Series]:
    """Return the record and the series of a run that has just ended.

    `inputs` are the job's as they were when it began, `spec` is what the record keeps of its specification, `result`
    what the core gave back; `metrics` come after the core's own, `notes` in place of them, `host` is added
    to what is said of every host, `reductions` are the senders' answers to commands where the core does not know.
    """
    reductions = list(result.cwnd_reductions) if reductions is None else reductions
    numbers, quantiles = split_quantiles(result.metrics)
    # Each look at a list of the core's makes it anew.
    flows, entries = result.flows, result.flow_groups
    how = with_agreement(result.extrapolation)
    if how is not None and "bounds_agree" in how:
        numbers, flows, entries = settled(numbers), [settled(flow) for flow in flows], [settled(of) for of in entries]
    named: dict[int, tuple[str, dict[str, Any]]] = {}
    columns = result.flow_series, result.link_series
    series = Series.from_columns(*columns)
    record = Record(
        id=job.id,
        scenario=job.scenario,
        backend=backend,
        parameters=job.parameters,
        seed=job.seed,
        version=version(),
        metrics={**numbers, **metrics},
        flows=[
            described(_bounded(flow, len(flows)), spec, named)
            for flow, spec in zip(flows, job.spec["flows"], strict=True)
        ],
        links=list(result.links),
        background=list(result.background),
        flow_groups=[_bounded(entry, len(entries)) for entry in entries],
        extrapolation=how,
        short_flows=list(result.short_flows),
        quantiles=quantiles,
        manager=result.manager,
        event_times_s=list(result.event_times_s),
        windows=windows_of(list(result.windows)),
        cwnd_reductions=reductions,
        notes=[*notes, *not_reduced(reductions), *extrapolated(job.spec, how)],
        host=host_facts() | (host or {}),
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        spec=spec,
        inputs=inputs,
        series=SeriesInfo(flow_rows=series.flow.num_rows, link_rows=series.link.num_rows, sha256=digest_of(*columns)),
    )
    return record, series


def windows_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the windows of a measurement from the core's rows: of each that of the run, then those of connections."""
    found: list[dict[str, Any]] = []
    for row in rows:
        metrics = {name: value for name, value in row.items() if name not in ("name", "flow", "from_s", "to_s")}
        if "flow" in row:
            found[-1]["flows"].append({"name": row["flow"], **metrics})
        else:
            interval = {"from_s": row.get("from_s"), "to_s": row.get("to_s")}
            found.append({"name": row["name"], **interval, "metrics": metrics, "flows": []})
    return found


def split_quantiles(metrics: dict[str, Any]) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Return the core's metrics without tables of quantiles, and those, with the places of their values in front."""
    tables = {
        name.replace("_quantiles_s", "_s"): list(value) for name, value in metrics.items() if isinstance(value, list)
    }
    numbers = {name: value for name, value in metrics.items() if not isinstance(value, list)}
    return numbers, {"per_mille": [float(place) for place in native.QUANTILES_PER_MILLE]} | tables if tables else {}


def _bounded(flow: dict[str, Any], flows: int) -> dict[str, Any]:
    """Return the metrics of a connection, without tables where there are too many connections to draw them."""
    return flow if flows <= MOST_WITH_TABLES else split_quantiles(flow)[0]


def not_reduced(reductions: list[dict[str, Any]]) -> list[str]:
    """Return a note for each sender that did not reduce its window on command."""
    return [
        f"flow {reduction['flow']}: its window was not reduced at {reduction['at_s']:g} s: "
        + reduction.get("why_not", "it repaired losses, had no RTT yet, or has a control that sets the window itself")
        for reduction in reductions
        if "kept_segments" not in reduction
    ]


def described(
    flow: dict[str, Any], spec: FlowSpec, named: dict[int, tuple[str, dict[str, Any]]]
) -> dict[str, Any]:
    """Return the core's metrics of a connection with its name, group, congestion control and workload in front.

    `named` keeps the congestion controls, as text and as data, by their `id`: connections of a flow have the same one.
    """
    transport = spec["transport"]
    known = named.get(id(transport))
    if known is None:
        udt = transport.get("udt")
        own = {"name": udt["version"], "parameters": {}} if udt is not None else parts_of(transport)
        known = named[id(transport)] = (label_of(transport) if udt is None else udt["version"], own)
    label, control = known
    workload = spec["workload"]
    if workload["kind"] == "program" and workload["program"] == "srt":
        label, control = "srt", {"name": "srt", "parameters": {}}
    identity = {
        "name": spec["name"],
        "group": spec["group"],
        "congestion_control": label,
        "control": control,
        "workload": workload["program"] if workload["kind"] == "program" else workload["kind"],
    }
    return identity | {name: value for name, value in flow.items() if name not in identity}


def one_line(error: BaseException) -> str:
    """Return an error's text as one line."""
    return " ".join(str(error).split()) or type(error).__name__
