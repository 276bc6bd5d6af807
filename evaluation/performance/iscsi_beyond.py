"""Extend the iSCSI paper's questions: `python -m evaluation.performance.iscsi_beyond` writes four parts of
docs/results/iscsi.md, and docs/img/iscsi.png.

Number of connections for a path, cost of a write's settings in round trips, queue depth against latency, and the
paper's session on today's congestion controls: examples/iscsi-{connections,write,depth,today}.toml, in the simulator.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from elephan.api import jobs_of, load
from elephan.papers.drawing import framed
from elephan.record import Record
from elephan.report.draw import Ink, rendered
from elephan.report.knee import METHOD, LoadPoint, knee_of
from elephan.run_spec.types import IscsiWorkloadSpec
from evaluation.markdown import fill, table
from evaluation.papers.iscsi.session import cc_of, connections_of, throughput
from evaluation.parts import write_parts
from evaluation.requirements import exit_code
from evaluation.runner import ROOT, Runner, add_options

PAGE = "iscsi.md"
COMMAND = "python -m evaluation.performance.iscsi_beyond"
PICTURE = ROOT / "docs" / "img" / "iscsi.png"
LATENCIES = {"p50": "read_latency_p50_s", "p99": "read_latency_p99_s"}

KEYS = ["InitialR2T", "ImmediateData", "FirstBurst", "MaxBurst"]
ANY = "any"

Curves = dict[str, dict[int, float]]
Rows = list[list[str]]


def records(runner: Runner, example: str) -> list[Record]:
    """Run an example; return its records."""
    return runner.run(jobs_of(load(ROOT / "examples" / f"iscsi-{example}.toml"))).records


def seconds(record: Record, metric: str) -> float:
    """Return a latency, s, which every run of these examples measures."""
    return float(record.metrics[metric] or 0)


def workload(record: Record) -> IscsiWorkloadSpec:
    """Return the specification of a record's session."""
    found = record.spec["flows"][0]["workload"]
    assert found["kind"] == "iscsi", "an example of sessions"
    return found


def by_cc(found: Sequence[Record]) -> Curves:
    """Return MB/s by congestion control and connections."""
    curves: Curves = {}
    for record in sorted(found, key=connections_of):
        curves.setdefault(cc_of(record), {})[connections_of(record)] = throughput(record)
    return curves


def settings_of_writes(found: Sequence[Record]) -> Rows:
    """Return a row per combination of the session's keys: round trips of a write by its size."""
    rtt_ns = 100e6
    cells: dict[tuple[str, ...], dict[int, int]] = {}
    for record in found:
        work = workload(record)
        source = work["source"]
        assert source["kind"] == "mix", "writes of one size"
        kib = [f"{size // 1024} KiB" for size in (work["first_burst_bytes"], work["max_burst_bytes"])]
        key = (yes(work["initial_r2t"]), yes(work["immediate_data"]), *kib)
        cells.setdefault(key, {})[source["request_bytes"]] = round(
            seconds(record, "write_latency_p50_s") * 1e9 / rtt_ns
        )
    return [[*key, *map(str, (trips[size] for size in sorted(trips)))] for key, trips in cells.items()]


def yes(on: bool) -> str:
    """Return the value of a key as text has it."""
    return "Yes" if on else "No"


def joined(rows: Rows) -> Rows:
    """Return the rows of settings with those joined that differ in one key and not in round trips.

    A cell of MaxBurst holds its values, and a cell of round trips the number for each of them, once if they agree.
    """
    keys = len(KEYS)
    by_burst: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        by_burst.setdefault(tuple(row[: keys - 1]), []).append(row[keys - 1 :])
    found = []
    for key, ends in by_burst.items():
        cells = [list(dict.fromkeys(column)) for column in zip(*ends, strict=True)]
        found.append([*key, *map(", ".join, cells)])
    # The data's own order of keys: FirstBurst first, since what it is does not matter with InitialR2T=Yes.
    for column in reversed(range(keys - 1)):
        found = _without(column, found)
    return found


def _without(column: int, rows: Rows) -> Rows:
    """Join rows that are equal but for one column and together have all its values."""
    values = {row[column] for row in rows} - {ANY}
    groups: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        groups.setdefault((*row[:column], *row[column + 1 :]), []).append(row)
    found = []
    for alike in groups.values():
        if {row[column] for row in alike} == values and len(values) > 1:
            alike = [[*alike[0][:column], ANY, *alike[0][column + 1 :]]]
        found += alike
    return found


def table_of(curves: Curves) -> str:
    """Return the table of MB/s by congestion control and connections."""
    heads = ["MB/s, by connections", *map(str, next(iter(curves.values())))]
    return table(heads, [[cc, *(f"{value:.1f}" for value in values.values())] for cc, values in curves.items()])


def text_of_depths(found: dict[int, Record]) -> str:
    """Return throughput and latency by queue depth, and the knee."""
    rows = [["MB/s", *(f"{throughput(record):.1f}" for record in found.values())]]
    for name, key in LATENCIES.items():
        rows.append([f"{name}, ms", *(f"{seconds(record, key) * 1e3:.0f}" for record in found.values())])
    knee = knee_of(
        [
            LoadPoint(depth, 1, throughput(record), seconds(record, "read_latency_mean_s"))
            for depth, record in found.items()
        ]
    )
    assert knee is not None, "several depths"
    sentence = f"The knee is at a depth of {list(found)[knee.index]}: {METHOD}."
    return f"{fill(sentence)}\n\n{table(['queue depth', *map(str, found)], rows)}"


def main() -> None:
    """Run, write, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    runner = Runner.of(parser.parse_args())
    connections, today = by_cc(records(runner, "connections")), by_cc(records(runner, "today"))
    writes = settings_of_writes(records(runner, "write"))
    depth = {workload(record)["queue_depth"]: record for record in records(runner, "depth")}
    ink = Ink(themed=False)
    picture = rendered(lambda all_: draw(all_, ink, connections, today, writes, depth), ink, "png", (7.4, 6.4))
    texts = {
        "connections": table_of(connections),
        "writes": table([*KEYS, "8 KiB", "64 KiB", "256 KiB"], joined(writes)),
        "depth": text_of_depths(depth),
        "today": table_of(today),
    }
    write_parts(PAGE, COMMAND, texts)
    PICTURE.write_bytes(picture)


def draw(drawing: Any, ink: Ink, connections: Curves, today: Curves, writes: Rows, depth: dict[int, Record]) -> None:
    """Draw the four."""
    (first, second), (third, fourth) = drawing.subplots(2, 2)
    for axes, curves, what in (
        (first, connections, "MB/s: 1 Gbit/s, 30 ms, 1 packet in 100,000 lost"),
        (fourth, today, "MB/s: the paper's path, today's congestion controls"),
    ):
        framed(axes, ink, "connections of the session", what)
        for number, (cc, values) in enumerate(curves.items()):
            axes.plot(
                *zip(*values.items(), strict=True),
                "o-",
                color=ink.curve(number),
                markersize=4,
                linewidth=1.4,
                label=cc,
            )
        axes.set_ylim(bottom=0)
        axes.set_xticks(list(next(iter(curves.values()))))
        axes.legend(frameon=False, fontsize=8, labelcolor=ink.text)
    framed(second, ink, "write", "round trips of a write, by the session's keys")
    for number, (label, row) in enumerate(picked(writes)):
        places = [place + (number - 1.5) * 0.2 for place in range(3)]
        second.bar(places, [int(cell) for cell in row[4:]], width=0.18, color=ink.curve(number), label=label)
    second.set_xticks(range(3), ["8 KiB", "64 KiB", "256 KiB"])
    second.set_ylim(0, 7.5)
    second.legend(frameon=False, fontsize=7, labelcolor=ink.text, loc="upper left")
    framed(third, ink, "queue depth", "ms: 8 KiB reads, 100 Mbit/s, 40 ms")
    for number, (name, key) in enumerate(LATENCIES.items()):
        latencies_ms = [seconds(record, key) * 1e3 for record in depth.values()]
        third.plot(list(depth), latencies_ms, "o-", color=ink.curve(number), markersize=4, linewidth=1.4, label=name)
    third.set_xscale("log", base=2)
    third.set_ylim(bottom=0)
    third.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    third.legend(frameon=False, fontsize=8, labelcolor=ink.text, loc="upper left")


def picked(writes: Rows) -> list[tuple[str, list[str]]]:
    """Return four of the rows for the figure, and the change of each to the one before."""
    wanted = {
        ("Yes", "No", "64 KiB", "64 KiB"): "all data asked for, 64 KiB at a time",
        ("Yes", "Yes", "64 KiB", "64 KiB"): "and ImmediateData=Yes",
        ("No", "Yes", "64 KiB", "64 KiB"): "and InitialR2T=No, 64 KiB first",
        ("No", "Yes", "64 KiB", "256 KiB"): "and 256 KiB at a time",
    }
    found = {tuple(row[:4]): row for row in writes}
    return [(label, found[key]) for key, label in wanted.items()]


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.iscsi_beyond", main))
