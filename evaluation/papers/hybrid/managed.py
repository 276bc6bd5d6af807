"""The manager at work: which flows it moved, and what became of them and of the IP level."""

from __future__ import annotations

from typing import Any

from elephan.papers.evaluation import Evaluation, PaperResults, Table, all_over_repetitions, part
from elephan.record import Record

CLAIM = "hybrid.manager"
FILE = "manager.toml"


def mega(value: float | None) -> str:
    """Return a number in millions; where it was not measured, a dash."""
    return "-" if value is None else f"{value / 1e6:,.1f}"


def row(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return an entry of the move log as the table shows it."""
    return (
        str(entry["flow"]),
        str(entry["reason"]),
        f"{entry['at_s']:g} s",
        f"{entry['left_at_s']:g} s" if entry.get("left_at_s") is not None else "-",
        mega(entry.get("rate_before_bps")),
        mega(entry.get("rate_after_bps")),
        mega(entry.get("forecast_cost_bytes")),
        mega(entry.get("cost_bytes")),
        mega(entry.get("forecast_gain_bytes")),
        mega(entry.get("gain_bytes")),
    )


def measured_of(record: Record) -> dict[str, float]:
    """Return the claim's quantities of a run."""
    managed: dict[str, Any] = record.manager or {}
    move_log = managed["move_log"]
    onto = {entry["flow"]: entry for entry in move_log if entry["reason"] == "elephant"}
    # The named flows of the scenario are its elephants; the crowd's flows have a number behind the crowd's name.
    elephants = [str(flow["name"]) for flow in record.flows]
    (lightpath,) = managed["lightpaths"]
    return {
        "elephants": float(len(elephants)),
        "elephants_moved": float(sum(name in onto for name in elephants)),
        "load_carrying": lightpath["ip_load_carrying_bps"] / 1e6,
        "load_idle": lightpath["ip_load_idle_bps"] / 1e6,
        "backup_before": onto["backup"]["rate_before_bps"] / 1e6,
        "backup_after": onto["backup"]["rate_after_bps"] / 1e6,
        "wasted": float(managed["metrics"]["wasted_moves"]),
        "moves": float(managed["metrics"]["moves"]),
        "returns": float(managed["metrics"]["returns"]),
        "none": 0.0,
    }


@part(FILE)
def manager(results: PaperResults) -> Evaluation:
    """Two elephants and a crowd, and one lightpath."""
    records = results.of(FILE)
    record = records[0]
    heads = ("flow", "why", "at", "back at", "before", "after", "cost thought", "cost", "gain thought", "gain")
    entries = (record.manager or {})["move_log"]
    table = Table(
        CLAIM,
        "The manager's move log, first seed",
        heads,
        tuple(row(entry) for entry in entries),
        "Rates in Mbit/s, costs and gains in MB. A dash: not measured, because the flow was over.",
    )
    measured = all_over_repetitions(records, lambda seed: measured_of(seed[0]))
    return Evaluation({CLAIM: measured}, [], [table])
