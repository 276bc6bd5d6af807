"""Records of older formats in the present one: what a key or a value was called then, and what it is called now.

Format 1 was written by 0.1.0. Format 2 renames keys and values and changes nothing else (CHANGELOG.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from elephan.renamed import KEYS, KINDS

RECORD = {
    "ground": "backend",
    "trims": "cwnd_reductions",
    "entries": "flow_groups",
    "crowds": "short_flows",
    "happened_s": "event_times_s",
}
MANAGER_SPEC = {
    "one_in": "sampling_rate",
    "memory": "flow_table_size",
    "idle_ns": "inactive_timeout_ns",
    "standard_errors_e3": "confidence_sigmas_e3",
    "back_below_bps": "return_rate_bps",
    "minimum_stay_ns": "min_dwell_time_ns",
    "linger_ns": "lightpath_timeout_ns",
    "fill_ppm": "max_utilization_ppm",
    "offload_worth_ppm": "offload_weight_ppm",
    "busy_ppm": "congestion_threshold_ppm",
    "watch_ns": "observation_window_ns",
    "keep_ppm": "cc_beta_ppm",
    "tail_e3": "pareto_shape_e3",
    "remedies": "mitigations",
}
MITIGATION_SPEC = {"gate": "hold_buffer", "trim": "cwnd_reduction", "tolerate": "reordering_tolerance"}
MOVE = {"remedy": "mitigation", "remedy_saves_bytes": "mitigation_saves_bytes"}
SIZES = {"index_e3": "pareto_shape_e3", "least_bytes": "min_bytes", "most_bytes": "max_bytes"}
SOURCE = {"slowdown_e6": "time_scale_e6", "beyond": "out_of_range"}

_IN_DOTTED_KEYS = {
    "flow": KEYS["FlowSettings"],
    "defaults": KEYS["FlowSettings"],
    "event": KEYS["Event"] | KEYS["CwndReduction"],
    "manager": KEYS["Manager"],
    "workload": KEYS["Replicate"] | KEYS["TraceSource"] | KEYS["ShortFlows"],
}

_WITH_KINDS = {"workload", "mitigation", "mitigations"}


def from_format_1(data: dict[str, Any]) -> dict[str, Any]:
    """Return a record of format 1 in format 2. What does not have the form of a record stays as it is."""
    data = _renamed(data, RECORD)
    data["format"] = 2
    _change(data, "parameters", _parameters)
    _each(data, "flows", _flow)
    _change(data, "manager", _manager)
    _change(data, "spec", _spec)
    return data


def _renamed(table: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in table.items()}


def _change(table: dict[str, Any], key: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    if isinstance(table.get(key), dict):
        table[key] = change(table[key])


def _each(table: dict[str, Any], key: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    if isinstance(table.get(key), list):
        # Connections of a flow may share the list: each is changed by itself.
        table[key] = [change(item) if isinstance(item, dict) else item for item in table[key]]


def _parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    upgraded: dict[str, Any] = {}
    for key, value in parameters.items():
        now = _dotted(key)
        has_kind = any(part in _WITH_KINDS for part in now.split("."))
        upgraded[now] = _value(value) if has_kind else value
    return upgraded


def _dotted(key: str) -> str:
    parts = key.split(".")
    table = "workload" if "workload" in parts[:-1] else parts[0]
    names = _IN_DOTTED_KEYS.get(table, {})
    return ".".join([parts[0], *(names.get(part, part) for part in parts[1:])])


def _value(value: Any) -> Any:
    """A swept value: a kind, a list of kinds, or a table that has one."""
    if isinstance(value, str):
        return KINDS.get(value, value)
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, dict) and "kind" in value:
        return _renamed(value, KEYS["CwndReduction"] | KEYS["TraceSource"]) | {"kind": _value(value["kind"])}
    return value


def _flow(flow: dict[str, Any]) -> dict[str, Any]:
    flow = _renamed(flow, KEYS["FlowSettings"])
    if "workload" in flow:
        flow["workload"] = _value(flow["workload"])
    return flow


def _manager(manager: dict[str, Any]) -> dict[str, Any]:
    manager = _renamed(manager, {"ledger": "move_log"})
    _each(manager, "move_log", _move)
    return manager


def _move(move: dict[str, Any]) -> dict[str, Any]:
    move = _renamed(move, MOVE)
    if isinstance(move.get("mitigation"), str):
        move["mitigation"] = ", ".join(KINDS.get(kind, kind) for kind in move["mitigation"].split(", "))
    return move


ABSENT_IN_TRANSPORT = {"window_bound": True, "sack_compression": False, "max_reordering": 300, "undo": True}
"""Meaning of the oldest specifications, written before a transport had these keys. They are no defaults:
an endpoint has SACK compression since."""


def _spec(spec: dict[str, Any]) -> dict[str, Any]:
    spec = _renamed(spec, {"crowds": "short_flows"})
    if "format" in spec:
        spec["format"] = 2
    _each(spec, "flows", _flow_spec)
    _each(spec, "short_flows", _short_flows_spec)
    _change(spec, "manager", _manager_spec)
    _each(spec, "events", _event_spec)
    return spec


def _flow_spec(flow: dict[str, Any]) -> dict[str, Any]:
    flow = _renamed(flow, {"stack": "transport"})
    _change(flow, "transport", _transport_spec)
    _change(flow, "workload", _workload_spec)
    return flow


def _transport_spec(transport: dict[str, Any]) -> dict[str, Any]:
    return ABSENT_IN_TRANSPORT | _renamed(transport, {"congestion": "congestion_control"})


def _workload_spec(workload: dict[str, Any]) -> dict[str, Any]:
    workload = dict(workload)
    if "kind" in workload:
        workload["kind"] = _value(workload["kind"])
    _change(workload, "trace", _source_spec)
    _change(workload, "source", _source_spec)
    return workload


def _source_spec(source: dict[str, Any]) -> dict[str, Any]:
    source = _renamed(source, SOURCE)
    _change(source, "trace", _source_spec)
    return source


def _short_flows_spec(flows: dict[str, Any]) -> dict[str, Any]:
    flows = _flow_spec(flows)
    _change(flows, "sizes", lambda sizes: _renamed(sizes, SIZES))
    return flows


def _manager_spec(manager: dict[str, Any]) -> dict[str, Any]:
    manager = _renamed(manager, MANAGER_SPEC)
    _each(manager, "mitigations", _with_mitigation)
    return manager


def _event_spec(event: dict[str, Any]) -> dict[str, Any]:
    event = dict(event)
    _change(event, "action", _with_mitigation)
    return event


def _with_mitigation(table: dict[str, Any]) -> dict[str, Any]:
    table = _renamed(table, KEYS["Event"])
    _change(table, "mitigation", _mitigation_spec)
    return table


def _mitigation_spec(mitigation: dict[str, Any]) -> dict[str, Any]:
    mitigation = _renamed(mitigation, MITIGATION_SPEC)
    _change(mitigation, "cwnd_reduction", lambda found: _renamed(found, {"keep_ppm": "cwnd_fraction_ppm"}))
    return mitigation
