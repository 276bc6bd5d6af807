"""The two hosts of a point, and the bounds that the command line puts on its specification."""

from __future__ import annotations

from elephan.backends.hosts.options import HostOptions
from elephan.backends.job import HostPair
from elephan.errors import InputError
from elephan.run_spec.types import FlowSpec, RunSpec
from elephan.scenario.document import Document
from elephan.units import duration

LEAST_ROUND_TRIPS = 10
"""Round trips of the longest path that --max-time has to leave a run: some for its connections, some for its data."""


def pair_of(document: Document, options: HostOptions | None) -> HostPair:
    """Return the hosts of a point: the command line's, else the scenario's. Raises `InputError` when there are none."""
    limit = None if options is None else options.rate_limit_bps
    if options is not None and options.pair is not None:
        return HostPair(*options.pair, limit)
    if document.hosts is None:
        raise InputError("--on hosts: between which? --hosts LEFT,RIGHT, or [hosts] with left and right in the file")
    return HostPair(document.hosts.left, document.hosts.right, limit)


def bounded(spec: RunSpec, options: HostOptions | None) -> RunSpec:
    """Return a specification that ends with --max-time. Raises `InputError` where that is too early for a flow."""
    longest_ns = None if options is None else options.max_time_ns
    if longest_ns is None or spec["duration_ns"] <= longest_ns:
        return spec
    for flow in spec["flows"]:
        if flow["start_ns"] >= longest_ns:
            raise InputError(f"--max-time: flow {flow['name']} begins at {flow['start_ns'] / 1e9:g} s, after that")
    if spec["measure"]["warmup_ns"] >= longest_ns:
        raise InputError(f"--max-time: measure.warmup is {spec['measure']['warmup_ns'] / 1e9:g} s, no less than that")
    least_ns = LEAST_ROUND_TRIPS * max(_round_trip_ns(spec, flow) for flow in spec["flows"])
    if longest_ns < least_ns:
        raise InputError(
            f"--max-time: at least {duration(least_ns / 1e9)} here, {LEAST_ROUND_TRIPS} expected round trips, or "
            "nothing has happened when it ends"
        )
    return {**spec, "duration_ns": longest_ns}


def _round_trip_ns(spec: RunSpec, flow: FlowSpec) -> int:
    return sum(spec["links"][hop]["delay_ns"] for hop in (*flow["route"], *flow["return_route"]))
