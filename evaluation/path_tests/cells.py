"""Cells of the judgement: a path, its cross traffic, and a test; drawn from a seed, so that a fresh seed is fresh cells.

A backend is a function from a cell to its `Judged`. The simulator is one (`simulated`); an emulated path with real
sockets is another that takes the same cells.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

from elephan.core import native
from elephan.run_spec.defaults import FORMAT, TRANSPORT
from elephan.run_spec.types import (
    BackgroundSpec,
    FlowSpec,
    LinkSpec,
    PolicerSpec,
    RunSpec,
    ShortFlowsSpec,
    TransportSpec,
)

Test = Literal["capacity", "available", "queue", "policer"]
Traffic = Literal["constant", "random", "bursts", "cubic", "heavy-tailed"]
Path = Literal["one hop", "three hops", "narrow not tight"]

RATES = (10e6, 100e6, 1e9, 5e9)
LOADS = (0.0, 0.3, 0.6, 0.9)
TRAFFICS: tuple[Traffic, ...] = ("constant", "random", "bursts", "cubic", "heavy-tailed")
PATHS: tuple[Path, ...] = ("one hop", "three hops", "narrow not tight")
TARGETS: dict[str, float] = {"capacity": 0.03, "available": 0.10, "queue": 0.15}
"""Largest error that is right: of the capacity, of the line's rate, of the queue's depth."""

SIZES = ((1500, 0.7), (576, 0.25), (64, 0.05))
"""Packets of cross traffic, bytes, and their share of its bytes."""


@dataclass(frozen=True)
class Cell:
    """One path with its traffic, and one test on it."""

    test: Test
    rate: float
    """Of the narrow link, bit/s."""
    load: float
    """Of the narrow link by cross traffic, as drawn."""
    traffic: Traffic
    path: Path
    rtt: float
    """Of the empty path, s."""
    queue: float
    """Depth of each queue in the bandwidth-delay products of the narrow link."""
    seed: int
    policer: tuple[float, float] | None = None
    """Rate, bit/s, and bucket, bytes, of a policer before the narrow link."""


@dataclass(frozen=True)
class Judged:
    """A cell's outcome beside the truth."""

    cell: Cell
    outcome: dict[str, Any]
    truth: dict[str, Any]

    @property
    def value(self) -> float | None:
        """The first estimate; None when the test refused or found nothing."""
        estimates = self.outcome["estimates"]
        return float(estimates[0]["value"]) if estimates else None

    @property
    def true(self) -> float | None:
        """The true value of the test's first quantity."""
        if self.cell.test == "policer":
            return None if self.cell.policer is None else self.cell.policer[0]
        name = {"capacity": "capacity_bps", "available": "available_bps", "queue": "queue_bytes"}[self.cell.test]
        return float(self.truth[name])

    @property
    def error(self) -> float | None:
        """Signed error as a share of what the target is a share of; None without an estimate."""
        if self.value is None or self.true is None:
            return None
        of = self.truth["capacity_bps"] if self.cell.test == "available" else self.true
        return (self.value - self.true) / float(of)

    @property
    def right(self) -> bool:
        """Return True if the error is within the target; a refusal is not."""
        if self.cell.test == "policer" and (self.true is None or self.value is None):
            return self.true is None and self.value is None and self.outcome["refused"] is None
        return self.error is not None and abs(self.error) <= TARGETS.get(self.cell.test, 0.05)

    @property
    def covered(self) -> bool | None:
        """Return True if the interval holds the true value."""
        if self.value is None or self.true is None:
            return None
        first = self.outcome["estimates"][0]
        return bool(first["low"] <= self.true <= first["high"])

    @property
    def share(self) -> float:
        """Bytes of the test, of what the narrow link could carry in the time that the test took."""
        cost = self.outcome["cost"]
        return float(cost["bytes"] * 8 / (self.truth["capacity_bps"] * cost["seconds"]))


def draw(test: Test, seed: int, repetitions: int) -> Iterator[Cell]:
    """Yield the cells of a test: every rate, load, kind of traffic and path, the rest drawn."""
    chance = random.Random(f"{test}/{seed}")
    for repetition in range(repetitions):
        for rate in RATES:
            for path in PATHS:
                for load in LOADS:
                    for traffic in TRAFFICS if load else TRAFFICS[:1]:
                        if test != "available" and path == "narrow not tight":
                            continue
                        yield _cell(chance, test, rate, load, traffic, path, repetition)


def _cell(
    chance: random.Random, test: Test, rate: float, load: float, traffic: Traffic, path: Path, repetition: int
) -> Cell:
    # Not the round rates of equipment: an estimator knows none of them.
    drawn = rate * chance.uniform(0.8, 1.0)
    rtt = 0.004 * math.exp(chance.uniform(0, math.log(10)))
    queue = 0.25 * math.exp(chance.uniform(0, math.log(8)))
    policer = None
    if test == "policer" and repetition % 2 == 0:
        policed = drawn * chance.uniform(0.2, 0.7)
        policer = (policed, policed / 8 * chance.uniform(0.02, 0.2))
    return Cell(test, drawn, load, traffic, path, rtt, queue, chance.randrange(1 << 32), policer)


def _links(cell: Cell) -> tuple[list[LinkSpec], list[tuple[float, float]]]:
    """Return the links, there and then back, and each link's rate and load there."""
    rate = cell.rate
    if cell.path == "one hop":
        hops = [(rate, cell.load)]
    elif cell.path == "three hops":
        hops = [(2.5 * rate, cell.load / 2), (rate, cell.load), (2 * rate, cell.load / 2)]
    else:
        # Half of what the narrow link has is left on a link of twice its rate.
        left = 0.5 * (1 - cell.load) * rate
        hops = [(rate, cell.load), (2 * rate, 1 - left / (2 * rate))]
    delay = round(cell.rtt / 2 / len(hops) * 1e9)
    depth = max(8 * 1500, round(cell.queue * rate / 8 * cell.rtt))
    links: list[LinkSpec] = []
    narrow = min(range(len(hops)), key=lambda place: hops[place][0])
    for back in (False, True):
        for place, (speed, _) in enumerate(hops):
            ends = (place + 1, place) if back else (place, place + 1)
            link: LinkSpec = {
                "name": f"n{ends[0]}->n{ends[1]}",
                "from": ends[0],
                "to": ends[1],
                "rate_bps": round(speed),
                "delay_ns": delay,
                # The tight link's queue is the one that is measured; the others are as deep in time.
                "queue": {
                    "kind": "drop_tail",
                    "limit_bytes": round(depth * speed / rate),
                    "limit_packets": None,
                },
                "loss": {"kind": "none"},
                "jitter": None,
            }
            if cell.policer and not back and place == narrow:
                policer: PolicerSpec = {"rate_bps": round(cell.policer[0]), "burst_bytes": round(cell.policer[1])}
                link["policer"] = policer
            links.append(link)
    return links, hops


def _constant(name: str, rate: float, route: list[int], start: int) -> list[BackgroundSpec]:
    return [
        _source(f"{name}-{size}", rate * share, size, route, None, start + 97 * place)
        for place, (size, share) in enumerate(SIZES)
    ]


def _source(
    name: str, rate: float, size: int, route: list[int], on_off: list[int] | None, start: int
) -> BackgroundSpec:
    return {
        "name": name,
        "route": route,
        "rate_bps": max(1, round(rate)),
        "packet_bytes": size,
        "start_ns": start,
        "stop_ns": None,
        "on_off_ns": on_off,
        "enabled": True,
    }


def _random(name: str, rate: float, link: float, route: list[int]) -> list[BackgroundSpec]:
    """Packets by many sources, each with random gaps: one packet or a few, then a rest (exponential)."""
    sources = []
    for size, share in SIZES:
        for copy in range(4):
            mean = rate * share / 4
            gap = size * 8e9 / link
            # An on period of mean one gap holds 1 / (1 - 1/e) packets.
            packets = 1 / (1 - math.exp(-1))
            off = packets * size * 8e9 / mean - packets * gap
            sources.append(_source(f"{name}-{size}-{copy}", link, size, route, [round(gap), max(1, round(off))], 0))
    return sources


def _bursts(name: str, rate: float, route: list[int]) -> list[BackgroundSpec]:
    """On-off sources of time scales from 0.5 to 32 ms, each on for half of the time."""
    return [
        _source(f"{name}-{scale}", rate / 7 * 2, 1500, route, [500_000 << scale] * 2, 0) for scale in range(7)
    ]


def _transport(window: float) -> TransportSpec:
    return cast(TransportSpec, {**TRANSPORT, "congestion_control": "cubic", "window_bytes": max(65_536, round(window))})


def _cubic(name: str, rate: float, hop: int, back: int, rtt: float, group: int) -> list[FlowSpec]:
    """Eight CUBIC flows whose applications send a part of the load each, in writes of 16 KiB."""
    return [
        {
            "name": f"{name}-{index}",
            "group": group + index,
            "source": hop,
            "destination": hop + 1,
            "route": [hop],
            "return_route": [back],
            "start_ns": index * 1_370_000,
            "stop_ns": None,
            "transport": _transport(rate / 4 * (rtt + 0.1) / 8),
            "workload": {
                "kind": "constant_rate",
                "rate_bps": max(1, round(rate / 8 * 1448 / 1500)),
                "frame_bytes": 16_384,
                "credits": None,
            },
        }
        for index in range(8)
    ]


def _heavy(name: str, rate: float, hop: int, back: int) -> ShortFlowsSpec:
    """CUBIC flows that come at random, of Pareto sizes: index 1.2, from 0.2 ms (10 kB at least) to 0.2 s of the load."""
    shape, least, most = 1.2, max(10_000.0, rate / 8 * 0.0002), max(50_000.0, rate / 8 * 0.2)
    mean = shape / (shape - 1) * (least - most * (least / most) ** shape) / (1 - (least / most) ** shape)
    return {
        "name": name,
        "source": hop,
        "destination": hop + 1,
        "route": [hop],
        "return_route": [back],
        "start_ns": 0,
        "stop_ns": None,
        "arrivals_per_ks": max(1, round(1000 * rate / 8 / mean)),
        "sizes": {
            "kind": "pareto",
            "pareto_shape_e3": round(shape * 1000),
            "min_bytes": round(least),
            "max_bytes": round(most),
        },
        "transport": _transport(1e6),
    }


def spec_of(cell: Cell, duration_s: float) -> RunSpec:
    """Return the run in which the test of a cell takes place."""
    links, hops = _links(cell)
    background: list[BackgroundSpec] = []
    flows: list[FlowSpec] = []
    short_flows: list[ShortFlowsSpec] = []
    for place, (rate, load) in enumerate(hops):
        name, offered, back = f"cross{place}", load * rate, place + len(hops)
        if load == 0:
            continue
        if cell.traffic == "constant":
            background += _constant(name, offered, [place], 1_000 * place)
        elif cell.traffic == "random":
            background += _random(name, offered, rate, [place])
        elif cell.traffic == "bursts":
            background += _bursts(name, offered, [place])
        elif cell.traffic == "cubic":
            flows += _cubic(name, offered, place, back, cell.rtt / len(hops), len(flows))
        else:
            short_flows.append(_heavy(name, offered, place, back))
    spec: RunSpec = {
        "format": FORMAT,
        "seed": cell.seed,
        "duration_ns": round(duration_s * 1e9),
        "stop_when_done": False,
        "nodes": [f"n{place}" for place in range(len(hops) + 1)],
        "links": links,
        "flows": flows,
        "background": background,
        "events": [],
        "measure": {
            "warmup_ns": 0,
            "series_interval_ns": None,
            "pcap": None,
            "pcap_node": None,
            "pcap_packets": 0,
        },
    }
    if short_flows:
        spec["short_flows"] = short_flows
    return spec


def simulated(cell: Cell) -> Judged:
    """Run the test of a cell in the simulator."""
    hops = len(_links(cell)[1])
    start = min(2.0, max(0.3, 50e6 / cell.rate)) + 4 * cell.rtt
    # The most that a test sends, at one percent of the line, and some more.
    spec = spec_of(cell, start + 3 + 1.3 * 10e6 * 8 / 0.01 / cell.rate)
    at = {
        "route": list(range(hops)),
        "return_route": list(range(2 * hops - 1, hops - 1, -1)),
        "start_ns": round(start * 1e9),
        "clock_offset_ns": 12_345_678_901,
        # A usual crystal's.
        "clock_skew_e9": 10_000,
    }
    test = {"test": cell.test, "seed": cell.seed}
    found = json.loads(native.simulate_path_test(json.dumps(spec), json.dumps(test), json.dumps(at)))
    return Judged(cell, found["outcome"], found["truth"])
