"""The advice on the kernel backend: Linux over an emulated path, beside the simulator's next and fixed choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from elephan import backends
from elephan.advise.advice import advise
from elephan.advise.candidate import Candidate
from elephan.advise.candidates import ordinary, text_of
from elephan.advise.harm import ORDINARY, Limit, excess_of, harm_of
from elephan.advise.plan import plan_of
from elephan.advise.simulation import Horizon, outcome_of, spec_of
from elephan.api import job_of
from elephan.errors import RunError
from evaluation.advice.cells import Cell, facts_of
from evaluation.advice.judge import CORE_SECONDS, FIXED

RATE_MAX_BPS = 200e6
"""Faster paths are left out: both ends, all flows and the emulator share the machine's cores."""
HORIZON_S = 10.0
NEXT = 3
WITHIN = 0.9


def judged(cell: Cell) -> dict[str, Any]:
    """Return the goodput of each choice on the kernel, and the harm of the advice; for JSON."""
    result: dict[str, Any] = {"index": cell.index, "seed": cell.seed, "path": asdict(cell.path)}
    if cell.path.rate_bps > RATE_MAX_BPS:
        return {**result, "skipped": f"faster than {RATE_MAX_BPS / 1e6:g} Mbit/s"}
    try:
        facts = facts_of(cell)
    except RunError as error:
        return {**result, "skipped": str(error)}
    plan = plan_of(facts, cell.copy_bytes, CORE_SECONDS, longest_s=HORIZON_S)
    advice = advise(facts, bytes_to_copy=round(cell.copy_bytes), workers=1, plan=plan, budget_s=600.0)
    keeping = [row for row in advice.table if row["excess"] is not None and row["excess"] <= 0]
    following = [_candidate(row) for row in keeping if _candidate(row) != advice.candidate][:NEXT]
    horizon = Horizon(max(2.0, 12 * cell.path.rtt_s), HORIZON_S)
    choices = {"advice": advice.candidate, **{f"next {n + 1}": one for n, one in enumerate(following)}, **FIXED}
    goodputs: dict[Candidate, float] = {}
    notes: list[str] = []
    for one in choices.values():
        if one not in goodputs:
            goodputs[one] = _run(cell, one, horizon, with_references=False, notes=notes)[0]
    usual = ordinary(ORDINARY)
    beside = {
        one: [_run(cell, one, horizon, with_references=True, notes=notes)[1]] for one in {None, usual, advice.candidate}
    }
    excess = excess_of(Limit(), beside[None], beside[usual], beside[advice.candidate])[0]
    return {
        **result,
        "forecast_bps": advice.goodput_bps,
        "choices": {name: {"candidate": text_of(one), "goodput_bps": goodputs[one]} for name, one in choices.items()},
        "harm": harm_of(beside[None], beside[advice.candidate]),
        "excess": excess,
        "notes": notes,
    }


def _candidate(row: dict[str, Any]) -> Candidate:
    return Candidate(row["control"], row["streams"], row["window_bytes"], row["transport"], row["pacing_bps"])


def _run(
    cell: Cell, one: Candidate | None, horizon: Horizon, *, with_references: bool, notes: list[str]
) -> tuple[float, tuple[float, ...]]:
    """Return the copy's goodput and the reference flows', bit/s."""
    spec = spec_of(cell.path, one, horizon, cell.seed, with_references=with_references)
    record, _ = backends.run(job_of(spec, "advice", "kernel"))  # type: ignore[arg-type]
    rates = [float(flow["goodput_bps"] or 0.0) for flow in record.flows]
    notes += [note for note in record.notes if note not in notes]
    found = outcome_of(cell.path, one, rates)
    return found.copy_bps, found.references_bps


def summary(found: Sequence[dict[str, Any]]) -> str:
    """Return the result in some lines."""
    cells = [one for one in found if "skipped" not in one]
    if not cells:
        return f"no path was run; {len(found)} skipped"
    lines = [f"{len(cells)} paths on the kernel, {len(found) - len(cells)} left out"]
    for name in cells[0]["choices"]:
        of = [one for one in cells if name in one["choices"]]
        shares = sorted(
            one["choices"]["advice"]["goodput_bps"] / max(1.0, one["choices"][name]["goodput_bps"]) for one in of
        )
        lines.append(f"advice / {name}: median {shares[len(shares) // 2]:.2f}, least {shares[0]:.2f}")
    got = [(one["forecast_bps"], one["choices"]["advice"]["goodput_bps"]) for one in cells]
    banded = sum(band[0] <= value <= band[2] for band, value in got)
    lines.append(f"goodput within the forecast's band: {banded} of {len(cells)}")
    return "\n".join(lines)
