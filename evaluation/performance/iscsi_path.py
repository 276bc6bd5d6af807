"""Figures 6 and 9 of the iSCSI paper: `python -m evaluation.performance.iscsi_path`, as root. Target and load over an
emulated path, through the kernel's TCP (evaluation/performance/iscsi_point.py).

One line of JSON per run is appended to --out, and the same command goes on where it was ended. A run whose path the
emulator did not honour is marked, not used, and tried once more. --table prints what is there, --orders what it says of
the claim's statements, --toml the lines for claims.toml's reference, and --csv writes it. The first three leave out a
repetition of a stage that was cut short, and say so. Stages, in this order, each
with --repetitions:

    base       queue of 50 packets, half reads; FAST with alpha 20
    alpha      FAST with alpha 8 and 100
    queue-333, writes, queue-1000, window-64, window-128, window-256
               base with other queues (packets) or windows (KiB per connection), or with writes alone
    postmark   4 requests of 8 KiB under way, about as Postmark's files by four clients without a file system's cache
    crossed    FAST with alpha 8 and 100 in these settings
    bursts     figure 9: by MaxBurstLength, five connections, requests of fig10.toml
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from elephan.errors import ElephanError, InputError
from elephan.papers.catalogue import find
from elephan.papers.claims import Outcome
from elephan.papers.verdict import judge
from evaluation.markdown import spread, table
from evaluation.papers.iscsi.testbed import CCS, CLAIM, CONNECTIONS, measured_of, spreads_of
from evaluation.performance.iscsi_point import Point, measure
from evaluation.requirements import exit_code
from evaluation.runner import ROOT

ALPHA = 20
"""FAST's segments per flow. The paper names none: this is the middle one of those that are tried."""
ALPHAS = (8, 100)
BURSTS_KIB = (4, 16, 64, 256, 1024, 4096)
VARIANTS: Mapping[str, Mapping[str, int]] = {
    "queue-333": {"queue": 333},
    "writes": {"reads": 0},
    "queue-1000": {"queue": 1000},
    "window-64": {"window_kib": 64},
    "window-128": {"window_kib": 128},
    "window-256": {"window_kib": 256},
}
TRIES = 2
"""Of a run that the emulator did not honour."""
OUT = ROOT / "out" / "iscsi-path.jsonl"
KEPT = ("emulator_late_p99_s", "emulator_own_drops", "emulator_cpu_share")

Lines = list[dict[str, Any]]


def base(alpha: int = ALPHA, **changed: Any) -> Iterator[Point]:
    """Give figure 6, congestion control by congestion control within a number of connections, so that the machine's
    other load meets all of them.
    """
    for connections, control in product(CONNECTIONS, CCS):
        yield replace(Point(control, connections, alpha if control == "fast" else 0), **changed)


def fast(alpha: int, **changed: Any) -> Iterator[Point]:
    """Give figure 6's FAST alone."""
    return (point for point in base(alpha, **changed) if point.control == "fast")


def bursts() -> Iterator[Point]:
    """Give figure 9, with fig10.toml's demand. At 4 KiB a write takes 64 round trips, so that 15 s are several."""
    for kib, control in product(BURSTS_KIB, CCS):
        alpha = ALPHA if control == "fast" else 0
        yield Point(control, 5, alpha, request_kib=256, depth=4, burst_kib=kib)


STAGES: Mapping[str, list[Point]] = {
    "base": list(base()),
    "alpha": [point for alpha in ALPHAS for point in fast(alpha)],
    **{name: list(base(**changed)) for name, changed in VARIANTS.items()},
    "postmark": list(base(request_kib=8, depth=4)),
    "crossed": [point for alpha in ALPHAS for changed in VARIANTS.values() for point in fast(alpha, **changed)],
    "bursts": list(bursts()),
}


def grid(stages: Sequence[str], repetitions: int, seconds: int) -> Iterator[Point]:
    """Give all runs in order: stage by stage, in each the whole of a repetition before the next."""
    for stage in stages:
        for repetition in range(1, repetitions + 1):
            for point in STAGES[stage]:
                yield replace(point, repetition=repetition, seconds=seconds)


def lines_of(file: Path) -> Lines:
    """Return what was measured, in order; a line that an end of the program cut is left out."""
    if not file.exists():
        return []
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def to_do(points: Iterator[Point], done: Lines) -> list[Point]:
    """Return the runs that are left: neither honoured nor tried as often as may be."""
    tried: dict[str, int] = {}
    honoured = set()
    for line in done:
        tried[line["key"]] = tried.get(line["key"], 0) + 1
        if not line["faults"]:
            honoured.add(line["key"])
    return [point for point in points if point.key not in honoured and tried.get(point.key, 0) < TRIES]


def append(file: Path, line: Mapping[str, Any]) -> None:
    """Add one run, whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line, sort_keys=True) + "\n")
        out.flush()
        os.fsync(out.fileno())


def run(points: Sequence[Point], file: Path, at_once: int, until_s: float | None) -> None:
    """Measure what is left, several paths at a time; begin none after `until_s`, a time of time.monotonic()."""

    def one(numbered: tuple[int, Point]) -> None:
        number, point = numbered
        if until_s is not None and time.monotonic() + point.seconds > until_s:
            return
        try:
            line = {**measure(point), "at_once": at_once}
        except ElephanError as error:
            print(f"{point.key}: {error}", file=sys.stderr, flush=True)
            return
        append(file, line)
        print(f"{number}/{len(points)} {point.key}: {line['MBps']:.2f} MB/s", *line["faults"], sep="; ", flush=True)

    with ThreadPoolExecutor(at_once) as pool:
        try:
            for _ in pool.map(one, enumerate(points, 1)):
                pass
        finally:
            # Ctrl-C: those under way end, and no other begins.
            pool.shutdown(cancel_futures=True)


def whole(lines: Lines) -> tuple[Lines, list[str]]:
    """Return the lines of repetitions in which every point of a stage was tried, and the names of the others.

    One that was cut short has few points, from whatever the machine did meanwhile: they would stand beside those of
    whole repetitions.
    """
    tried = {line["key"] for line in lines}
    kept: set[str] = set()
    cut = []
    for name, points in STAGES.items():
        for repetition, seconds in sorted({(line["point"]["repetition"], line["point"]["seconds"]) for line in lines}):
            keys = {replace(point, repetition=repetition, seconds=seconds).key for point in points}
            there = keys & tried
            if there == keys:
                kept |= keys
            # Settings with other alphas are those of the crossed stage, too: a stage is cut short that is not whole
            # in another one.
            elif there - kept:
                cut.append(f"{name}, repetition {repetition} of {seconds} s: {len(there)} of {len(keys)} points")
    return [line for line in lines if line["key"] in kept], cut


def used(lines: Lines) -> dict[Point, list[float]]:
    """Return MB/s of the runs that count, by point without its repetition, in order of repetitions."""
    found: dict[Point, dict[int, float]] = {}
    for line in lines:
        if not line["faults"]:
            point = Point(**line["point"])
            found.setdefault(replace(point, repetition=1), {})[point.repetition] = line["MBps"]
    return {point: [values[n] for n in sorted(values)] for point, values in found.items()}


def tables(lines: Lines) -> str:
    """Return medians with their ranges, a table for each setting."""
    found = used(lines)
    settings: dict[str, dict[str, dict[int, str]]] = {}
    for point, values in found.items():
        who = f"{point.control}, alpha {point.alpha}" if point.alpha else point.control
        at = point.burst_kib or point.connections
        text = f"{statistics.median(values):.2f}"
        if len(values) > 1:
            text += f" ({min(values):.2f} to {max(values):.2f})"
        settings.setdefault(setting(point), {}).setdefault(who, {})[at] = text
    texts = []
    for name, rows in settings.items():
        places = sorted({at for row in rows.values() for at in row})
        cells = [[who, *(row.get(at, "") for at in places)] for who, row in sorted(rows.items())]
        texts.append(f"{name}\n\n{table(['MB/s', *map(str, places)], cells)}")
    marked = sum(bool(line["faults"]) for line in lines)
    return "\n\n".join([*texts, f"{len(lines)} runs, {marked} of them not honoured by the emulator and not used"])


def setting(point: Point) -> str:
    """Name what a table's points have in common."""
    window = f"windows of {point.window_kib} KiB" if point.window_kib else "windows as the kernel tunes them"
    requests = f"{point.depth} requests of {point.request_kib} KiB, {point.reads} % reads"
    by = "MaxBurstLength in KiB" if point.burst_kib else "connections"
    return f"queue of {point.queue} packets, {window}, {requests}, {point.seconds} s, by {by}"


def orders(lines: Lines) -> str:
    """Return what each setting that is complete says of the claim's statements, by FAST's alpha.

    A setting of which a point was measured once says nothing: one run has no range.
    """
    claim = find("iscsi").claim(CLAIM)
    columns: dict[str, list[str]] = {}
    for point, curves in by_setting(lines):
        try:
            checks = judge(claim, measured_of(spreads_of(curves))).orders
        except KeyError:
            continue
        repetitions = {len(values) for points in curves.values() for values in points.values()}
        if min(repetitions) > 1:
            columns[f"{short(point)}, {spread(sorted(repetitions), 'd')}"] = [SAID[check.outcome] for check in checks]
    rows = [[order.label, *(column[number] for column in columns.values())] for number, order in enumerate(claim.order)]
    return table(["statement; setting, alpha, repetitions", *columns], rows)


SAID = {Outcome.HOLDS: "holds", Outcome.NOT_DECIDED: "open", Outcome.BROKEN: "not so"}


def by_setting(lines: Lines) -> Iterator[tuple[Point, dict[str, dict[int, list[float]]]]]:
    """Give each setting with each of FAST's alphas: a point of FAST's, and MB/s by congestion control and connections,
    over repetitions.
    """
    found = used(lines)
    for first in found:
        if first.control == "fast" and first.connections == CONNECTIONS[0] and not first.burst_kib:
            curves: dict[str, dict[int, list[float]]] = {cc: {} for cc in CCS}
            for point, values in found.items():
                alpha = first.alpha if point.control == "fast" else 0
                if point == replace(first, control=point.control, connections=point.connections, alpha=alpha):
                    curves[point.control][point.connections] = values
            yield first, curves


def short(point: Point) -> str:
    """Name a setting and FAST's alpha in few words."""
    window = f", {point.window_kib} KiB windows" if point.window_kib else ""
    requests = "" if (point.request_kib, point.depth) == (64, 32) else f", {point.depth} x {point.request_kib} KiB"
    reads = "" if point.reads == 50 else f", {point.reads} % reads"
    return f"{point.queue} packets{window}{requests}{reads}, {point.alpha}"


def reference(lines: Lines) -> str:
    """Return the lines of claims.toml's reference: the base set, a number per repetition."""
    for point, curves in by_setting(lines):
        if point == replace(STAGES["base"][1], seconds=point.seconds):
            texts = [
                f"{cc}_{n} = [{', '.join(f'{value:.2f}' for value in curves[cc][n])}]"
                for n, cc in product(CONNECTIONS, CCS)
            ]
            return "\n".join(texts)
    raise InputError("no base set is there: run --stages base first")


def write_csv(lines: Lines, file: Path) -> None:
    """Write all runs, one a row, those that do not count marked."""
    names = [field.name for field in fields(Point)]
    heads = [*names, "MBps", "reads_MBps", "writes_MBps", "drops_forth", "drops_back", "resent", "timeouts"]
    heads += [*KEPT, "busy_share", "steal_share", "waited_share", "honoured", "date", "kernel", "version"]
    with file.open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(heads)
        for line in sorted(lines, key=lambda line: [str(line["point"][name]).zfill(9) for name in names]):
            sides = line["tcp"]
            counted = [sum(side[name] for side in sides) for name in ("TcpRetransSegs", "TcpExtTCPTimeouts")]
            rates = [f"{line[name]:.3f}" for name in ("MBps", "reads_MBps", "writes_MBps")]
            emulator = [f"{line['emulator'][name]:.3g}" for name in KEPT]
            machine = [line["machine"][name] for name in ("busy_share", "steal_share", "waited_share")]
            about = ["no" if line["faults"] else "yes", line["date"], line["kernel"], line["version"]]
            point = [line["point"][name] for name in names]
            rows.writerow([*point, *rates, *line["queue_drops"], *counted, *emulator, *machine, *about])


def main() -> None:
    """Measure what is left, or print what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=120, help="of a run (default: 120)")
    parser.add_argument("--repetitions", type=int, default=5, help="of each, measured or printed (default: 5)")
    parser.add_argument("--stages", default=",".join(STAGES), help=f"of {', '.join(STAGES)} (default: all)")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="emulated paths at a time (default: 1)")
    parser.add_argument("--minutes", type=float, help="begin no run that would end later than this (default: no limit)")
    parser.add_argument("--out", type=Path, default=OUT, help=f"file of the runs (default: {OUT.relative_to(ROOT)})")
    parser.add_argument("--table", action="store_true", help="measure nothing; print medians and ranges")
    parser.add_argument("--orders", action="store_true", help="measure nothing; print what holds of the claim")
    parser.add_argument("--toml", action="store_true", help="measure nothing; print lines for claims.toml")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="measure nothing; write all runs as CSV")
    arguments = parser.parse_args()
    stages = arguments.stages.split(",")
    if unknown := set(stages) - set(STAGES):
        parser.error(f"--stages {','.join(sorted(unknown))}: expected some of {', '.join(STAGES)}")
    lines = lines_of(arguments.out)
    shown, cut = whole([line for line in lines if line["point"]["repetition"] <= arguments.repetitions])
    if arguments.table or arguments.orders or arguments.toml:
        print(*(f"cut short, left out: {one}" for one in cut), sep="\n", file=sys.stderr)
    if arguments.csv:
        write_csv(lines, arguments.csv)
    elif arguments.table:
        print(tables(shown))
    elif arguments.orders:
        print(orders(shown))
    elif arguments.toml:
        print(reference(shown))
    else:
        left = to_do(grid(stages, arguments.repetitions, arguments.seconds), lines)
        until_s = None if arguments.minutes is None else time.monotonic() + 60 * arguments.minutes
        run(left, arguments.out, arguments.at_once, until_s)


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.performance.iscsi_path", main))
