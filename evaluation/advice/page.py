"""The parts of docs/results/advice.md that are measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

BROKEN = 0.05
"""Harm beyond the limit from which on it is broken, if chance does not explain it."""
SIGMAS = 2.0
WITHIN = 0.9


def ratio(cell: dict[str, Any], choice: str = "advice") -> float:
    """Return a choice's goodput as a share of the best's."""
    return float(cell["choices"][choice]["goodput_bps"] / max(1.0, cell["best"]["goodput_bps"]))


def breaks(cell: dict[str, Any], choice: str = "advice") -> bool:
    """Return True if a choice breaks the harm limit: by more than 5 points and two standard errors."""
    one = cell["choices"][choice]
    return bool(one["excess"] > BROKEN and one["excess"] > SIGMAS * one["error"])


def usable(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cells that have an answer."""
    return [one for one in found if "failed" not in one and one["best"] is not None]


def summary(found: Sequence[dict[str, Any]]) -> str:
    """Return the result in some lines."""
    cells = usable(found)
    lines = [f"{len(found)} cells, {len(found) - len(cells)} without an answer"]
    for choice in cells[0]["choices"] if cells else ():
        ratios = sorted(ratio(one, choice) for one in cells)
        within = sum(one >= WITHIN for one in ratios)
        good = sum(ratio(one, choice) >= WITHIN and not breaks(one, choice) for one in cells)
        broken = sum(breaks(one, choice) for one in cells)
        total = len(cells)
        lines.append(
            f"{choice}: within 10 % {within}/{total} ({within / total:.0%}), limit broken {broken}/{total} "
            f"({broken / total:.0%}), both {good / total:.0%}, median {ratios[total // 2]:.2f}"
        )
    return "\n".join(lines)


def write(seed: int, fresh: int | None, file_of: Callable[[int], Path]) -> None:
    """Write the parts of the page."""
    raise NotImplementedError
