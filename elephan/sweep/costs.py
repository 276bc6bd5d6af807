"""Time that each run of a sweep takes, estimated from those that are known.

The logarithm of a run's time is taken to be a sum of effects, one for each value of each swept key, as in an analysis
of variance without interactions: a file twice as large takes twice as long under every congestion control. Effects are
fitted by least squares with a small penalty (ridge regression: Hoerl and Kennard 1970), so that one that no run has
shown yet is that of its neighbours on the axis. Means of times come from means of logarithms by the mean of the
residuals' exponentials (Duan's smearing estimate, 1983).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elephan.units import duration, duration_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from elephan.scenario import Scenario
    from elephan.scenario.combinations import Runs

    Array = NDArray[Any]

LEVELS_MAX = 6
"""Values of an axis that have effects of their own; of more, neighbours share one."""

LEAST_S = 1e-4
"""Least time of a run that is told apart, s."""

RIDGE = 0.001
"""Penalty on effects, in runs."""

LEARNED_MAX = 5_000
"""Runs from which effects are fitted, the latest."""

NINE_IN_TEN = 1.645
"""Standard deviations on either side of a mean between which nine tenths lie."""

RESAMPLED = 40
"""Fits by which a spread is found (bootstrap: Efron 1979)."""


@dataclass(frozen=True)
class Estimate:
    """Time that something will take, s, between two bounds that hold nine times in ten."""

    seconds: float
    least: float
    most: float

    def __str__(self) -> str:
        """Format it for people."""
        middle, least, most = (duration(value) for value in (self.seconds, self.least, self.most))
        return middle if least == most else f"{middle} ({duration_range(self.least, self.most)})"

    def scaled(self, factor: float, more: float = 0.0) -> Estimate:
        """Return it times `factor` and `more` seconds later."""
        return Estimate(*(value * factor + more for value in (self.seconds, self.least, self.most)))


class Costs:
    """Known and estimated times of the runs of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        """Know none yet."""
        self._runs = scenario.runs
        self.axes = [(axis.key, len(axis.values)) for axis in scenario.axes]
        self._zipped = scenario.mode == "zip" and bool(self.axes)
        self.known: dict[int, float] = {}
        """Times of runs by their numbers, s."""
        self._places: Array | None = None

    def learn(self, number: int, seconds: float) -> None:
        """Take the time of a run."""
        self.known[number] = max(seconds, LEAST_S)

    def combination(self, places: Sequence[int]) -> int:
        """Return the number of the combination with these values, by their places on the axes."""
        if self._zipped:
            return places[0]
        number = 0
        for place, (_, length) in zip(places, self.axes, strict=True):
            number = number * length + place
        return number

    def __len__(self) -> int:
        return len(self._runs)

    def predicted(self) -> Array | None:
        """Return the time of every run by its number, s; None where none is known."""
        fit = self._fit()
        return None if fit is None else self._of(fit, self._all_places())

    def total(self, numbers: Sequence[int]) -> Estimate | None:
        """Return the time of these runs together, one after the other; None where no run's is known."""
        import numpy as np

        fit = self._fit()
        if fit is None:
            return None
        places = self._all_places()[np.asarray(numbers, dtype=np.int64)]
        middle = float(self._of(fit, places).sum())
        learned = np.array(sorted(self.known), dtype=np.int64)[-LEARNED_MAX:]
        draw = np.random.default_rng(1)
        totals = []
        for _ in range(RESAMPLED if len(learned) > 1 else 0):
            again = self._fit(draw.choice(learned, len(learned)))
            assert again is not None
            totals.append(float(self._of(again, places).sum()))
        if len(learned) < 2:
            # A single run tells nothing of the others.
            return Estimate(middle, middle / 2, middle * 2) if len(numbers) > 1 else Estimate(middle, middle, middle)
        # Fits of other draws differ by what few runs leave open; runs scatter about what their keys say.
        variance = float(np.var(np.log(totals))) + fit[2] ** 2 / min(len(numbers), len(learned))
        factor = float(np.exp(NINE_IN_TEN * np.sqrt(variance)))
        return Estimate(middle, middle / factor, middle * factor)

    def sample(self, most: int) -> list[int]:
        """Return runs to try, so that each value of each axis is met, as evenly as `most` allows (a Latin square)."""
        import numpy as np

        draw = np.random.default_rng(2)
        count = len(self._runs)
        if count <= most:
            return list(range(count))
        # Of random choices, that one which meets the most values.
        best: tuple[int, list[int]] = (-1, [])
        for _ in range(50):
            chosen = sorted({int(one) for one in draw.integers(0, count, most)})
            places = self._all_places()[chosen]
            met = sum(len(set(places[:, axis].tolist())) for axis in range(places.shape[1]))
            best = max(best, (met, chosen))
        return best[1]

    # The model

    def _all_places(self) -> Array:
        """Return the level of each run on each axis."""
        import numpy as np

        if self._places is None:
            combinations = _combinations(self._runs)
            columns: list[Any] = []
            if self._zipped:
                columns = [_levels(combinations, self.axes[0][1])]
            else:
                rest = combinations
                for _, length in reversed(self.axes):
                    columns.append(_levels(rest % length, length))
                    rest = rest // length
                columns.reverse()
            none = np.zeros((len(combinations), 0), dtype=np.int16)
            self._places = np.stack(columns, axis=1).astype(np.int16) if columns else none
        return self._places

    def _sizes(self) -> list[int]:
        lengths = [length for _, length in self.axes]
        return [min(length, LEVELS_MAX) for length in (lengths[:1] if self._zipped else lengths)]

    def _fit(self, numbers: Array | None = None) -> tuple[float, list[Array], float] | None:
        """Return mean logarithm, effects by axis and level, and the residuals' standard deviation."""
        import numpy as np

        if not self.known:
            return None
        if numbers is None:
            numbers = np.array(list(self.known), dtype=np.int64)[-LEARNED_MAX:]
        values = np.log([self.known[int(one)] for one in numbers])
        places, sizes = self._all_places()[numbers], self._sizes()
        mean = float(values.mean())
        width = sum(sizes)
        table = np.zeros((len(numbers), width))
        penalty = np.zeros((width, width))
        first = 0
        for axis, size in enumerate(sizes):
            table[np.arange(len(numbers)), first + places[:, axis]] = 1.0
            for level in range(size):
                penalty[first + level, first + level] += RIDGE
                if level:
                    # Neighbours on the axis are alike until runs say otherwise.
                    pair = [first + level - 1, first + level]
                    penalty[np.ix_(pair, pair)] += RIDGE * np.array([[1.0, -1.0], [-1.0, 1.0]])
            first += size
        effects = np.linalg.solve(table.T @ table + penalty, table.T @ (values - mean)) if width else np.zeros(0)
        residuals = values - mean - table @ effects
        free = max(1, len(values) - 1 - sum(size - 1 for size in sizes))
        spread = float(np.sqrt((residuals**2).sum() / free))
        by_axis = np.split(effects, np.cumsum(sizes)[:-1]) if width else []
        return mean + float(np.log(np.exp(residuals).mean())), list(by_axis), spread

    def _of(self, fit: tuple[float, list[Array], float], places: Array) -> Array:
        import numpy as np

        total = np.full(len(places), fit[0])
        for axis, effects in enumerate(fit[1]):
            total += effects[places[:, axis]]
        np.exp(total, out=total)
        return total


def _levels(places: Array, length: int) -> Array:
    return places if length <= LEVELS_MAX else places * LEVELS_MAX // length


def _combinations(runs: Runs) -> Array:
    """Return the combination of each run by its number."""
    import numpy as np

    each = runs.each
    if each is not None:
        return np.arange(len(runs), dtype=np.int64) // each
    return np.fromiter((runs.run(one).combination for one in range(len(runs))), dtype=np.int64, count=len(runs))
