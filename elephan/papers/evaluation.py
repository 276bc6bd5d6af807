"""Arguments and results of a paper's readers: records by scenario file; quantities by claim, figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elephan.api import Results
from elephan.papers.claims import Claim, Paper, Reference, Runs
from elephan.papers.kernel_column import KernelColumn
from elephan.papers.spread import Measured
from elephan.record import Record
from elephan.report.draw import Ink

Draw = Callable[[Any, Ink], None]
"""Puts a figure on a matplotlib figure, without its title."""


@dataclass(frozen=True)
class Figure:
    """A figure to draw."""

    key: str
    """Name of its file and anchor."""
    claim: str
    """Claim it belongs to."""
    title: str
    caption: str
    draw: Draw
    size_inches: tuple[float, float] = (7.4, 3.6)


@dataclass(frozen=True)
class Table:
    """A table that belongs to a claim, beside the one of its values."""

    claim: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass
class Evaluation:
    """Measured quantities, figures and tables for a paper's claims."""

    measured: dict[str, Mapping[str, Measured]] = field(default_factory=dict)
    """Claim, quantity, value in the claim's unit: one number, or one per repetition (`over_repetitions`)."""
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)

    def add(self, other: Evaluation) -> None:
        """Take over what another part of the paper measured."""
        self.measured |= other.measured
        self.figures += other.figures
        self.tables += other.tables


class PaperResults:
    """The records of a paper's scenarios, found by file."""

    def __init__(
        self, paper: Paper, results: Sequence[tuple[Runs, Results]], kernel: KernelColumn | None = None
    ) -> None:
        """`results` are those of each entry that the claims name; `kernel` what was measured beside them."""
        self.paper = paper
        self._results = list(results)
        self._kernel = kernel

    def reference(self, reference_id: str) -> Reference:
        """Return numbers from elsewhere, or from this machine's kernel where it has measured them. Raises KeyError."""
        found = self.paper.reference(reference_id)
        return found if self._kernel is None else self._kernel.instead_of(found)

    def has(self, file: str) -> bool:
        """Return True if a scenario file was run."""
        return any(runs.file == file for runs, _ in self._results)

    def of(self, file: str) -> list[Record]:
        """Return the records of a scenario file, with everything that was set in it, in order. Raises KeyError."""
        found = [record for runs, results in self._results if runs.file == file for record in results]
        if not found:
            raise KeyError(f"{file} was not run")
        return found

    def series(self, record: Record) -> Any:
        """Return the time series of a record. Raises KeyError when it has none."""
        for _, results in self._results:
            if any(item is record for item in results):
                series = results.series_of(record)
                if series is not None:
                    return series
        raise KeyError(f"run {record.id} has no series")


Evaluate = Callable[[PaperResults], Evaluation]
"""Measures claims from the records of the scenarios that they need."""


@dataclass(frozen=True)
class Part:
    """The reader of one table or figure, and the scenario files that it needs."""

    files: tuple[str, ...]
    evaluate: Evaluate


def part(*files: str) -> Callable[[Evaluate], Part]:
    """Mark a function of a paper's folder as a reader of these scenario files. It is skipped when one was not run."""
    return lambda function: Part(files, function)


Read = Callable[[Sequence[Record]], Mapping[str, Measured]]
"""Takes the quantities of one claim from records, in the claim's unit."""


@dataclass(frozen=True)
class KernelReader:
    """The reader of a claim's runs on the backend kernel."""

    claim: str
    """Id of the claim."""
    read: Read

    def __call__(self, records: Sequence[Record]) -> Mapping[str, Measured]:
        """Return the quantities by name."""
        return self.read(records)


def kernel_reader(claim: str) -> Callable[[Read], KernelReader]:
    """Mark a function of a paper's folder as the reader of a claim's runs on the backend kernel."""
    return lambda function: KernelReader(claim, function)


def over_repetitions(records: Sequence[Record], read: Callable[[Sequence[Record]], float]) -> list[float]:
    """Return a quantity once per repetition, in the order of the seeds.

    `read` gets the records of one seed: the sweep as if it had been run once. Raises ValueError when a seed has another
    number of runs than the first, as where a run is missing.
    """
    return [read(group) for group in repetitions(records)]


def all_over_repetitions(
    records: Sequence[Record], read: Callable[[Sequence[Record]], Mapping[str, float]]
) -> dict[str, list[float]]:
    """Return each quantity that `read` gives once per repetition; else as `over_repetitions`."""
    found = [read(group) for group in repetitions(records)]
    return {name: [group[name] for group in found] for name in found[0]} if found else {}


def repetitions(records: Sequence[Record]) -> list[list[Record]]:
    """Return the records of each seed, seeds rising. Raises ValueError as `over_repetitions`."""
    groups: dict[int, list[Record]] = {}
    for record in records:
        groups.setdefault(record.seed, []).append(record)
    rising = sorted(groups)
    for seed in rising:
        if len(groups[seed]) != len(groups[rising[0]]):
            runs = f"{len(groups[seed])} runs of seed {seed} beside {len(groups[rising[0]])} of seed {rising[0]}"
            raise ValueError(f"{runs}: repetitions of other sweeps, or one that is missing")
    return [groups[seed] for seed in rising]


def megabytes_per_s(bits_per_s: float | int | None) -> float:
    """Return MB/s (10^6 B), the paper's unit of throughput; NaN for what was not measured."""
    return float("nan") if bits_per_s is None else float(bits_per_s) / 8e6


def round_trip_s(record: Record, flow: int = 0) -> float:
    """Return the propagation round-trip time of a flow, s: the sum over its links, both ways."""
    spec = record.spec["flows"][flow]
    delay_ns: int = sum(record.spec["links"][link]["delay_ns"] for link in (*spec["route"], *spec["return_route"]))
    return delay_ns / 1e9


def line_bps(record: Record, flow: int = 0) -> int:
    """Return the rate of the slowest link of a flow's way forward, bit/s."""
    return min(int(record.spec["links"][link]["rate_bps"]) for link in record.spec["flows"][flow]["route"])


def path_packets(rate_bps: float, rtt_s: float, packet_bytes: int) -> float:
    """Return the window that fills a path without a queue: its bandwidth-delay product, packets."""
    return rate_bps * rtt_s / 8 / packet_bytes


def names_of(claim: Claim, measured: Mapping[str, Measured]) -> list[str]:
    """Return the quantities that a claim names and that are missing in `measured`."""
    wanted = [item.name for item in claim.value] + [name for order in claim.order for name in order.rising]
    wanted += [item.name for item in claim.region]
    return [name for name in wanted if name not in measured]
