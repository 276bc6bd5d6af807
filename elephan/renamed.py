"""Names that 0.1.0 gave and this version does not: an old one is refused with the new one; old records are read by
them."""

from __future__ import annotations

KEYS: dict[str, dict[str, str]] = {
    "FlowSettings": {"stack": "congestion_control"},
    "Event": {"remedy": "mitigation"},
    "CwndReduction": {"keep": "cwnd_fraction"},
    "Manager": {
        "sample": "sampling_rate",
        "standard_errors": "confidence_sigmas",
        "memory": "flow_table_size",
        "idle": "inactive_timeout",
        "linger": "lightpath_timeout",
        "back_below": "return_rate",
        "minimum_stay": "min_dwell_time",
        "fill": "max_utilization",
        "busy": "congestion_threshold",
        "offload_worth": "offload_weight",
        "watch": "observation_window",
        "keep": "cc_beta",
        "tail": "pareto_shape",
        "remedies": "mitigations",
    },
    "Replicate": {"slowdown": "time_scale"},
    "TraceSource": {"slowdown": "time_scale", "beyond": "out_of_range"},
    "ShortFlows": {"least": "min", "most": "max", "tail": "pareto_shape"},
}
"""By the class of a table: old key and new key."""

KINDS = {
    "offered": "constant_rate",
    "hold": "hold_buffer",
    "equalise": "delay_equalization",
    "trim": "cwnd_reduction",
    "tolerate": "reordering_tolerance",
}
"""Values of `kind`: old and new."""

COMMANDS = {"stacks": "cc"}
"""Commands of `elephan`: old and new."""

OPTIONS = {"--stacks": "--cc", "--stack": "--cc", "--slowdown": "--time-scale", "--beyond": "--out-of-range"}
"""Options: old and new."""


def new_key(tables: list[str], key: str) -> str | None:
    """Return what `key` is called now in the first of `tables` (names of classes) that had it; None where none had."""
    return next((KEYS[table][key] for table in tables if key in KEYS.get(table, {})), None)
