"""`python -m evaluation.performance.cost`: CPU time per delivered packet by window, flows, hops and simulated time.

Writes docs/results/cost.md and its picture. Each point is one flow or many over a line that is always full; runs of two
lengths are subtracted, so that start and slow start do not count, and the least of several is taken: other work on the
machine only adds. Instructions and cache misses come from cachegrind, by two runs as well.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.markdown import filled, table
from evaluation.performance.cachegrind import FIRST_DATA_CACHE, SECOND_CACHE, Counts, counted
from evaluation.performance.dumbbell import NS_PER_S, PACKET_BYTES, Dumbbell, link, run_spec
from evaluation.performance.engines import ROOT, build_elephan, output_of
from evaluation.requirements import exit_code, require

PAGE = ROOT / "docs" / "results" / "cost.md"
IMAGE = ROOT / "docs" / "img" / "cost.png"
COMMAND = "python -m evaluation.performance.cost"
PACKETS = 4_000_000
"""Delivered packets of the shorter run; the longer one delivers twice as many."""
COUNTED_PACKETS = 500_000
"""The same under cachegrind, which takes a hundred times as long and whose counts do not vary."""
LEAST_WINDOWS = 8
"""Windows that a run delivers at least: the first ones are not like the others."""
RTT_NS = 10_000_000
ENGINES = ("horizons", "events")
"""The engine that a run gets, and single events."""

COLUMNS = ["ns per packet", "single events, ns", "times", "instructions", "misses, first cache", "second"]

TEXT = """# Cost of a packet

<!-- Written by `{command}`; do not edit. -->

CPU time per delivered data packet of a full line, with its part of the ACKs: by the engine that the run gets, and by
single events, the oracle of the tests (docs/design/simulator.md). {cpu}, {date}, one core; the least of {turns} turns.
Instructions and misses of data are those of the first column's runs in cachegrind, with a first cache of {first} KiB
and a second of {second} KiB.

{tables}

![CPU time per packet](../img/cost.png)

{words}
"""


def dumbbell(packets: int, window: int = 4_096, flows: int = 1) -> Dumbbell:
    """Return a dumbbell that delivers about so many packets, with a window of so many in all."""
    rate = window * PACKET_BYTES * 8 * NS_PER_S // RTT_NS
    return Dumbbell(
        rate_bps=rate,
        rtt_ns=RTT_NS,
        duration_ns=packets * PACKET_BYTES * 8 * NS_PER_S // rate,
        flows=flows,
        congestion_control="reno",
        window_bytes=min(65_535 << 14, max(4_096, 2 * window // flows * PACKET_BYTES)),
    )


def with_hops(spec: dict[str, Any], hops: int) -> dict[str, Any]:
    """Return a dumbbell of one flow with `hops` equal links in place of the bottleneck's one, each way."""
    for index, route in ((0, "route"), (1, "return_route")):
        first = spec["links"][index]
        first["delay_ns"] //= hops
        end, line = first["to"], [index]
        for number in range(1, hops):
            spec["nodes"].append(f"router{len(spec['nodes'])}")
            before = spec["links"][line[-1]]
            before["to"] = len(spec["nodes"]) - 1
            line.append(len(spec["links"]))
            name, values = f"{first['name']}, {number}", (first["rate_bps"], first["delay_ns"], first["queue"])
            spec["links"].append(link(name, before["to"], end, *values))
        path = spec["flows"][0][route]
        spec["flows"][0][route] = [path[0], *line, path[2]]
    return spec


def cpu_s(program: Path, spec: dict[str, Any], engine: str) -> tuple[float, int]:
    """Return CPU seconds and delivered packets of a run."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(spec, file)
        file.flush()
        more = [] if engine == "horizons" else [engine]
        line = json.loads(output_of([str(program), file.name, *more]))
    return line["cpu_s"], line["delivered_packets"]


def cost_ns(program: Path, spec_of: Callable[[int], dict[str, Any]], window: int, engine: str, turns: int) -> float:
    """Return CPU ns per packet, from runs of two lengths that are long for a window of so many packets."""
    least = max(PACKETS, LEAST_WINDOWS * window)
    runs = [[cpu_s(program, spec_of(packets), engine) for packets in (least, 2 * least)] for _ in range(turns)]
    short, long = (min(turn[which][0] for turn in runs) for which in (0, 1))
    packets = runs[0][1][1] - runs[0][0][1]
    return 1e9 * (long - short) / packets


def counts_of_packet(program: Path, spec_of: Callable[[int], dict[str, Any]], window: int) -> Counts:
    """Return instructions and misses per packet, from runs of two lengths that are long for a window of so many."""
    least = max(COUNTED_PACKETS, LEAST_WINDOWS * window)
    (short, few), (long, many) = (counted(program, spec_of(packets)) for packets in (least, 2 * least))
    return long.per_packet(short, many - few)


Specification = Callable[[int], dict[str, Any]]
"""The specification of a run that delivers about so many packets."""


def of_window(window: int, packets: int) -> dict[str, Any]:
    """Return a run of one flow that begins with the whole window: slow start to the largest would take long."""
    spec = run_spec(dumbbell(packets, window=window))
    spec["flows"][0]["transport"] |= {"initial_cwnd": window, "initial_ssthresh": window}
    return spec


def of_flows(flows: int, packets: int) -> dict[str, Any]:
    """Return a run of many flows, each with at least 40 packets in its window."""
    return run_spec(dumbbell(packets, window=packets_in_flight("flows", flows), flows=flows))


def packets_in_flight(name: str, value: int) -> int:
    """Return the window in all of a point of series `name`."""
    return {"window": value, "flows": max(4_096, 40 * value)}.get(name, 4_096)


def of_hops(hops: int, packets: int) -> dict[str, Any]:
    """Return a run of one flow over more links."""
    return with_hops(run_spec(dumbbell(packets)), hops)


def series() -> Iterator[tuple[str, str, list[tuple[int, Specification]]]]:
    """Yield the name of each series, its axis, and its points with their specifications."""
    windows, counts, hops = [10, 100, 1_000, 10_000, 100_000, 1_000_000], [1, 10, 100, 1_000, 10_000], [1, 2, 4, 8, 16]
    yield "window", "packets", [(value, partial(of_window, value)) for value in windows]
    axis = "number, 40 packets of window each, at least 4,096 in all"
    yield "flows", axis, [(value, partial(of_flows, value)) for value in counts]
    yield "hops", "links between the access links, each way", [(value, partial(of_hops, value)) for value in hops]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="runs of each point (%(default)s)")
    arguments = parser.parse_args()
    require({"valgrind": "valgrind"})
    program = build_elephan()
    found: dict[str, list[list[float]]] = {}
    for name, _, points in series():
        found[name] = []
        for value, spec_of in points:
            window = packets_in_flight(name, value)
            row = [float(value), *(cost_ns(program, spec_of, window, engine, arguments.turns) for engine in ENGINES)]
            counts = counts_of_packet(program, spec_of, window)
            row += [counts.instructions, counts.first_misses, counts.second_misses]
            found[name].append(row)
            print(name, *(f"{number:,.1f}" for number in row), file=sys.stderr)
    lengths = []
    for factor in (1, 4, 16):
        runs = [cpu_s(program, run_spec(dumbbell(factor * PACKETS // 4)), "horizons") for _ in range(arguments.turns)]
        lengths.append([factor * PACKETS / 4, 1e9 * min(run[0] for run in runs) / runs[0][1]])
    write(found, lengths, arguments.turns)


def write(found: dict[str, list[list[float]]], lengths: list[list[float]], turns: int) -> None:
    """Write page and picture."""
    import datetime

    from elephan.backends.host import cpu_model

    axes = {name: axis for name, axis, _ in series()}
    tables = [
        f"## By {name} ({axes[name]})\n\n"
        + table([name, *COLUMNS], [shown(row) for row in rows])
        for name, rows in found.items()
    ]
    rows = [[f"{packets:,.0f}", f"{cost:.1f}"] for packets, cost in lengths]
    tables.append("## By simulated time (packets of one run, start and all)\n\n" + table(["packets", "ns each"], rows))
    text = TEXT.format(
        command=COMMAND,
        cpu=cpu_model(),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        turns=turns,
        first=kib(FIRST_DATA_CACHE),
        second=kib(SECOND_CACHE),
        tables="\n\n".join(tables),
        words=WORDS,
    )
    PAGE.write_text(filled(text), encoding="utf-8")
    draw(found, axes)


WORDS = """
Flat from 1,000 to a million packets in the window, and over simulated time. Not flat, and why:

- **Ten packets in the window**: a horizon holds few, so that its beginning counts.
- **Flows**: packets of several meet at the shared link and are sorted there, each way. With a hundred or more each has
  a few packets in a horizon: the steps around a run of them count, and the state of flows comes from the third cache
  or from memory.
- **Hops**: each is one more pass over an array, for data and for ACKs.
""".strip()


def shown(row: list[float]) -> list[str]:
    """Return a row as text."""
    value, horizons, events, instructions, first, second = row
    times = [f"{horizons:.1f}", f"{events:.1f}", f"{events / horizons:.1f}"]
    misses = [f"{max(0.0, of_it):.1f}" for of_it in (first, second)]
    return [f"{value:,.0f}", *times, f"{instructions:.0f}", *misses]


def kib(cache: str) -> int:
    """Return the size of a cache as cachegrind takes it."""
    return int(cache.split(",")[0]) // 1024


def draw(found: dict[str, list[list[float]]], axes: dict[str, str]) -> None:
    """Draw all series."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import EngFormatter

    figure, panels = plt.subplots(1, len(found), figsize=(10, 3.2), sharey=True, layout="constrained")
    for panel, (name, rows) in zip(panels, found.items(), strict=True):
        values = [row[0] for row in rows]
        for column, label in ((1, "horizons"), (2, "single events")):
            panel.plot(values, [row[column] for row in rows], marker="o", label=label)
        panel.set(xscale="log", xlabel=f"{name}\n({axes[name].split(',')[0]})")
        panel.set_xticks(values, [EngFormatter(sep="")(value) for value in values])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("CPU time per packet, ns")
    panels[0].set_ylim(bottom=0)
    panels[0].legend()
    figure.savefig(IMAGE, dpi=110)


if __name__ == "__main__":
    sys.exit(exit_code(COMMAND, main))
