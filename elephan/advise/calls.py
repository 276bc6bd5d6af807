"""Telephone calls of a scenario beside the proposed copy: what `elephan run` tells of them, on the advised path."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from elephan.advise.candidate import Candidate
from elephan.advise.draws import middle
from elephan.advise.facts import PathFacts
from elephan.advise.plan import LONG_RTTS, LONGEST_S, PACKETS
from elephan.advise.simulation import Horizon, horizon_of, simulated, spec_of
from elephan.core import native
from elephan.run_spec.types import BackgroundSpec
from elephan.units import share

LIMIT_S = 5.0
"""Time that both runs take at most, by the clock, s."""


@dataclass(frozen=True)
class Calls:
    """One source of calls, without the copy and beside it."""

    name: str
    loss: tuple[float, float]
    rating: tuple[float, float]
    """R of ITU-T G.107."""
    mos: tuple[float, float]

    def text(self) -> str:
        """Return it in a line."""
        without, beside = (
            f"R {rating:.1f}, MOS {mos:.2f}, {share(loss)} lost"
            for rating, mos, loss in zip(self.rating, self.mos, self.loss, strict=True)
        )
        return f"calls: {self.name}: {beside} beside the copy; {without} without it"


def calls_of(facts: PathFacts, candidate: Candidate, background: Sequence[BackgroundSpec], seed: int) -> list[Calls]:
    """Return the sources whose packets carry speech; none where the time was too short for it."""
    if not any(source.get("codec") for source in background):
        return []
    # The sources themselves take the place of their rate.
    path = replace(middle(facts), background_bps=0.0)
    horizon = horizon_of(path, PACKETS, LONGEST_S, LONG_RTTS)
    deadline_s = time.monotonic() + LIMIT_S
    route = [1] if path.policer_rate_bps is not None else [0]
    sources: list[BackgroundSpec] = [{**source, "route": route} for source in background]

    def counters(copy: Candidate | None) -> list[Any]:
        # The start of the copy does not count.
        half = Horizon(horizon.before_s, horizon.copy_s, horizon.copy_s / 2)
        spec = spec_of(path, copy, half, seed, with_references=False)
        spec["background"] = sources
        return cast("list[Any]", simulated(spec, deadline_s).background)

    try:
        pairs = list(zip(counters(None), counters(candidate), strict=True))
    except native.Stopped:
        return []

    def both(pair: tuple[Any, Any], metric: str) -> tuple[float, float]:
        return float(pair[0][metric]), float(pair[1][metric])

    return [
        Calls(str(pair[0]["name"]), both(pair, "loss_share"), both(pair, "voice_r"), both(pair, "voice_mos"))
        for pair in pairs
        if all(run.get("voice_r") is not None for run in pair)
    ]
