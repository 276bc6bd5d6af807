"""Statements by which the demand of the figures was chosen, over all demands that were tried.

Number and size of the requests under way are not in the paper. The figures' own, four of 256 KiB, were taken because
these statements hold with them, so that the figures' runs cannot refute them. They are held against all demands of
hypotheses.json instead, as a region of the claim.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elephan.papers.claims import Order, Outcome, Value
from elephan.papers.spread import Spread

from .cells import BASE, DEMANDS, EACH_DEMANDS

FOUND = Path(__file__).parent / "hypotheses.json"

Numbers = Mapping[str, Sequence[float]]
"""Quantities of a claim under a set-up, a value per repetition."""

STATEMENTS: Mapping[str, Mapping[str, Order | Value]] = {
    "iscsi.fig7": {
        "rises_by_demand": Order(
            label="mean over the congestion controls: 1 < 2 < 5 < 10 connections",
            rising=("mean_1", "mean_2", "mean_5", "mean_10"),
        )
    },
    "iscsi.fig9-10": {
        "rises_by_demand": Order(
            label="mean over the congestion controls: 4 < 16 < 64 < 256 KiB",
            rising=("at_4k", "at_16k", "at_64k", "at_256k"),
        ),
        # "Flat" is taken as within 5 %.
        "flat_by_demand": Value(
            name="flat",
            label="1 and 4 MiB over 256 KiB, mean over the congestion controls, furthest from 1",
            paper=1,
            tolerance=0.05,
        ),
    },
}
"""By claim and by the name of its region."""


def outcome(statement: Order | Value, numbers: Numbers) -> Outcome:
    """Return what the numbers of a set-up say of a statement."""
    if isinstance(statement, Order):
        return statement.outcome([Spread(tuple(numbers[name])) for name in statement.rising])
    return Outcome.HOLDS if statement.holds(Spread(tuple(numbers[statement.name])).median) else Outcome.BROKEN


def load() -> dict[str, Any]:
    """Return what was found: by name the settings of a set-up, its numbers by claim, and the days of its runs."""
    found: dict[str, Any] = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    return found


def by_demand(claim: str, found: Mapping[str, Any] | None = None) -> dict[str, list[float]]:
    """Return for each statement of a claim 1 for a demand with which it holds, else 0. Raises KeyError for a demand
    without numbers."""
    kept = load() if found is None else found
    demands = [kept[name]["claims"][claim] for name in (BASE, *EACH_DEMANDS, *DEMANDS)]
    return {
        name: [float(outcome(statement, numbers) is Outcome.HOLDS) for numbers in demands]
        for name, statement in STATEMENTS[claim].items()
    }
