"""Steady states of BIC under periodic loss: `python -m evaluation.congestion_control.bic_states` prints their range.

BIC's growth all but stops near W_max. So a loss every 1/p segments finds the window at W_max, wherever that is, and
leaves W_max there: there is no one window but a range of them, and the history decides. The published sum over a cycle
(`elephan.loss_response.cycles.bic`) is near the upper end. This takes the equations of the paper with whole segments
and a round trip of recovery after each loss, begins at many windows, and says where the cycles end up.
"""

from __future__ import annotations

import sys
from math import floor

from elephan.loss_response.cycles import bic
from evaluation.congestion_control import cases
from evaluation.markdown import table

LOSSES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
BEGINNINGS = tuple(step / 20 for step in range(4, 31))
"""First windows, as parts of the published peak."""
CYCLES = 120
"""Cycles of a run; the last half of them counts."""


def mean_window(loss: float, beginning: float, arguments: dict[str, float], fast_convergence: bool = True) -> float:
    """Return the mean window of the last cycles, segments per round trip, from a first loss at a window of so many."""
    kept, low_window = arguments["kept"], arguments["low_window"]
    window, w_max = float(round(beginning)), 0
    means = []
    for _ in range(CYCLES):
        whole = floor(window)
        w_max = floor(whole * (1 + kept) / 2) if fast_convergence and whole < w_max else whole
        window = float(floor(whole / 2 if whole <= low_window else whole * kept))
        left, rounds, growth = 1 / loss, 0.0, 0.0
        while left > window + growth / 2:
            left -= window + growth / 2
            window += growth
            rounds += 1
            growth = growth_of(window, w_max, arguments)
        share = left / (window + growth / 2)
        window += growth * share
        means.append(1 / (loss * (rounds + share)))
    last = means[CYCLES // 2 :]
    return len(last) / sum(1 / mean for mean in last)


def growth_of(window: float, w_max: int, arguments: dict[str, float]) -> float:
    """Return the growth in a round trip, segments: binary search below W_max, max probing from it on."""
    if window <= arguments["low_window"]:
        return 1.0
    step = (w_max - window) / 2 if window < w_max else window - w_max
    return max(min(step, arguments["max_increment"]), arguments["min_increment"])


def steady_states(loss: float, fast_convergence: bool = True) -> tuple[float, float]:
    """Return the least and the largest mean window in which BIC may end up, over the published one."""
    arguments = next(cc for cc in cases.load()["congestion_control"] if cc["name"] == "bic")["arguments"]
    published = bic(loss, 0.1, **arguments)
    ratios = [
        mean_window(loss, part * published.peak, arguments, fast_convergence) / published.mean for part in BEGINNINGS
    ]
    return min(ratios), max(ratios)


def main() -> int:
    """Print the table."""
    rows = []
    for loss in LOSSES:
        both = [steady_states(loss, fast_convergence) for fast_convergence in (True, False)]
        rows.append([f"{loss:g}", *(f"{least:.2f} to {most:.2f}" for least, most in both)])
    print(table(["loss", "over the published window", "without fast convergence"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
