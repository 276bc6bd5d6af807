"""The points that are simulated, made from reference.toml: no running and no judging here."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.fidelity import formulas
from evaluation.performance.dumbbell import NS_PER_S, PAYLOAD_BYTES, Dumbbell

REFERENCE = Path(__file__).resolve().parent / "reference.toml"
NS_PER_MS = 1_000_000
NS_PER_US = 1_000
BPS_PER_MBPS = 1_000_000
SEGMENT_BITS = 8 * PAYLOAD_BYTES
NEVER_FULL_PACKETS = 10_000_000


def load() -> dict[str, Any]:
    """Read reference.toml."""
    return tomllib.loads(REFERENCE.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class FormulaCase:
    """Reno under independent loss."""

    loss: float
    rtt_ms: int
    events: int
    mathis_bps: float
    padhye_bps: float
    tolerance_mathis: tuple[float, float]
    tolerance_padhye: tuple[float, float]
    bell: Dumbbell


def formula_cases(reference: dict[str, Any], seed: int = 1) -> Iterator[FormulaCase]:
    """Yield the grid of loss and RTT; each run is as long as its number of loss events takes."""
    table = reference["formulas"]
    for rtt_ms in table["rtt_ms"]:
        for loss, events in zip(table["loss"], table["loss_events"], strict=True):
            rtt_s = rtt_ms / 1000
            rate = formulas.mathis(loss, rtt_s)
            event_s = 1 / loss / rate
            scatter = tuple(table["scatter_tolerance"])
            few = events <= 60
            # A seed for each RTT: with one for all, the same packets would be lost and nothing learnt.
            yield FormulaCase(
                loss=loss,
                rtt_ms=rtt_ms,
                events=events,
                mathis_bps=rate * SEGMENT_BITS,
                padhye_bps=formulas.padhye(loss, rtt_s, rtt_s + table["rto_min_s"]) * SEGMENT_BITS,
                tolerance_mathis=scatter if few else tuple(table["mathis_tolerance"]),
                tolerance_padhye=scatter if few else tuple(table["padhye_tolerance"]),
                bell=Dumbbell(
                    rate_bps=table["line_bps"],
                    rtt_ns=rtt_ms * NS_PER_MS,
                    duration_ns=int((events + table["warmup_events"]) * event_s * NS_PER_S),
                    warmup_ns=int(table["warmup_events"] * event_s * NS_PER_S),
                    congestion_control="reno",
                    loss_e12=round(loss * 1e12),
                    queue_packets=NEVER_FULL_PACKETS,
                    seed=seed + rtt_ms,
                    transport={"initial_ssthresh": max(2, int(rate * rtt_s))},
                ),
            )


@dataclass(frozen=True)
class WindowCase:
    """A receive window as the limit."""

    rtt_ms: int
    expected_bps: float
    bell: Dumbbell


def window_cases(reference: dict[str, Any]) -> Iterator[WindowCase]:
    """Yield one case per RTT."""
    table = reference["window"]
    for rtt_ms in table["rtt_ms"]:
        segments = table["window_bytes"] // PAYLOAD_BYTES
        yield WindowCase(
            rtt_ms=rtt_ms,
            expected_bps=formulas.window_limited(segments, rtt_ms / 1000) * SEGMENT_BITS,
            bell=Dumbbell(
                rate_bps=10_000_000_000,
                rtt_ns=rtt_ms * NS_PER_MS,
                duration_ns=400 * rtt_ms * NS_PER_MS,
                warmup_ns=20 * rtt_ms * NS_PER_MS,
                congestion_control="reno",
                window_bytes=table["window_bytes"],
                transport={"window_scaling": False},
            ),
        )


@dataclass(frozen=True)
class SawtoothCase:
    """One Reno flow that fills a queue again and again."""

    rate_mbps: int
    rtt_ms: int
    expected_s: float
    bell: Dumbbell


def sawtooth_cases(reference: dict[str, Any]) -> Iterator[SawtoothCase]:
    """Yield one case per path."""
    for path in reference["sawtooth"]["paths"]:
        bell = Dumbbell(
            rate_bps=path["rate_mbps"] * BPS_PER_MBPS,
            rtt_ns=path["rtt_ms"] * NS_PER_MS,
            duration_ns=path["seconds"] * NS_PER_S,
            congestion_control="reno",
        )
        line = bell.rate_bps / 12_000
        expected_s = formulas.sawtooth_period(line, bell.product_packets, bell.limit_packets)
        yield SawtoothCase(path["rate_mbps"], path["rtt_ms"], expected_s, bell)


@dataclass(frozen=True)
class KernelCase:
    """One cell of the kernel's table, with as many seeds as the reference asks for."""

    cc: str
    loss: float
    expected_bps: float
    bells: tuple[Dumbbell, ...]


def kernel_cases(reference: dict[str, Any], seeds: int | None = None) -> Iterator[KernelCase]:
    """Yield congestion controls by losses."""
    table = reference["kernel"]
    for cc in table["congestion_control"]:
        for loss, goodput_mbps in zip(table["loss"], cc["goodput_mbps"], strict=True):
            bells = tuple(
                kernel_bell(table, cc["congestion_control"], cc["parameters"], loss, seed)
                for seed in range(1, (seeds or table["seeds"]) + 1 if loss else 2)
            )
            yield KernelCase(cc["name"], loss, goodput_mbps * BPS_PER_MBPS, bells)


def kernel_bell(table: dict[str, Any], congestion: str, parameters: dict[str, int], loss: float, seed: int) -> Dumbbell:
    """The path of the kernel's table."""
    return Dumbbell(
        rate_bps=table["rate_mbps"] * BPS_PER_MBPS,
        rtt_ns=table["rtt_ms"] * NS_PER_MS,
        duration_ns=table["seconds"] * NS_PER_S,
        congestion_control=congestion,
        parameters=parameters,
        loss_e12=round(loss * 1e12),
        seed=seed,
        transport={"sack_compression": True, "tso_autosizing": True},
    )


@dataclass(frozen=True)
class PriceCase:
    """Retransmissions without random loss."""

    cc: str
    jitter_us: int
    sack_compression: bool
    kernel_segments: tuple[int, ...]
    """Run by run; none where the kernel was not measured so."""
    tolerance: tuple[float, float] | None
    """None where the retransmissions of one run say little about those of the next."""
    bells: tuple[Dumbbell, ...]


def price_cases(reference: dict[str, Any]) -> Iterator[PriceCase]:
    """Yield reno, then "both", each with and without jitter; "both" with an ACK for each segment too."""
    table = reference["kernel"]
    price = table["price"]
    congestion_controls = [
        ("reno", "reno", {}, True, price["reno_segments"], tuple(price["reno_tolerance"])),
        ("both", "storage_friendly", price["both"], True, price["both_segments"], None),
        ("both", "storage_friendly", price["both"], False, [], None),
    ]
    for name, congestion, parameters, compression, kernel, tolerance in congestion_controls:
        for jitter_us in price["jitter_us"]:
            bells = tuple(
                dataclasses.replace(
                    kernel_bell(table, congestion, parameters, 0, seed),
                    jitter_ns=jitter_us * NS_PER_US,
                    transport={"sack_compression": compression, "tso_autosizing": True},
                )
                for seed in range(1, price["seeds"] + 1 if jitter_us else 2)
            )
            yield PriceCase(name, jitter_us, compression, tuple(kernel), tolerance, bells)


@dataclass(frozen=True)
class Ns2Case:
    """One dumbbell for both simulators, with seeds."""

    congestion: str
    rtt_ms: int
    loss: float
    bells: tuple[Dumbbell, ...]
    tolerance: tuple[float, float]


def ns2_cases(reference: dict[str, Any], seeds: int | None = None) -> Iterator[Ns2Case]:
    """Yield the grids."""
    table = reference["ns2"]
    for grid in table["grid"]:
        for congestion in grid["congestion_control"]:
            own = table["congestion_control"].get(congestion, {})
            for rtt_ms in grid["rtt_ms"]:
                for loss in grid["loss"]:
                    bells = tuple(
                        Dumbbell(
                            rate_bps=grid["rate_mbps"] * BPS_PER_MBPS,
                            rtt_ns=rtt_ms * NS_PER_MS,
                            duration_ns=grid["round_trips"] * rtt_ms * NS_PER_MS,
                            congestion_control=congestion,
                            parameters=own.get("parameters", {}),
                            transport={"delayed_ack": grid["delayed_ack"]},
                            loss_e12=round(loss * 1e12),
                            seed=seed,
                        )
                        for seed in range(1, (seeds or grid["seeds"]) + 1 if loss else 2)
                    )
                    bounds = tolerance_of(table, own, loss, grid["delayed_ack"])
                    yield Ns2Case(congestion, rtt_ms, loss, bells, bounds)


def tolerance_of(table: dict[str, Any], own: dict[str, Any], loss: float, delayed_ack: bool) -> tuple[float, float]:
    """Return a congestion control's own bounds for a loss rate and way of acknowledging, else those of all."""
    for item in own.get("tolerance", []):
        if item["from"] <= loss <= item["to"] and item.get("delayed_ack", True) == delayed_ack:
            return item["low"], item["high"]
    low, high = table["tolerance"]
    return low, high
