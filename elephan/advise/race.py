"""Candidates simulated within a budget of packets: many on few paths first, then few on many (sequential halving:
Karnin, Koren and Somekh 2013)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from elephan.advise.candidate import Candidate
from elephan.advise.harm import Limit, excess_of, harm_of
from elephan.advise.long_run import long_run
from elephan.advise.simulation import Horizon, Outcome, Path, simulate
from elephan.core import native
from elephan.run_spec.types import CopyWorkloadSpec
from elephan.scenario.copy import mean_sent_bytes


@dataclass
class Runs:
    """Runs of a candidate (or of nobody) on the drawn paths, by the number of the path."""

    alone: dict[int, float] = field(default_factory=dict)
    """Goodput of the copy without the reference flows, bit/s."""
    beside: dict[int, tuple[float, ...]] = field(default_factory=dict)
    """Goodput of the reference flows beside it, bit/s."""
    long_run_bps: float | None = None
    """Goodput of the whole copy on the middle path, bit/s, where it was simulated until it was steady."""

    def goodput(self) -> float:
        """Return the goodput, bit/s: of the whole copy, or else the mean of the runs."""
        if self.long_run_bps is not None:
            return self.long_run_bps
        return sum(self.alone.values()) / max(1, len(self.alone))


class Race:
    """All runs of one advice. The same path has the same chance for every candidate."""

    def __init__(self, paths: Sequence[Path], horizon: Horizon, seed: int, workers: int) -> None:
        """Take the drawn paths."""
        self.paths, self.horizon, self.seed = paths, horizon, seed
        self.workers = workers
        self.deadline: float | None = None
        """Of time.monotonic: no run begins after it, and those under way are stopped."""
        self.nobody = Runs()
        self.runs: dict[Candidate, Runs] = {}
        self.is_late = False
        self.count = 0

    def alone(self, candidates: Sequence[Candidate], draws: range) -> None:
        """Simulate candidates without reference flows on some of the paths."""
        self._all([(one, draw, False) for one in candidates for draw in draws])

    def beside(self, candidates: Sequence[Candidate | None], draws: range) -> None:
        """Simulate candidates (None: nobody) with reference flows on some of the paths."""
        self._all([(one, draw, True) for one in candidates for draw in draws])

    def settle(self, candidates: Sequence[Candidate], copy: CopyWorkloadSpec, packets: int) -> None:
        """Simulate whole copies on the middle path, each for about `packets` at most."""
        missing = [one for one in dict.fromkeys(candidates) if self.of(one).long_run_bps is None]

        def settled(one: Candidate) -> float | None:
            if self.deadline is not None and time.monotonic() > self.deadline:
                return None
            try:
                _, seconds, _ = long_run(self.paths[0], one, copy, packets, self.seed, self.deadline).seconds
            except native.Stopped:
                return None
            return mean_sent_bytes(copy) * 8 / seconds

        with ThreadPoolExecutor(self.workers) as pool:
            for one, found in zip(missing, pool.map(settled, missing), strict=True):
                self.of(one).long_run_bps = found
                self.is_late |= found is None
        self.count += len(missing)

    def excess(self, candidate: Candidate, ordinary: Candidate, limit: Limit) -> tuple[float, float]:
        """Return a candidate's harm beyond the limit and its standard error, on the paths on which all were run."""
        of, usual = self.runs[candidate].beside, self.runs[ordinary].beside
        draws = self.weighed_on(candidate, ordinary)
        without = [self.nobody.beside[draw] for draw in draws]
        return excess_of(limit, without, [usual[draw] for draw in draws], [of[draw] for draw in draws])

    def harm(self, candidate: Candidate, draws: Sequence[int]) -> tuple[float, ...]:
        """Return the share of goodput that each reference flow loses beside a candidate, on these paths."""
        of = self.of(candidate).beside
        return harm_of([self.nobody.beside[draw] for draw in draws], [of[draw] for draw in draws])

    def weighed_on(self, candidate: Candidate, ordinary: Candidate) -> list[int]:
        """Return the paths on which a candidate's harm can be compared: on others a run is missing."""
        return sorted(set(self.of(candidate).beside) & set(self.of(ordinary).beside) & set(self.nobody.beside))

    def of(self, candidate: Candidate | None) -> Runs:
        """Return a candidate's runs."""
        return self.nobody if candidate is None else self.runs.setdefault(candidate, Runs())

    def _all(self, wanted: Sequence[tuple[Candidate | None, int, bool]]) -> None:
        missing = []
        for one, draw, with_references in wanted:
            runs = self.of(one)
            if draw not in (runs.beside if with_references else runs.alone):
                missing.append((one, draw, with_references))
        if self.workers == 1:
            found = [self._one(one) for one in missing]
        else:
            with ThreadPoolExecutor(self.workers) as pool:
                found = list(pool.map(self._one, missing))
        for (one, draw, with_references), outcome in zip(missing, found, strict=True):
            if outcome is None:
                self.is_late = True
            elif with_references:
                self.of(one).beside[draw] = outcome.references_bps
            else:
                self.of(one).alone[draw] = outcome.copy_bps
        self.count += len(missing)

    def _one(self, wanted: tuple[Candidate | None, int, bool]) -> Outcome | None:
        candidate, draw, with_references = wanted
        if self.deadline is not None and time.monotonic() > self.deadline:
            return None
        seed = self.seed + 1000 * draw
        path, deadline_s = self.paths[draw], self.deadline
        try:
            return simulate(
                path, candidate, self.horizon, seed, with_references=with_references, deadline_s=deadline_s
            )
        except native.Stopped:
            return None


Progress = Callable[[str], None]
