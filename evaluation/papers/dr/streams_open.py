"""The open problem of sections 4.2 and 5: how many streams, and what they do to other traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from elephan.papers.evaluation import Evaluation, PaperResults, Table, part
from elephan.papers.spread import Measured, Spread
from elephan.record import Record

from .transfers import POLICED, READINGS, STATED, reading_of, spreads_of, streams_text

CLAIM = "dr.open"

SWEPT = "reno"
"""Congestion control of the copies whose number of streams is swept; the proposal of `elephan advise` has another."""

_LATE = 0.9
"""A flow that begins after this part of the run is as good as not there."""


@dataclass(frozen=True, order=True)
class Beside:
    """A copy and two ordinary flows; or without these, or without the copy."""

    reading: str
    streams: int
    """Of the copy; 0: nobody copies."""
    is_proposed: bool
    has_others: bool


@dataclass(frozen=True)
class Rates:
    """Goodput, 10^6 B/s: of the copy, and of the ordinary flows together."""

    copy: Spread
    others: Spread


def beside(record: Record) -> Beside:
    """Return what a run has on which path."""
    copies = [flow for flow in record.spec["flows"] if flow["workload"]["kind"] == "copy"]
    others = [flow for flow in record.spec["flows"] if flow["workload"]["kind"] != "copy"]
    late_ns = _LATE * record.spec["duration_ns"]
    return Beside(
        reading=reading_of(record.spec),
        streams=len(copies) if copies[0]["start_ns"] < late_ns else 0,
        is_proposed=copies[0]["transport"]["congestion_control"] != SWEPT,
        has_others=others[0]["start_ns"] < late_ns,
    )


def rates_of(records: Sequence[Record]) -> dict[Beside, Rates]:
    """Return the goodputs of all runs, over the seeds."""
    copies = spreads_of((beside(record), _goodput(record, "copy")) for record in records)
    others = spreads_of((beside(record), _goodput(record, "bulk")) for record in records)
    return {key: Rates(copies[key], others[key]) for key in copies}


def _goodput(record: Record, kind: str) -> float:
    pairs = zip(record.spec["flows"], record.flows, strict=True)
    return sum((metrics["goodput_bps"] or 0.0) / 8e6 for flow, metrics in pairs if flow["workload"]["kind"] == kind)


@part("open.toml")
def open_problem(results: PaperResults) -> Evaluation:
    """The proposal of `elephan advise` beside all numbers of streams: what it gets, and what others lose."""
    found = rates_of(results.of("open.toml"))
    measured: dict[str, Measured] = {}
    tables = []
    for reading in (STATED, POLICED):
        swept = {key.streams: rates for key, rates in found.items() if key.reading == reading and not key.is_proposed}
        counts = sorted(count for count in swept if count > 0)
        alone = {count: found[Beside(reading, count, False, False)].copy for count in counts}
        near = {count: found[Beside(reading, count, False, True)] for count in counts}
        nobody = found[Beside(reading, 0, False, True)].others
        (number,) = {key.streams for key in found if key.reading == reading and key.is_proposed}
        proposed = found[Beside(reading, number, True, True)]
        proposed_alone = found[Beside(reading, number, True, False)].copy
        best = max(alone.values(), key=lambda rates: rates.median)
        measured[f"{reading}_best"] = best.values
        measured[f"{reading}_proposed_and_tenth"] = _and_tenth(proposed_alone)
        measured[f"{reading}_others_proposed"] = proposed.others.values
        for count in counts:
            measured[f"{reading}_{count}"] = alone[count].values
            measured[f"{reading}_others_{count}"] = near[count].others.values
        measured[f"{reading}_{counts[2]}_and_tenth"] = _and_tenth(alone[counts[2]])
        rows = [_row(streams_text(count), alone[count], near[count], nobody) for count in counts]
        name = f"elephan advise: {streams_text(number)} of {_control(results, reading)}"
        rows.append(_row(name, proposed_alone, proposed, nobody))
        tables.append(
            Table(
                CLAIM,
                f"A copy of Reno, 65,535 B, and two ordinary flows, {READINGS[reading]}, MB/s",
                ("copy", "alone", "beside the others", "the others", "harm"),
                tuple(rows),
                f"Others: a flow of Reno and one of CUBIC, which get {nobody} without the copy; harm: what they lose. "
                "Medians of five seeds, with least and largest where they differ.",
            )
        )
    return Evaluation({CLAIM: measured}, [], tables)


def _and_tenth(rates: Spread) -> list[float]:
    return [1.1 * rate for rate in rates.values]


def _control(results: PaperResults, reading: str) -> str:
    for record in results.of("open.toml"):
        what = beside(record)
        if what.is_proposed and what.reading == reading:
            copies = (flow for flow in record.spec["flows"] if flow["workload"]["kind"] == "copy")
            return next(copies)["transport"]["congestion_control"]
    raise KeyError(f"no proposal for {reading}")


def _row(name: str, alone: Spread, near: Rates, nobody: Spread) -> tuple[str, ...]:
    harm = 1 - fmean(near.others.values) / fmean(nobody.values)
    return (name, str(alone), str(near.copy), str(near.others), f"{100 * harm:.0f} %")
