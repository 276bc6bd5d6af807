"""One cell judged: advice from measured facts, beside an exhaustive search, fixed choices and a hill climber."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from elephan.advise.advice import advise
from elephan.advise.candidate import OPEN_WINDOW_BYTES, Candidate
from elephan.advise.candidates import candidates_of, ordinary, text_of
from elephan.advise.harm import ORDINARY, Limit, excess_of, harm_of
from elephan.advise.plan import plan_of
from elephan.advise.simulation import Horizon, Path, simulate
from elephan.errors import RunError
from evaluation.advice.cells import LONGEST_S, PACKETS, Cell, cost, facts_of, horizon

SEEDS = 2
"""Runs of a candidate's goodput; of its harm: `HARM_SEEDS`."""
HARM_SEEDS = 4
CORE_SECONDS = 10.0
"""Time that the advice may simulate, of one core at the planned speed: a part of what the command has."""
FIXED = {
    "cubic x1": ordinary(1),
    "cubic x4": ordinary(4),
    "cubic x8": ordinary(8),
    "cubic x16": ordinary(16),
    "bbr x1": Candidate("bbr", 1, OPEN_WINDOW_BYTES),
}
GAIN = 1.05
"""The hill climber doubles its streams while that gains so much."""
CLIMB = (1, 2, 4, 8, 16, 32)


class Truth:
    """Runs on the true path; each is made once."""

    def __init__(self, path: Path, horizon: Horizon, seed: int) -> None:
        """Take the path as it is."""
        self.path, self.horizon, self.seed = path, horizon, seed
        self._alone: dict[Candidate, float] = {}
        self._beside: dict[Candidate | None, list[tuple[float, ...]]] = {}
        self.runs = 0

    def goodput(self, candidate: Candidate) -> float:
        """Return the mean goodput, bit/s."""
        if candidate not in self._alone:
            found = [self._run(candidate, seed, False).copy_bps for seed in range(SEEDS)]
            self._alone[candidate] = sum(found) / SEEDS
        return self._alone[candidate]

    def beside(self, candidate: Candidate | None) -> list[tuple[float, ...]]:
        """Return the goodput of the reference flows beside a candidate, or nobody, of each seed."""
        if candidate not in self._beside:
            found = [self._run(candidate, seed, True).references_bps for seed in range(HARM_SEEDS)]
            self._beside[candidate] = found
        return self._beside[candidate]

    def excess(self, candidate: Candidate, limit: Limit) -> tuple[float, float]:
        """Return the harm beyond the limit, and its standard error."""
        if candidate == ordinary(ORDINARY) and limit.share is None:
            return 0.0, 0.0
        return excess_of(limit, self.beside(None), self.beside(ordinary(ORDINARY)), self.beside(candidate))

    def _run(self, candidate: Candidate | None, seed: int, with_references: bool) -> Any:
        self.runs += 1
        return simulate(self.path, candidate, self.horizon, self.seed + 7919 * seed, with_references=with_references)


def search(path: Path, truth: Truth) -> list[Candidate]:
    """Return the grid of the exhaustive search on a path that is known."""
    share = ORDINARY / (ORDINARY + len(path.competitors))
    return candidates_of(path, share * path.rate_bps)


def judged(cell: Cell, limit: Limit | None = None) -> dict[str, Any]:
    """Return all that the page says of a cell, for JSON."""
    limit = limit or Limit()
    began = time.thread_time()
    path = cell.path
    truth = Truth(path, horizon(cell), cell.seed)
    result: dict[str, Any] = {
        "index": cell.index,
        "seed": cell.seed,
        "path": asdict(path),
        "horizon": asdict(horizon(cell)),
        "packets": cost(cell),
    }
    try:
        facts = facts_of(cell)
    except RunError as error:
        return {**result, "failed": str(error)}
    measured_s = time.thread_time() - began
    plan = plan_of(facts, cell.copy_bytes, CORE_SECONDS, most=PACKETS, longest_s=LONGEST_S)
    advice = advise(
        facts, bytes_to_copy=round(cell.copy_bytes), harm_limit=limit.share, workers=1, plan=plan, budget_s=600.0
    )
    advised_s = time.thread_time() - began - measured_s
    grid = search(path, truth)
    ranked = sorted(grid, key=lambda one: -truth.goodput(one))
    best = next((one for one in ranked if truth.excess(one, limit)[0] <= 0), None)
    climbed = _climbed(truth)
    choices = {"advice": advice.candidate, **FIXED, "hill climber": climbed}
    result |= {
        "facts": {key: value for key, value in asdict(facts).items() if key != "sources"},
        "refused": {name: one["refused"] for name, one in facts.sources.items() if one["refused"]},
        "measured": _cost(facts.sources),
        "advice": {
            "goodput_bps": advice.goodput_bps,
            "harm": advice.harm,
            "keeps_limit": advice.keeps_limit,
            "simulated": advice.simulated,
        },
        "best": None if best is None else _choice(truth, best, limit),
        "choices": {name: _choice(truth, one, limit) for name, one in choices.items()},
        "grid": len(grid),
        "runs": truth.runs,
        "cpu_s": {"measure": measured_s, "advise": advised_s, "judge": time.thread_time() - began},
    }
    return result


def _choice(truth: Truth, one: Candidate, limit: Limit) -> dict[str, Any]:
    excess, error = truth.excess(one, limit)
    return {
        "candidate": text_of(one),
        "goodput_bps": truth.goodput(one),
        "harm": harm_of(truth.beside(None), truth.beside(one)),
        "excess": excess,
        "error": error,
    }


def _climbed(truth: Truth) -> Candidate:
    """Return where a climber without a model ends: streams of CUBIC, doubled while that gains."""
    streams = CLIMB[0]
    for more in CLIMB[1:]:
        if truth.goodput(ordinary(more)) < GAIN * truth.goodput(ordinary(streams)):
            break
        streams = more
    return ordinary(streams)


def _cost(sources: dict[str, dict[str, Any]]) -> dict[str, float]:
    costs: Sequence[dict[str, float]] = [one["cost"] for one in sources.values() if one["cost"]]
    return {name: sum(one[name] for one in costs) for name in ("seconds", "bytes")}
