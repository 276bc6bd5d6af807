"""Paths of the judgement, drawn from a seed, and the path tests on them in the simulator."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elephan.advise.candidate import Candidate
from elephan.advise.facts import PathFacts
from elephan.advise.measure import measured
from elephan.advise.simulation import Horizon, Path, horizon_of, packets_of, spec_of
from elephan.core import native

RATES_BPS = (10e6, 10e9)
RTTS_S = (0.005, 0.2)
LOSSES = (1e-6, 1e-2)
QUEUES_BDP = (0.1, 2.0)
BURSTS = (2.0, 20.0)
FLOWS_MAX = 5
NO_LOSS = 0.25
"""Share of the paths without loss; half of the others lose in bursts."""
POLICED = 0.15
"""Share of the paths with a policer."""
SHARED = 0.5
"""Share of the policers that others pass too."""
RENO = 0.3
"""Share of the competing flows that are Reno; the others are CUBIC."""
COPY_S = 600.0
"""Length of the copy at the line's rate, of whose bytes the tests may send a share."""
TEST_START_S = 2.0
TEST_SPAN_S = 60.0
CLOCK = {"clock_offset_ns": 12_345_678_901, "clock_skew_e9": 10_000}
"""The receiver's clock is not the sender's."""


@dataclass(frozen=True)
class Cell:
    """A drawn path."""

    index: int
    seed: int
    path: Path

    @property
    def copy_bytes(self) -> float:
        """Bytes of the copy that the advice is for."""
        return self.path.rate_bps / 8 * COPY_S


PACKETS = 80_000.0
"""Packets of a full bottleneck in the time that is judged, unless that is longer than `LONGEST_S` or shorter than
`LEAST_RTTS` round trips."""
LONGEST_S = 8.0
LEAST_RTTS = 25.0
DEAR = 400_000.0
"""Packets of a run from which on a cell is judged after all others."""


def horizon(cell: Cell) -> Horizon:
    """Return the times of a judged run."""
    return horizon_of(cell.path, PACKETS, LONGEST_S, LEAST_RTTS)


def cost(cell: Cell) -> float:
    """Return the packets of a judged run."""
    return packets_of(cell.path, horizon(cell))


def drawn(seed: int, count: int) -> list[Cell]:
    """Return cells of a seed. Each has its own chance, so that a longer list begins with the shorter one."""
    return [_cell(seed, index) for index in range(count)]


def _cell(seed: int, index: int) -> Cell:
    chance = random.Random(f"advice/{seed}/{index}")

    def log_uniform(low: float, high: float) -> float:
        return low * math.exp(chance.random() * math.log(high / low))

    rate, rtt = log_uniform(*RATES_BPS), log_uniform(*RTTS_S)
    queue = log_uniform(*QUEUES_BDP)
    loss = 0.0 if chance.random() < NO_LOSS else log_uniform(*LOSSES)
    burst = log_uniform(*BURSTS) if chance.random() < 0.5 else 1.0
    policed = rate * chance.uniform(0.1, 0.8) if chance.random() < POLICED else None
    bucket = policed / 8 * chance.uniform(0.02, 0.2) if policed else None
    others = tuple("reno" if chance.random() < RENO else "cubic" for _ in range(chance.randint(0, FLOWS_MAX)))
    shared = policed is not None and chance.random() < SHARED
    path = Path(rate, rtt, loss, burst if loss else 1.0, queue * rate * rtt / 8, policed, bucket, shared, others)
    return Cell(index, chance.randrange(1 << 31), path)


def facts_of(cell: Cell) -> PathFacts:
    """Measure a cell's path by the path tests, beside its competing flows. Raises `RunError`."""
    policed = cell.path.policer_rate_bps is not None
    start = max(TEST_START_S, 20 * cell.path.rtt_s)
    nobody: Candidate | None = None
    at = {
        "route": [0, 1] if policed else [0],
        "return_route": [2, 3] if policed else [1],
        **CLOCK,
    }

    def tester(test: Mapping[str, Any], within_s: float) -> dict[str, Any] | None:
        spec = spec_of(cell.path, nobody, Horizon(start, TEST_SPAN_S), cell.seed, with_references=False)
        keys, place = {"seed": cell.seed, **test}, {**at, "start_ns": round(start * 1e9)}
        found = native.simulate_path_test(json.dumps(spec), json.dumps(keys), json.dumps(place))
        outcome: dict[str, Any] = json.loads(found)["outcome"]
        return outcome if outcome["cost"]["seconds"] <= within_s else None

    return measured(tester, cell.copy_bytes)
