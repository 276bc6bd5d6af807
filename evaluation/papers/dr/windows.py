"""Figures 6 to 8: the window with and without tuning; on Linux the application buffer, FTP and SCP too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from elephan.papers.evaluation import Evaluation, PaperResults, Table, kernel_reader, part
from elephan.papers.spread import Measured, Spread
from elephan.record import Record

from .transfers import (
    CCS,
    JUDGED,
    READINGS,
    TUNED_BYTES,
    UNTUNED_BYTES,
    Transfer,
    by_reading,
    reading_of,
    spreads,
    transfer_of,
)

CLAIM = "dr.fig6-8"

Windows = Mapping[tuple[str, str, int], Spread]
"""Throughput by application, congestion control and window."""


@part("fig6-8.toml", "programs.toml")
def figures6_to_8(results: PaperResults) -> Evaluation:
    """Throughput with tuning relative to that without, by application and congestion control."""
    measured: dict[str, Measured] = {}
    rows = []
    for reading, transfers in by_reading(results.of("fig6-8.toml")).items():
        found = spreads(transfers, lambda one: (one.application, one.cc, one.window_bytes))
        names = list(dict.fromkeys(application for application, _, _ in found))
        for cc in JUDGED:
            for name in names:
                untuned, tuned = (found[name, cc, window] for window in (UNTUNED_BYTES, TUNED_BYTES))
                seeds = zip(tuned.values, untuned.values, strict=True)
                measured[f"{reading}_{name}_{cc}"] = [large / small for large, small in seeds]
                rows.append((f"{READINGS[reading]}, {CCS[cc][0]}, {name}", str(untuned), str(tuned)))
    table = Table(
        CLAIM,
        "Throughput by window, MB/s",
        ("path, congestion control, application", f"{UNTUNED_BYTES:,} B", f"{TUNED_BYTES:,} B"),
        tuple(rows),
        "Medians of five seeds, with least and largest where they differ.",
    )
    return Evaluation({CLAIM: measured}, [], [table, _programs(results)])


def _programs(results: PaperResults) -> Table:
    simulated = program_rates(map_transfers(results.of("programs.toml")))
    linux = results.reference("linux")
    rows = [
        (words(name), f"{rate:.2f}", f"{linux.median(name):.2f}" if name in linux.value else "")
        for name, rate in simulated.items()
    ]
    buffers = f"{linux.median('buffer'):.3f}" if "buffer" in linux.value else ""
    rows.append(("application buffers of 1,024 to 65,536 B: slowest over fastest", "no effect", buffers))
    return Table(
        CLAIM,
        "FTP and SCP, simulated and as real programs, MB/s",
        ("program, path, window", "simulated", linux.label),
        tuple(rows),
        f"Reno; login and start of the programs count. {linux.provenance}",
    )


def map_transfers(records: Iterable[Record]) -> list[tuple[str, Transfer]]:
    """Return each record's path and copy."""
    return [(reading_of(record.spec), transfer_of(record)) for record in records]


def program_rates(transfers: Iterable[tuple[str, Transfer]]) -> dict[str, float]:
    """Return MB/s by the name of program, path and window."""
    return {f"{one.application}_{reading}_{one.window_bytes}": one.mb_per_s for reading, one in transfers}


def words(name: str) -> str:
    """Return a name of `program_rates` in words."""
    program, reading, window = name.split("_")
    return f"{program}, {READINGS[reading]}, {int(window):,} B"


@kernel_reader(CLAIM)
def on_linux(records: Sequence[Record]) -> dict[str, float]:
    """Take rates and ratios of the real programs, and the ratio of the slowest application buffer to the fastest."""
    programs = [one for one in records if one.spec["flows"][0]["workload"]["kind"] == "program"]
    rates = program_rates(map_transfers(programs))
    found = dict(rates)
    for name, rate in rates.items():
        program, reading, window = name.split("_")
        if int(window) == UNTUNED_BYTES:
            found[f"{reading}_{program}_reno"] = rates[f"{program}_{reading}_{TUNED_BYTES}"] / rate
    by_window: dict[int, list[float]] = {}
    for record in records:
        workload = record.spec["flows"][0]["workload"]
        if workload["kind"] == "bulk":
            copy = transfer_of(record)
            by_window.setdefault(copy.window_bytes, []).append(copy.mb_per_s)
    if by_window:
        found["buffer"] = min(min(values) / max(values) for values in by_window.values())
    return found
