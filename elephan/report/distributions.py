"""Distributions of latency and lag from the quantiles that records hold: of a run, or of one flow entry of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from elephan.record import Record
from elephan.report.timeline import Floats

COUNTED_BY = {
    "latency_s": "messages",
    "lag_s": "messages",
    "read_latency_s": "reads",
    "write_latency_s": "writes",
}
"""By metric: the metric that counts its values, which is the weight of a connection among others."""


@dataclass(frozen=True)
class Distribution:
    """A cumulative distribution: up to `values_s` lie `shares` of all; both ascend."""

    values_s: Floats
    shares: Floats


def distribution_of(record: Record, name: str, group: object = None) -> Distribution | None:
    """Return a distribution of a run, or of the connections of one flow entry; None when the record has none.

    Of several connections their mixture, each with the weight of what it counted.
    """
    per_mille = record.quantiles.get("per_mille")
    if per_mille is None:
        return None
    shares = np.asarray(per_mille) / 1000
    if group is None:
        table = record.quantiles.get(name)
        return None if table is None else Distribution(np.asarray(table), shares)
    # Connections that share a workload have no distributions of their own: it has.
    counted = [*record.flow_groups, *record.flows]
    parts = [part for part in counted if part.get("group") == group]
    tables = [(np.asarray(table), _weight(part, name)) for part in parts if (table := part.get(_key(name)))]
    if not tables:
        return None
    return Distribution(*(tables[0][0], shares)) if len(tables) == 1 else _mixture(tables, shares)


def _key(name: str) -> str:
    return name.removesuffix("_s") + "_quantiles_s"


def _weight(part: dict[str, Any], name: str) -> float:
    return float(part.get(COUNTED_BY.get(name, ""), 1) or 0)


def _mixture(tables: list[tuple[Floats, float]], shares: Floats) -> Distribution:
    """Return the mixture at all values of its parts, linear between the quantiles of each."""
    values = np.unique(np.concatenate([table for table, _ in tables]))
    total = sum(weight for _, weight in tables) or 1.0
    parts = [np.interp(values, table, shares, left=0.0, right=1.0) * weight / total for table, weight in tables]
    return Distribution(values, np.sum(parts, axis=0))
