"""Advice: the candidate to copy with, its forecast, the harm it does to others, and the reasons."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from elephan.advise.candidate import Candidate
from elephan.advise.candidates import CONTROLS, candidates_of, is_below_policer, ordinary, text_of, usual_of
from elephan.advise.draws import drawn, has_others
from elephan.advise.facts import PathFacts
from elephan.advise.forecast import FileSet, forecast, workload_of
from elephan.advise.harm import ORDINARY, Limit
from elephan.advise.plan import Plan, is_long, is_start, plan_of
from elephan.advise.race import Race
from elephan.advise.reasons import reasons_of
from elephan.advise.scenario import scenario_of
from elephan.advise.simulation import REFERENCES, Horizon, Path

__all__ = ["Advice", "Band", "Candidate", "advise"]

Band = tuple[float, float, float]
"""Low, middle, high: 90 % of what is to be expected lies between low and high."""

BUDGET_S = 30.0
"""Time that an advice takes at most, by the clock, s."""
ROUNDS = (0.3, 0.5, 0.65, 0.85)
"""Parts of the time after which the first round, the search for what keeps the limit, the last round and the whole
copies end on a slow machine: what was simulated until then counts. The forecast of the proposed copy has the rest."""
MARGIN = 0.5
"""Standard errors that are added to a candidate's harm beyond the limit."""
TOLERANCE = 0.01
"""Harm beyond the limit that counts as keeping it: what chance makes of few runs."""
EQUAL = 0.02
"""Goodput within this share is equal: the candidate with less harm is taken."""
EQUAL_POLICED = 0.05
"""The same before a policer, of which one that stays below its rate is taken: what it drops is sent twice."""
SLACK = 0.08
"""Harm beyond the limit, on few paths, with which a candidate still goes to the last round."""
BOUNDED = 0.95
"""Share of its own rate from which a candidate has reached it."""
LONG_PART, FORECAST_PART = 0.2, 0.2
"""Parts of the time for the whole copies of the last candidates, and for the forecast of the one that is proposed."""
CORES = 2
"""Cores for which both are planned, however many there are: the answer is the same on every machine."""
LONG_RUN_PACKETS_PER_S, LONG_RUNS = 8_000_000, 7
"""Packets of a copy that a core simulates in a second, and the candidates whose whole copies are simulated."""
MIN_LONG_PACKETS = 200_000
T90 = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80, 1.78)
"""Student's t of 90 % of both sides, by degrees of freedom from 1 on."""


@dataclass(frozen=True)
class Advice:
    """The way to copy that is proposed, its forecast and its reasons."""

    candidate: Candidate
    goodput_bps: Band
    """Of the whole copy."""
    harm: dict[str, Band]
    """Share of goodput that an ordinary flow loses, by its control: "reno", "cubic". Empty: not simulated in time."""
    limit: float
    """Largest harm that the operator takes, of the reference flow that it binds most."""
    limit_text: str
    seconds: Band = (0.0, 0.0, 0.0)
    """Time of the whole copy, s."""
    not_steady: str | None = None
    """Reason why the simulated part is no sample of the rest: the bands are bounds then."""
    is_harm_of_start: bool = False
    """The runs beside the reference flows are too short for a flow's second loss: their harm is that of the start."""
    is_operators: bool = False
    """The operator named the limit."""
    rtt_s: float = 0.0
    """RTT of the empty path, s."""
    queue_s: float = 0.0
    """Time that a full queue takes to empty, s."""
    loss: float = 0.0
    """Loss of the path by itself."""
    keeps_limit: bool = True
    """False: no candidate does; this is the one with the least harm."""
    reasons: list[str] = field(default_factory=list)
    table: list[dict[str, Any]] = field(default_factory=list)
    """A row per candidate that was simulated, the most goodput first."""
    scenario: str = ""
    """The fitted scenario with the candidate's flow, TOML."""
    simulated: dict[str, Any] = field(default_factory=dict)
    """Cost of the simulation: runs, seconds of each run's copy, candidates, whether time ran out."""

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Advice:
        """Return the advice that `as_dict` gave, read from JSON. Raises `KeyError`, `TypeError`, `ValueError`."""
        bands = {name: _band(found[name]) for name in ("goodput_bps", "seconds")}
        harm = {name: _band(band) for name, band in found["harm"].items()}
        return cls(**{**found, "candidate": Candidate(**found["candidate"]), **bands, "harm": harm})


def _band(values: Sequence[float]) -> Band:
    low, middle, high = values
    return low, middle, high


def advise(
    facts: PathFacts,
    *,
    bytes_to_copy: int,
    harm_limit: float | None = None,
    controls: Sequence[str] = CONTROLS,
    seed: int = 1,
    workers: int | None = None,
    budget_s: float | None = None,
    plan: Plan | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Advice:
    """Return the candidate with the most goodput of those within the limit, simulated on paths drawn from the facts.

    The budget (None: `BUDGET_S`) bounds the packets to simulate, by the simulator's usual speed, and the time by the
    clock: a run that is under way then is stopped. The answer is the same on every machine unless the time itself runs
    out, which `simulated` tells.
    """
    began = time.monotonic()
    budget_s = BUDGET_S if budget_s is None else budget_s
    tell = on_progress or (lambda text: None)
    workers = workers or len(os.sched_getaffinity(0))
    plan = plan or plan_of(facts, bytes_to_copy, budget_s * workers)
    paths = drawn(facts, plan.draws, seed)
    usual = usual_of(paths[0], has_others(facts))
    limit = Limit(harm_limit, of_contract=usual.pacing_bps is not None)
    race = Race(paths, plan.horizon, seed, workers)
    race.deadline = began + ROUNDS[0] * budget_s
    candidates = candidates_of(paths[0], free_of(facts, paths[0]), controls)[: plan.candidates]
    tell(f"{len(candidates)} candidates on {plan.first_draws} of {plan.draws} paths")
    race.beside([None, usual], range(plan.harm_draws))
    race.alone(candidates, range(plan.first_draws))
    ranked = sorted(candidates, key=lambda one: -race.of(one).goodput())
    race.deadline = began + ROUNDS[1] * budget_s
    finalists = _finalists(race, ranked, usual, limit, plan)
    finalists += [one for one in candidates if is_below_policer(one, paths[0]) and one not in finalists]
    tell(f"{len(finalists)} candidates on all paths")
    race.deadline = began + ROUNDS[2] * budget_s
    race.beside([None, usual, *finalists], range(plan.draws))
    race.alone(finalists, range(plan.draws))
    is_a_long_copy = is_long(8 * bytes_to_copy / paths[0].bound_bps, plan.horizon)
    if is_a_long_copy:
        packets = max(MIN_LONG_PACKETS, round(LONG_PART * budget_s * CORES * LONG_RUN_PACKETS_PER_S / LONG_RUNS))
        copy = workload_of(FileSet(1, bytes_to_copy, ((bytes_to_copy, 1),)))
        race.deadline = began + ROUNDS[3] * budget_s
        tell("whole copies of the best of them")
        race.settle([*finalists, usual, *ranked[:1], ordinary(1)], copy, packets)
    chosen, keeps = _chosen(race, ranked, usual, limit)
    race.alone([chosen], range(plan.first_draws))
    race.beside([chosen, None], range(plan.harm_draws))
    limits = limit.of(race.harm(usual, race.weighed_on(usual, usual)))
    tell(f"the whole copy with {text_of(chosen)}")
    told = forecast(
        facts, chosen, FileSet.of_sizes([bytes_to_copy]), seed=seed, budget_s=FORECAST_PART * budget_s * CORES,
        workers=workers, deadline_s=began + budget_s,
    )  # fmt: skip
    race.of(chosen).long_run_bps = told.goodput_bps
    long_horizon = plan.horizon if is_a_long_copy else None
    table = [
        _row(race, one, usual, limit, long_horizon)
        for one in sorted(race.runs, key=lambda one: -race.of(one).goodput())
    ]
    seconds = (told.seconds_low, told.seconds, told.seconds_high)
    goodput = (told.goodput_bps * seconds[1] / seconds[2], told.goodput_bps, told.goodput_bps * seconds[1] / seconds[0])
    is_weighed = bool(race.weighed_on(chosen, chosen))
    harms = {name: _harm_band(race, chosen, place) for place, name in enumerate(REFERENCES) if is_weighed}
    advice = Advice(
        candidate=chosen,
        goodput_bps=goodput,
        seconds=seconds,
        not_steady=told.refused,
        harm=harms,
        is_harm_of_start=is_a_long_copy
        and is_start(paths[0], plan.horizon, len(REFERENCES) + chosen.streams + len(paths[0].competitors)),
        limit=max(limits),
        limit_text=limit.text,
        is_operators=harm_limit is not None,
        rtt_s=facts.rtt_s,
        queue_s=facts.queue_bytes * 8 / facts.rate_bps,
        loss=facts.loss,
        keeps_limit=keeps,
        table=[row for row in table if row["goodput_bps"] > 0],
        scenario=scenario_of(facts, chosen),
        simulated={
            "runs": race.count,
            "candidates": len(candidates),
            "copy_s": plan.horizon.copy_s,
            "long_run_bytes": told.simulated_bytes,
            "is_complete": not told.is_extrapolated,
            "paths": plan.draws,
            "seconds": time.monotonic() - began,
            "is_late": race.is_late or told.is_late,
        },
    )
    advice.reasons.extend(
        reasons_of(facts, chosen, goodput[1], {name: band[1] for name, band in harms.items()}, advice.table, keeps)
    )
    return advice


def free_of(facts: PathFacts, path: Path) -> float:
    """Return the rate that a copy may hope for, bit/s: what others leave, or its share as so many ordinary flows."""
    share = ORDINARY / (ORDINARY + len(path.competitors))
    return max(path.rate_bps - facts.competing_bps, share * path.rate_bps)


def _finalists(
    race: Race, ranked: Sequence[Candidate], usual: Candidate, limit: Limit, plan: Plan
) -> list[Candidate]:
    """Return the candidates with the most goodput that seem to keep the limit."""
    found: list[Candidate] = []
    for begin in range(0, len(ranked), plan.batch):
        batch = ranked[begin : begin + plan.batch]
        race.beside(batch, range(plan.harm_draws))
        for one in batch:
            if race.weighed_on(one, usual) and race.excess(one, usual, limit)[0] <= SLACK:
                found.append(one)
        if len(found) >= plan.finalists:
            break
    return found[: plan.finalists]


def _chosen(
    race: Race, ranked: Sequence[Candidate], usual: Candidate, limit: Limit
) -> tuple[Candidate, bool]:
    """Return the candidate to copy with, and whether it keeps the limit."""

    def excess(one: Candidate) -> float:
        return _excess(race, one, usual, limit)

    known = [one for one in ranked if race.weighed_on(one, usual)]
    keeping = [one for one in known if excess(one) <= TOLERANCE]
    if keeping:
        most = max(race.of(one).goodput() for one in keeping)
        path = race.paths[0]
        share = EQUAL if path.policer_rate_bps is None else EQUAL_POLICED
        equal = [one for one in keeping if race.of(one).goodput() >= (1 - share) * most]
        return min(equal, key=lambda one: (not is_below_policer(one, path), excess(one), one.streams)), True
    if limit.share is None and usual in ranked:
        # The harm of ordinary flows is the limit itself.
        return usual, True
    if not known:
        return ranked[0], False
    best = min(known, key=excess)
    return best, race.excess(best, usual, limit)[0] <= TOLERANCE


def _excess(race: Race, one: Candidate, usual: Candidate, limit: Limit) -> float:
    """Return the harm beyond the limit that a candidate may do, allowing for chance."""
    value, error = race.excess(one, usual, limit)
    return value + MARGIN * min(error, 1.0) if one != usual or limit.share is not None else 0.0


def _row(race: Race, one: Candidate, usual: Candidate, limit: Limit, long_horizon: Horizon | None) -> dict[str, Any]:
    """Return a row; `long_horizon`: times of the runs of a copy that takes several times as long."""
    runs, path = race.of(one), race.paths[0]
    sample = "copy"
    if runs.long_run_bps is None and long_horizon is not None:
        # A copy that has reached its own rate will not be faster.
        is_bounded = one.pacing_bps is not None and runs.goodput() >= BOUNDED * one.pacing_bps
        is_short = is_start(path, long_horizon, one.streams + len(path.competitors), one.window_bytes)
        sample = "start" if is_short and not is_bounded else "part"
    draws = race.weighed_on(one, usual)
    harms = race.harm(one, draws)
    known = bool(draws)
    return {
        "candidate": text_of(one),
        **asdict(one),
        "goodput_bps": runs.goodput(),
        "sample": sample,
        "harm": dict(zip(REFERENCES, harms, strict=True)) if known else None,
        "excess": race.excess(one, usual, limit)[0] if known else None,
        "keeps_limit": _excess(race, one, usual, limit) <= TOLERANCE if known else None,
        "runs": len(runs.alone) + len(runs.beside),
    }


def _half(values: Sequence[float]) -> float:
    """Return half the width of a prediction interval of 90 % (Student's t)."""
    count = len(values)
    return T90[min(count - 1, len(T90)) - 1] * statistics.stdev(values) * math.sqrt(1 + 1 / count)


def _harm_band(race: Race, chosen: Candidate, place: int) -> Band:
    of, draws = race.of(chosen).beside, race.weighed_on(chosen, chosen)
    total = race.harm(chosen, draws)[place]
    each = [1 - of[draw][place] / race.nobody.beside[draw][place] for draw in draws if race.nobody.beside[draw][place]]
    half = _half(each) if len(each) > 1 else 0.5
    middle = min(1.0, max(0.0, total))
    return max(0.0, middle - half), middle, min(1.0, middle + half)
