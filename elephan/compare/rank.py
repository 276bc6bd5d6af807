"""Rank by significance: a rank is the number of those that are better for certain, not of those that were luckier.

Every congestion control is measured with the same seeds, and a seed draws the same losses for all of them (common
random numbers). So two are compared by the paired t-test over the seeds (Law, Simulation Modeling and Analysis, 5th
edition, 10.2.1 and 11.2), which leaves out what the losses of a seed do to both. All pairs are looked at together, with
Holm's correction (1979): the probability that chance made any difference between two ranks stays below 5 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from elephan import units
from elephan.compare.explanations import harms, spares, why
from elephan.compare.run_metrics import Measured, Number, number_of
from elephan.errors import InputError
from elephan.report.statistics import Estimate, holm, paired_p

TIE = 0.01
"""Means that differ by less than this part of the better one are equal: packets make such a difference."""
HARM_TIE = 0.2
"""The same where the better one harms others and the other one does not (`explanations.harms`, `spares`).

A choice, not a measurement: a copy or a mirror can be a fifth slower; others on the path did not agree to lose a fifth
or more."""
YIELDING = ("goodput", "lag", "latency", "completion")
"""Keys for which `HARM_TIE` holds: the others count the harm themselves."""


@dataclass(frozen=True)
class Row:
    """A congestion control in the ranking."""

    rank: int
    """From 1: one more than the number of those that are better for certain."""
    numbers: Measured
    queue_s: Estimate | None
    """Mean RTT above the least RTT that any of the congestion controls saw."""
    why: tuple[str, ...]
    """A few words each: why it stands there, and what it costs."""
    yields: bool = False
    """It harms others, and is better than one that does not by no more than `HARM_TIE`."""
    grows: bool = False
    """A backlog grows without bound: it is not proposed."""

    @property
    def cc(self) -> str:
        """Its label."""
        return self.numbers.cc


@dataclass(frozen=True)
class Key:
    """A key to rank by."""

    title: str
    higher: bool
    """True if more is better."""
    number: Number
    """Of one repetition; this is compared."""
    show: Callable[[float | None], str]
    estimate: Callable[[Measured], Estimate | None]
    """Over all repetitions; this is shown."""

    def value(self, item: Measured) -> float | None:
        """Return the mean; None when a repetition lacks the number."""
        found = self.estimate(item)
        return None if found is None or item.samples(self.number) is None else found.mean


def _key(title: str, higher: bool, name: str, show: Callable[[float | None], str]) -> Key:
    number = number_of(name)
    return Key(title, higher, number, show, lambda item: item.estimate(number))


KEYS: dict[str, Key] = {
    "goodput": _key("goodput", True, "goodput_bps", units.rate),
    "lag": _key("replication lag p99", False, "lag_p99_s", units.duration),
    "latency": _key("latency p99", False, "latency_p99_s", units.duration),
    "completion": _key("completion", False, "completion_s", units.duration),
    # All have the same divisor: that of the neighbour beside reno.
    "neighbour": Key(
        "what a reno neighbour keeps",
        True,
        number_of("neighbour_bps"),
        units.share,
        lambda item: item.neighbour_kept,
    ),
    "queue": _key("mean RTT", False, "rtt_mean_s", units.duration),
    "drops": _key("drops caused", False, "caused_drops", units.count),
    "retransmissions": _key("retransmissions", False, "retransmitted_segments", units.count),
}
"""By the word after --by."""


def key_of(by: str) -> Key:
    """Return the key of a word after --by. Raises `InputError`."""
    if by not in KEYS:
        raise InputError(f"--by {by}: one of {', '.join(KEYS)}")
    return KEYS[by]


def default_key(found: Sequence[Measured]) -> str:
    """Return the key of the workload: lag of a copy, delay of frames, or goodput."""
    for name in ("lag", "latency", "completion"):
        if all(KEYS[name].value(item) is not None for item in found):
            return name
    return "goodput"


def ranked(
    found: Sequence[Measured],
    by: str,
    behind: Mapping[str, str] | None = None,
    growing: Mapping[str, str] | None = None,
) -> list[Row]:
    """Return rows by rank. Of equal ranks those that yield are last; the others go by fewer drops caused, then by the
    shorter RTT, then by name. Those whose label is in `behind` or `growing`, with the reason, rank behind all others;
    under `growing` a backlog grows.

    Raises `InputError` when the runs have no such number.
    """
    key = key_of(by)
    if all(key.value(item) is None for item in found):
        raise InputError(f"--by {by}: these runs have no {key.title}")
    growing = growing or {}
    behind = {**growing, **(behind or {})}
    better, yielding = _better(found, key, behind, by in YIELDING)
    least_rtt_s = min(
        (run.rtt_min_s for item in found for run in item.runs if run.rtt_min_s is not None),
        default=None,
    )
    rows = []
    for index, item in enumerate(found):
        rank = 1 + sum(second == index for _, second in better)
        queue_s = queue_of(item, least_rtt_s)
        grows = item.cc in growing
        reasons = dict.fromkeys(reasons[item.cc] for reasons in (growing, behind) if item.cc in reasons)
        rows.append(
            Row(rank, item, queue_s, (*reasons, *why(item, least_rtt_s, grows=grows)), index in yielding, grows)
        )
    return sorted(rows, key=_order)


def queue_of(item: Measured, least_rtt_s: float | None) -> Estimate | None:
    """Return the mean RTT above the least RTT, s."""
    if least_rtt_s is None:
        return None
    return item.estimate(lambda run: None if run.rtt_mean_s is None else max(0.0, run.rtt_mean_s - least_rtt_s))


def _order(row: Row) -> tuple[int, bool, float, float, str]:
    item = row.numbers
    drops = item.mean(lambda run: run.caused_drops) or 0.0
    return row.rank, row.yields, drops, item.mean(lambda run: run.rtt_mean_s) or 0.0, item.cc


def _better(
    found: Sequence[Measured], key: Key, behind: Mapping[str, str], may_yield: bool
) -> tuple[set[tuple[int, int]], set[int]]:
    """Return the pairs of indices of which the first is better than the second: for certain and by more than `TIE`, or
    because the second alone is among those `behind`; and the indices of those that yield, if any may.
    """
    values = [key.value(item) for item in found]
    pairs = list(combinations(range(len(found)), 2))
    certain = holm([_p(found[a], found[b], key) for a, b in pairs])
    better: set[tuple[int, int]] = set()
    yielding: set[int] = set()
    for (a, b), sure in zip(pairs, certain, strict=True):
        if (found[a].cc in behind) != (found[b].cc in behind):
            better.add((b, a) if found[a].cc in behind else (a, b))
            continue
        first, second = values[a], values[b]
        if first is None or second is None:
            # A copy that does not end is behind every one that does.
            if first is not None:
                better.add((a, b))
            elif second is not None:
                better.add((b, a))
            continue
        winner, loser = (a, b) if (first > second) == key.higher else (b, a)
        gain, most = abs(first - second), max(abs(first), abs(second))
        if not sure or gain <= TIE * most:
            continue
        if may_yield and gain <= HARM_TIE * most and harms(found[winner]) and spares(found[loser]):
            yielding.add(winner)
        else:
            better.add((winner, loser))
    return better, yielding


def _p(first: Measured, second: Measured, key: Key) -> float:
    """Return the probability that the two differ as they do by chance; 1 where one of them lacks the number."""
    a, b = first.samples(key.number), second.samples(key.number)
    if a is None or b is None:
        return 1.0
    if first.exact and second.exact:
        return 0.0 if a != b else 1.0
    return paired_p(a, b)
