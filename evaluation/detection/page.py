"""docs/results/detection.md and its picture."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from evaluation.detection.cells import Cell, rate_error
from evaluation.markdown import filled

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "results" / "detection.md"
IMAGE = ROOT / "docs" / "img" / "detection.png"

TEXT = """# Elephants told from mice

<!-- Written by `make detection`; do not edit. -->

How well does the [manager](../howto/lightpath-manager.md) find elephants, by sampling rate, flow table size and
caution? elephan {version}, {date}; `evaluation/detection/trials.toml` says what is run.

Each run is {duration} s with {arrivals} new flows a second (Poisson), {flows} flows in the {seeds} runs of a cell, up
to {active} at once; rates are lognormal with a median of {median} Mbit/s, sent evenly. An elephant sends at {rate}
Mbit/s or more in an interval of {interval} s and has sent {volume} MB ({share}). A place has the elephants that were
never found, then, of the flows taken for elephants, those that never were. [detection.csv](detection.csv) has counts,
the elephants' bytes that passed before they were found, and the mean time until then.

## By sampling

A table for {memory} flows; one standard error taken off. *Error*: relative standard error of the threshold's rate in
one interval, sqrt((N - 1) / packets).

{sampling}

## By memory

Every packet is counted; the table holds so many flows. Bounded memory alone takes no mouse for an elephant.

{bounded}

## By caution

One packet in {caution_n} is sampled; so many standard errors are taken off (`confidence_sigmas`).

{caution}

![Misses and false positives by sampling and by memory](../img/detection.png)
"""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, its first column to the left."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(["---"] + ["---:"] * (len(heads) - 1)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def percent(part: float) -> str:
    """Return a share with two figures where it is small."""
    return "0" if part == 0 else f"{100 * part:.1f} %" if part >= 0.0995 else f"{100 * part:.2g} %"


def judged(cell: Cell) -> str:
    """Return what a place of a table says of a cell."""
    return f"{percent(cell.missed)}, {percent(cell.false)}"


def by_mix(cells: Sequence[Cell], key: str, labels: Callable[[Cell], list[str]]) -> list[list[str]]:
    """Return a row for each value of `key`, a column for each mix after the labels."""
    rows: dict[float, list[str]] = {}
    for cell in cells:
        rows.setdefault(getattr(cell, key), labels(cell)).append(judged(cell))
    return list(rows.values())


COLUMNS = {
    "elephants": "elephants",
    "misses": "missed",
    "false_positives": "false_positives",
    "near_false_positives": "false_positives_near_both_thresholds",
    "evictions": "lost_their_place",
}
"""Counts of a cell, and their columns."""


def write_counts(cells: dict[str, list[Cell]]) -> None:
    """Write every cell beside the page."""
    with PAGE.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["table", "sizes", "value", *COLUMNS.values(), "bytes_unseen", "delay_s"])
        for name, key in (
            ("sampling", "sampling_rate"),
            ("flow_table_size", "flow_table_size"),
            ("caution", "confidence_sigmas"),
        ):
            # Only a small table forgets flows.
            counted = COLUMNS.keys() - ({"evictions"} if name != "flow_table_size" else set())
            for cell in cells[name]:
                numbers = [f"{cell.found[count]:.0f}" if count in counted else "" for count in COLUMNS]
                seen = [percent(cell.unfound), f"{cell.delay_s:.2f}"]
                writer.writerow([name, cell.mix, f"{getattr(cell, key):g}", *numbers, *seen])


def text(reference: dict[str, Any], cells: dict[str, list[Cell]], version: str, date: str) -> str:
    """Return the page."""
    heads = list(dict.fromkeys(cell.mix for cell in cells["sampling"]))
    exact = [cell for cell in cells["sampling"] if cell.sampling_rate == 1]
    shares = [
        f"{cell.mix}: {percent(cell.found['elephants'] / cell.found['flows'])} of the flows with "
        f"{percent(cell.found['elephant_bytes'] / cell.found['bytes'])} of the bytes"
        for cell in exact
    ]
    return filled(
        TEXT.format(
            version=version,
            date=date,
            duration=reference["duration_s"],
            arrivals=reference["arrivals_per_s"],
            flows=f"{exact[0].found['flows']:,.0f}",
            seeds=len(reference["seeds"]),
            active=f"{max(cell.found['active_max'] for cell in exact):,.0f}",
            median=f"{reference['rates_bps']['median'] / 1e6:g}",
            rate=reference["rate_bps"] // 10**6,
            interval=f"{reference['interval_ms'] / 1000:g}",
            volume=reference["volume_bytes"] // 10**6,
            share="; ".join(shares),
            memory=reference["default"]["flow_table_size"],
            caution_n=cells["caution"][0].sampling_rate,
            sampling=table(
                ["1 in", "error", *heads],
                by_mix(
                    cells["sampling"],
                    "sampling_rate",
                    lambda cell: [str(cell.sampling_rate), percent(rate_error(reference, cell.sampling_rate))],
                ),
            ),
            bounded=table(
                ["flows held", *heads],
                by_mix(cells["flow_table_size"], "flow_table_size", lambda cell: [str(cell.flow_table_size)]),
            ),
            caution=table(
                ["standard errors", *heads],
                by_mix(cells["caution"], "confidence_sigmas", lambda cell: [f"{cell.confidence_sigmas:g}"]),
            ),
        )
    )


def write(reference: dict[str, Any], cells: dict[str, list[Cell]], version: str, date: str) -> None:
    """Write page, counts and picture."""
    PAGE.write_text(text(reference, cells, version, date))
    write_counts(cells)
    draw(cells)


def draw(cells: dict[str, list[Cell]]) -> None:
    """Draw misses and false positives by sampling and by memory."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
    for axis, kind, key, label in (
        (axes[0], "sampling", "sampling_rate", "one packet in N sampled"),
        (axes[1], "flow_table_size", "flow_table_size", "flows in the table"),
    ):
        for colour, mix in enumerate(dict.fromkeys(cell.mix for cell in cells[kind])):
            of_mix = [cell for cell in cells[kind] if cell.mix == mix]
            at = [getattr(cell, key) for cell in of_mix]
            axis.plot(at, [100 * cell.missed for cell in of_mix], "o-", color=f"C{colour}", label=f"{mix}: missed")
            axis.plot(at, [100 * cell.false for cell in of_mix], "x--", color=f"C{colour}", label=f"{mix}: false")
        axis.set_xscale("log")
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("%")
    axes[0].legend(fontsize=8)
    figure.savefig(IMAGE, dpi=110)
    pyplot.close(figure)
