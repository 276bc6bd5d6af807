"""Facts of a path by measuring it: a series of path tests within a budget of time and bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from elephan.advise.facts import PathFacts, Range
from elephan.errors import RunError

BUDGET_S = 20.0
SHARE = 0.01
"""Largest share of the data to copy that the tests may send."""

Tester = Callable[[Mapping[str, Any], float], "dict[str, Any] | None"]
"""Makes a path test of these keys within so many seconds and returns its outcome; None: it took longer."""

BUSY_PPM = 500_000
"""Share of the line that a short test may take."""
AVAILABLE_PACKETS = 4600
"""Packets that the test of available bandwidth sends."""
AVAILABLE_S = 5.0
STREAM_PPM = 60_000
"""Share of the line that the steady stream takes, which sees loss. Below a policer's rate, or its drops pass for the
line's."""
STREAM_S = 5.0
STREAM_PACKETS = 20_000
POLICER_S = 0.6
"""Longest train that looks for a policer, in time at the line's rate, s."""
QUEUE_BDP = 4.0
"""Longest burst that fills the queue, in bandwidth-delay products."""
PACKETS_BYTES = (200, 1500)
IDLE = 0.1
"""Others' share of the line below which the path counts as idle: the error of the available bandwidth."""
BIAS = 0.05
"""Share of the line that is taken off others' before their number is told: the usual error of the same."""
SATURATED = 0.8
"""Their share from which on they take all that they can get."""
FLOWS_MAX = 6.0
FLOWS_USUAL = 2.5
"""Number of long flows beside a copy where the tests cannot tell (docs/results/advice.md)."""
LOSS_KNOWN = 5.0
"""High end of the line's loss, in times of the low one, up to which it tells how many flows it bounds."""
FLOWS_UNKNOWN = (0.0, 1.0, 4.0)
"""Their number, low, middle, high, where the available bandwidth was not measured."""
DENSE_PPM = 900_000
"""Share of the line that the dense streams take, which tell a policer where its own test refuses."""
DENSE_S = (0.25, 0.75)
"""Their lengths, s."""
POLICED_LOSS = 0.08
"""Loss by no full queue in a dense stream, beyond the line's own, from which on a policer is the cause."""
LATE = 0.05
"""Share of a stream's packets that may leave late: later ones leave in bursts, of which a bucket passes less."""
LEFT_LATE = re.compile(r"(\d+) packets left late")
QUEUE_PRIOR_BDP = (0.25, 1.0, 2.0)
"""Queue that is assumed where it was not measured: low, middle, high, in bandwidth-delay products."""


class Spent:
    """Time and bytes that are left."""

    def __init__(self, seconds: float, allowed_bytes: float) -> None:
        """Begin with a budget."""
        self.seconds, self.bytes = seconds, allowed_bytes
        self.outcomes: dict[str, dict[str, Any]] = {}

    def run(
        self,
        tester: Tester,
        test: str,
        keys: Mapping[str, Any],
        seconds: float,
        least_bytes: float,
        name: str | None = None,
    ) -> bool:
        """Make a test if it fits: by its expected time and bytes. Return True if it was made and found something."""
        if seconds > self.seconds or least_bytes > self.bytes:
            text = "no time is left for it" if seconds > self.seconds else "no bytes are left for it"
            self.outcomes[name or test] = {"estimates": [], "refused": text, "notes": [], "cost": None}
            return False
        name = name or test
        outcome = tester({"test": test, **keys}, self.seconds)
        if outcome is None:
            self.outcomes[name] = {"estimates": [], "refused": "took longer", "notes": [], "cost": None}
            self.seconds = 0.0
            return False
        self.outcomes[name] = outcome
        self.seconds -= outcome["cost"]["seconds"]
        self.bytes -= outcome["cost"]["bytes"]
        return bool(outcome["estimates"])

    def estimate(self, test: str, quantity: str) -> dict[str, float] | None:
        """Return an estimate that a test gave."""
        found = self.outcomes.get(test, {"estimates": []})["estimates"]
        return next((one for one in found if one["quantity"] == quantity), None)


def facts_of_path(
    towards: str, bytes_to_copy: int, *, budget_s: float = BUDGET_S, share: float = SHARE, from_: str | None = None
) -> PathFacts:
    """Return the facts of the path to a reflector (`HOST:PORT`, or a host of the book), measured from here or from a
    host of the book. Raises `InputError`, `RunError`, `native.Stopped`.
    """
    from elephan.measure import test as path_test
    from elephan.measure.target import reached
    from elephan.signals import termination_requested

    with termination_requested() as wait_for_termination, reached(towards) as target:

        def tester(keys: Mapping[str, Any], within_s: float) -> dict[str, Any] | None:
            rest = {key: value for key, value in keys.items() if key != "test"}

            def test(stop: path_test.WaitForTermination) -> dict[str, Any]:
                if from_ is not None:
                    return path_test.run_from(from_, str(keys["test"]), target, rest, stop)
                return path_test.run(str(keys["test"]), target, rest, stop)

            return path_test.within(within_s, wait_for_termination, test)

        return measured(tester, bytes_to_copy, budget_s=budget_s, share=share)


def facts_of_scenario(
    scenario: FilePath | str, bytes_to_copy: int, *, budget_s: float = BUDGET_S, share: float = SHARE
) -> PathFacts:
    """Return the facts that the path tests find in the simulator, beside a scenario's traffic, and those that it states
    itself in their place. Raises `ScenarioError`, `RunError`.
    """
    from elephan.measure.simulated import simulate_test, stated

    def tester(keys: Mapping[str, Any], within_s: float) -> dict[str, Any] | None:
        outcome = simulate_test(scenario, keys, overrides=[f"run.duration={math.ceil(budget_s) + 60}s"]).outcome
        return outcome if outcome["cost"]["seconds"] <= within_s else None

    found = measured(tester, bytes_to_copy, budget_s=budget_s, share=share)
    known: dict[str, Any] = dict(stated(scenario))
    ranges = {name: interval for name, interval in found.ranges.items() if name not in known}
    return replace(found, **known, ranges=ranges, given=tuple(known))


def measured(tester: Tester, bytes_to_copy: float, *, budget_s: float = BUDGET_S, share: float = SHARE) -> PathFacts:
    """Make the tests, the most telling ones first, and return the facts. Raises `RunError` when the capacity is not
    found, without which nothing else is.
    """
    spent = Spent(budget_s, share * bytes_to_copy)
    if not spent.run(tester, "capacity", {"share_ppm": BUSY_PPM}, 0.0, 400_000):
        raise RunError(
            f"the capacity of the path was not found: {spent.outcomes['capacity']['refused']}; more bytes "
            "to copy allow more packets (elephan advise: --for)"
        )
    capacity = spent.estimate("capacity", "capacity_bps")
    assert capacity is not None
    rate = capacity["value"]
    line = {"capacity_bps": round(rate)}
    _loss(spent, tester, line, rate)
    rtt = spent.estimate("loss", "rtt_min_s")
    if rtt is None:
        raise RunError(f"the path's round trip was not found: {spent.outcomes['loss']['refused']}")
    _available(spent, tester, line, rate)
    if spent.bytes > 200_000:
        _policer(spent, tester, line, rate)
    policed = spent.estimate("policer", "policer_rate_bps")
    if policed is None and spent.outcomes.get("policer", {"refused": None})["refused"]:
        _dense(spent, tester, line, rate)
        policed = spent.estimate("policer", "policer_rate_bps")
    if policed is None:
        _queue(spent, tester, line, rate, rtt["value"])
    return _facts(spent, rate)


def _available(spent: Spent, tester: Tester, line: dict[str, int], rate: float) -> None:
    packet = _clamped(AVAILABLE_S * rate * BUSY_PPM / 1e6 / 8 / AVAILABLE_PACKETS)
    packet = _clamped(min(packet, 0.3 * spent.bytes / AVAILABLE_PACKETS))
    keys = {**line, "share_ppm": BUSY_PPM, "packet_bytes": packet}
    needed = AVAILABLE_PACKETS * packet
    spent.run(tester, "available", keys, min(AVAILABLE_S, spent.seconds), needed)


def _policer(spent: Spent, tester: Tester, line: dict[str, int], rate: float) -> None:
    most = min(POLICER_S * rate / 8, 0.3 * spent.bytes)
    spent.run(
        tester, "policer", {**line, "share_ppm": BUSY_PPM, "max_bytes": round(most)}, 12 * 8 * most / rate, 2 * most
    )


def _dense(spent: Spent, tester: Tester, line: dict[str, int], rate: float) -> None:
    """Look for a policer by two dense streams of different lengths, where competing flows hide it from its own test.

    A bucket that is full at first passes its bytes and its rate times the stream's length: two lengths tell both.
    """
    passed, losses = [], []
    share = DENSE_PPM / 1e6
    for seconds in DENSE_S:
        most = min(seconds * share * rate / 8, 0.3 * spent.bytes)
        keys = {**line, "share_ppm": DENSE_PPM, "max_bytes": round(most)}
        name = f"loss, dense, {seconds:g} s"
        if not spent.run(tester, "loss", keys, 3 * seconds, most, name):
            return
        lost = spent.estimate(name, "line_loss")
        assert lost is not None
        losses.append(lost["value"])
        passed.append(((1 - lost["value"]) * most, most * 8 / (share * rate)))
    (short, short_s), (long, long_s) = passed
    if losses[1] < POLICED_LOSS or long_s <= short_s:
        return
    policed = 8 * (long - short) / (long_s - short_s)
    highest = 8 * long / long_s
    policed = min(max(policed, 0.3 * highest), highest)
    bucket = max(0.0, long - policed / 8 * long_s)
    low, high, least_bucket = 0.9 * policed, min(1.1 * policed, highest), bucket / 2
    notes = ["found by dense streams: they lose while the queue is not full"]
    if (late := max(_late_share(spent.outcomes[f"loss, dense, {seconds:g} s"]) for seconds in DENSE_S)) > LATE:
        policed, high, least_bucket = (policed + highest) / 2, highest, 0.0
        notes.append(f"this host is too busy: {late:.0%} of a stream's packets left late, so the interval is wide")
    spent.outcomes["policer"]["estimates"] = [
        {"quantity": "policer_rate_bps", "value": policed, "low": low, "high": high},
        {"quantity": "policer_burst_bytes", "value": bucket, "low": least_bucket, "high": 2 * bucket},
    ]
    spent.outcomes["policer"]["notes"] += notes


def _late_share(outcome: Mapping[str, Any]) -> float:
    """Return the part of a test's packets that its own host sent late."""
    late = [int(found[1]) for note in outcome["notes"] if (found := LEFT_LATE.fullmatch(note))]
    return sum(late) / max(1, int(outcome["cost"]["packets"]))


def _loss(spent: Spent, tester: Tester, line: dict[str, int], rate: float) -> None:
    allowed = min(STREAM_PPM / 1e6 * rate / 8 * STREAM_S, 0.6 * spent.bytes)
    packet = _clamped(allowed / STREAM_PACKETS)
    keys = {**line, "share_ppm": STREAM_PPM, "packet_bytes": packet, "max_bytes": round(allowed)}
    spent.run(tester, "loss", keys, 0.0, 0.0)


def _queue(spent: Spent, tester: Tester, line: dict[str, int], rate: float, rtt_s: float) -> None:
    most = min(QUEUE_BDP * rate / 8 * rtt_s + 60_000, spent.bytes / 3)
    keys = {**line, "share_ppm": BUSY_PPM, "max_bytes": round(most)}
    spent.run(tester, "queue", keys, min(spent.seconds, 6 * 8 * most / rate), 30_000)


def _clamped(packet_bytes: float) -> int:
    return round(min(PACKETS_BYTES[1], max(PACKETS_BYTES[0], packet_bytes)))


def _facts(spent: Spent, rate: float) -> PathFacts:
    def value(test: str, quantity: str) -> tuple[float | None, Range | None]:
        one = spent.estimate(test, quantity)
        return (None, None) if one is None else (one["value"], (one["low"], one["high"]))

    ranges: dict[str, Range] = {}

    def fact(name: str, test: str, quantity: str) -> float | None:
        found, interval = value(test, quantity)
        if interval is not None:
            ranges[name] = interval
        return found

    fact("rate_bps", "capacity", "capacity_bps")
    rtt = value("loss", "rtt_min_s")[0] or 0.0
    rtt_mean = value("loss", "rtt_mean_s")[0] or rtt
    rtt_max = value("loss", "rtt_max_s")[0] or rtt
    loss = fact("loss", "loss", "line_loss") or 0.0
    burst = fact("loss_burst", "loss", "loss_run_packets") or 1.0
    queue = fact("queue_bytes", "queue", "queue_bytes")
    if queue is None:
        # The longest wait that the stream saw is a lower bound of the queue.
        seen = (rtt_max - rtt) * rate / 8
        low, middle, high = (max(seen, part * rate * rtt / 8) for part in QUEUE_PRIOR_BDP)
        queue, ranges["queue_bytes"] = middle, (low, high)
    available, between = value("available", "available_bps")
    policer = fact("policer_rate_bps", "policer", "policer_rate_bps")
    bucket = fact("policer_burst_bytes", "policer", "policer_burst_bytes")
    # A policer lets no more than its rate through: what lies between that and the line's rate tells of no others.
    is_policed = policer is not None and between is not None and between[1] >= (1 - BIAS) * policer
    competing = max(0.0, rate - available) if available is not None and not is_policed else 0.0
    if between is not None and not is_policed:
        ranges["competing_bps"] = (max(0.0, rate - between[1]), max(0.0, rate - between[0]))
    others = value("loss", "loss")[0]
    known = ranges.get("loss", (0.0, 1.0))
    flows, of_flows = flows_of(
        share=competing / rate,
        # Held by the flows: the empty path and its mean queue, packets.
        held=(rate / 8 * rtt_mean) / 1500,
        rtt_s=rtt_mean,
        loss=others or 0.0,
        # Two numbers that differ by less: many losses were seen.
        line_loss=loss if known[1] < LOSS_KNOWN * max(known[0], 1e-12) else 0.0,
        rtt_rises=rtt_max - rtt > 0.05 * rtt + 20 * 12_000 / rate,
    )
    if available is None:
        flows, of_flows = FLOWS_UNKNOWN[1], (FLOWS_UNKNOWN[0], FLOWS_UNKNOWN[2])
    ranges["competing_flows"] = of_flows
    return PathFacts(
        rate_bps=rate,
        rtt_s=rtt,
        rtt_max_s=rtt_max,
        loss=loss,
        loss_burst=burst,
        queue_bytes=queue,
        policer_rate_bps=policer,
        policer_burst_bytes=bucket,
        competing_flows=flows,
        competing_bps=competing,
        ranges=ranges,
        sources=spent.outcomes,
    )


def flows_of(
    *, share: float, held: float, rtt_s: float, loss: float, line_loss: float, rtt_rises: bool
) -> tuple[float, Range]:
    """Return the number of others' long flows with its range, of their `share` of the line.

    A CUBIC flow holds a window that its loss rate tells (RFC 9438, 5.2, and Reno's where that is larger); the window of
    the whole path divided by it is their number (Mathis et al. 1997 for the square root).
    """
    if share < IDLE and not rtt_rises:
        return 0.0, (0.0, 0.0)

    def number(rate: float) -> float:
        window = window_of(rate, rtt_s)
        return share * held / window if window > 0 else 0.0

    if share < SATURATED and line_loss > 0 and not rtt_rises:
        # Their own losses bound them: how many would take this share.
        found = (share - BIAS) / share * number(line_loss)
        return max(1.0, min(FLOWS_MAX, found)), (min(FLOWS_MAX, found / 2), max(1.0, min(FLOWS_MAX, 2 * found)))
    if loss <= 0:
        return FLOWS_USUAL, (1.0, FLOWS_MAX)
    # Losses of a stream in a queue that overflows now and then are no fair sample of the flows' own.
    found = min(FLOWS_MAX, max(1.0, number(loss)))
    return math.sqrt(found * FLOWS_USUAL), (1.0, FLOWS_MAX)


def window_of(loss: float, rtt_s: float) -> float:
    """Return the mean window of a CUBIC flow at a loss rate, packets (RFC 9438, 5.2; Reno's where that is larger)."""
    if loss <= 0:
        return math.inf
    reno = math.sqrt(1.5 / loss)
    cubic = 1.054 * rtt_s**0.75 / loss**0.75
    return float(max(reno, cubic))
