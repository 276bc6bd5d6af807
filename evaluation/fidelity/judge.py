"""Runs the cases and sets each beside its reference: rows that the page prints and the tests hold."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from elephan.api import job_of
from elephan.backends import Job
from evaluation.fidelity import cases
from evaluation.fidelity.peers import ns2_goodput
from evaluation.performance.dumbbell import Dumbbell, run_spec
from evaluation.runner import Runner

Case = TypeVar("Case")


@dataclass(frozen=True)
class Row:
    """One comparison. `low` and `high` bound measured over reference; a row without them is shown and not judged."""

    name: tuple[str, ...]
    reference: float
    measured: float
    low: float | None = None
    high: float | None = None
    least: float | None = None
    most: float | None = None

    @property
    def ratio(self) -> float:
        """Measured over reference."""
        return self.measured / self.reference

    @property
    def holds(self) -> bool:
        """Return True if the ratio lies within its tolerance."""
        return self.low is None or self.high is None or self.low <= self.ratio <= self.high

    def __str__(self) -> str:
        bounds = "" if self.low is None else f", allowed {self.low:g} to {self.high:g}"
        return f"{' '.join(self.name)}: {self.measured:.6g} over {self.reference:.6g} is {self.ratio:.3f}{bounds}"


def formula_rows(runner: Runner, selected: Sequence[cases.FormulaCase]) -> list[tuple[Row, Row]]:
    """Return, per point, the row against Mathis and the row against Padhye."""
    rows = []
    for case, metrics in zip(selected, metrics_of(runner, [case.bell for case in selected]), strict=True):
        name = (f"loss {case.loss:g}", f"RTT {case.rtt_ms} ms")
        goodput = metrics["goodput_bps"]
        rows.append(
            (
                Row(("Mathis", *name), case.mathis_bps, goodput, *case.tolerance_mathis),
                Row(("Padhye", *name), case.padhye_bps, goodput, *case.tolerance_padhye),
            )
        )
    return rows


def window_rows(runner: Runner, reference: dict[str, Any], selected: Sequence[cases.WindowCase]) -> list[Row]:
    """Return goodput of a window-limited flow beside W / RTT."""
    low, high = reference["window"]["tolerance"]
    results = metrics_of(runner, [case.bell for case in selected])
    return [
        Row((f"RTT {case.rtt_ms} ms",), case.expected_bps, metrics["goodput_bps"], low, high)
        for case, metrics in zip(selected, results, strict=True)
    ]


def sawtooth_rows(runner: Runner, reference: dict[str, Any], selected: Sequence[cases.SawtoothCase]) -> list[Row]:
    """Return the mean time between recoveries beside the sawtooth's period, s."""
    low, high = reference["sawtooth"]["tolerance"]
    results = metrics_of(runner, [case.bell for case in selected])
    return [
        Row(
            (f"{case.rate_mbps} Mbit/s", f"RTT {case.rtt_ms} ms"),
            case.expected_s,
            metrics["simulated_s"] / max(1, metrics["fast_retransmits"]),
            low,
            high,
        )
        for case, metrics in zip(selected, results, strict=True)
    ]


def kernel_rows(runner: Runner, reference: dict[str, Any], selected: Sequence[cases.KernelCase]) -> list[Row]:
    """Return the median goodput over the seeds beside the kernel's, bit/s."""
    low, high = reference["kernel"]["tolerance"]
    rows = []
    for case, results in by_case(selected, lambda bells: metrics_of(runner, bells), lambda case: case.bells):
        goodputs = [metrics["goodput_bps"] for metrics in results]
        rows.append(
            Row(
                (case.cc, f"loss {case.loss:g}"),
                case.expected_bps,
                statistics.median(goodputs),
                low,
                high,
                min(goodputs),
                max(goodputs),
            )
        )
    return rows


@dataclass(frozen=True)
class Price:
    """Segments retransmitted without random loss, run by run, and the median of the goodputs they bought, bit/s."""

    case: cases.PriceCase
    segments: tuple[int, ...]
    goodput_bps: float

    @property
    def row(self) -> Row | None:
        """The comparison with the kernel, where there is a tolerance."""
        if self.case.tolerance is None:
            return None
        name = (f"{self.case.cc}, retransmitted", f"jitter {self.case.jitter_us} us")
        kernel, ours = statistics.median(self.case.kernel_segments), statistics.median(self.segments)
        return Row(name, kernel, ours, *self.case.tolerance)


def prices(runner: Runner, selected: Sequence[cases.PriceCase]) -> list[Price]:
    """Return what is retransmitted without random loss."""
    return [
        Price(
            case,
            tuple(metrics["retransmitted_segments"] for metrics in results),
            statistics.median(metrics["goodput_bps"] for metrics in results),
        )
        for case, results in by_case(selected, lambda bells: metrics_of(runner, bells), lambda case: case.bells)
    ]


def ns2_rows(runner: Runner, selected: Sequence[cases.Ns2Case]) -> list[Row]:
    """Return the median goodput over the seeds beside ns-2's, bit/s."""
    theirs = by_case(selected, lambda bells: runner.in_parallel(ns2_goodput, bells), lambda case: case.bells)
    ours = by_case(selected, lambda bells: metrics_of(runner, bells), lambda case: case.bells)
    rows = []
    for (case, goodputs), (_, results) in zip(theirs, ours, strict=True):
        measured = [metrics["goodput_bps"] for metrics in results]
        rows.append(
            Row(
                (
                    case.congestion + ("" if case.bells[0].transport["delayed_ack"] else ", an ACK per segment"),
                    f"RTT {case.rtt_ms} ms",
                    f"loss {case.loss:g}",
                ),
                statistics.median(goodputs),
                statistics.median(measured),
                *case.tolerance,
                min(measured),
                max(measured),
            )
        )
    return rows


def job(spec: dict[str, Any]) -> Job:
    """Return the simulator's run of a specification."""
    return job_of(spec, "fidelity")


def metrics_of(runner: Runner, bells: Sequence[Dumbbell]) -> list[dict[str, Any]]:
    """Return the metrics of each dumbbell's run, in order."""
    return [record.metrics for record in runner.run(job(run_spec(bell)) for bell in bells)]


def by_case(
    selected: Sequence[Case],
    run: Callable[[Sequence[Dumbbell]], list[Any]],
    bells_of: Callable[[Case], Iterable[Dumbbell]],
) -> list[tuple[Case, list[Any]]]:
    """Run all seeds of all cases at once and hand the results back case by case."""
    groups = [list(bells_of(case)) for case in selected]
    results = iter(run([bell for group in groups for bell in group]))
    return [(case, [next(results) for _ in group]) for case, group in zip(selected, groups, strict=True)]
