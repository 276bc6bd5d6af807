"""Writes docs/results/performance.md from the history's last complete line; every number on it was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from evaluation.markdown import filled, table
from evaluation.performance.engines import PEERS, ROOT

PAGE = ROOT / "docs" / "results" / "performance.md"

SKELETON_GOALS = {"W1": 1.0, "W2": 1.3, "W3": 1.1, "W4": 1.2, "W5a": 1.0, "W5b": 0.5}
"""Least ratio of rates to the skeleton's."""
PEER_GOALS = {"W2": {"over_ns-2": 50, "over_ns-3": 2_500}, "W3": {"over_ns-2": 35}}
"""Least ratio of rates to those of other simulators."""
REAL_TIME_GOALS = {"W5a": 2.0}
"""Least simulated time over CPU time."""
HALF_OF_W2 = "W5b"
"""It has at least half of W2's rate."""
OWN_RATE_GOALS = {"W6": 5_900_000}
"""Delivered packets per CPU second: twice the 2,943,249 with which W6 began, at commit 9ee68b72 on the AMD EPYC of
docs/results/performance.md (median of five runs)."""
MEMORY_GOALS = {"W1": 100, "W2": 100, "W3": 100, "W4": 100, "W5a": 120, "W5b": 120}
"""Most bytes per packet in flight beyond the base."""
CORES_GOALS = {"W5b": ("W7", 1.6)}
"""Name of the workload on two cores, and how many times as fast it is than on one at least."""
SERIES_GOAL = 0.05
"""Extra CPU time for series at 10 ms."""

TEMPLATE = """\
# Speed: how fast is the simulator?

Delivered data packets per second of CPU time, one core, by `make bench` on {date} at
commit `{commit}`{changed}: {cpu}, {cores} cores, Linux {kernel}, rustc {rustc}. Generated; every run is a line of
`evaluation/performance/history.jsonl`.

{goals}

{rates}

elephan and the skeleton: median of several whole runs in turn. The peers run once, for a bounded CPU time, and count
from when their window got full, because their cost per packet grows with it; a star: it did not get full, and the true
rate is lower. Where that CPU time ended before the run, the rate is that of its beginning: on W4 ns-2 repairs losses of
its first overshoot until 3.4 s and more, at a fraction of its later rate. Peers: {versions}. Their runs: {parts}.
`evaluation/performance/skeleton.rs` has three FIFO hops each way, an ACK per two packets, one pending event per link, a
fixed window and no TCP: the limit of a simulator of this form. Other work on the machine moves both; their ratio stays.

## What else it costs

{costs}

*over real time*: simulated seconds per CPU second. *two cores*: time on the clock of one core over that of two.
*series*: extra CPU time for cwnd, ssthresh, RTT, goodput and queue every 10 ms. *memory*: peak resident memory less
that of the same hosts and links with an almost empty window, per packet in flight; *in flight*: most packets
outstanding at a time.

## On other days

{history}

Each row is a run of `make bench`: the rate of the skeleton, which tells how fast the machine was, elephan's as a share
of it, and how many times as fast as ns-2 it was. On 2026-11-27 the machine slowed ns-2 down more than elephan. Days
differ in the machine as well as in elephan: only neighbours on one processor tell of elephan alone.

## Workloads

Packets of 1500 bytes, drop-tail queue of one bandwidth-delay product, SACK, delayed ACKs, timestamps, three hops each
way, access links four times the bottleneck, as `evaluation/performance/workloads.toml` and, for the peers,
`evaluation/performance/peers/ns2_dumbbell.tcl` and `evaluation/performance/peers/ns3_dumbbell.cc` (optimized) say.
CUBIC runs without HyStart, so that the window gets full; ns-3 keeps it, because the overshoot alone would take it
minutes. Sessions (W6) read and write: their data packets of both directions count.

{workloads}
"""


def write_page(history: Path) -> None:
    """Rewrite docs/results/performance.md from the last line of the history."""
    lines = [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines()]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(filled(page(lines)), encoding="utf-8")


def page(lines: Sequence[dict[str, Any]]) -> str:
    """Return the page for the last line of the history, with the speed on the days of the others."""
    line = lines[-1]
    workloads = line["workloads"]
    return TEMPLATE.format(
        date=line["date"][:10],
        commit=line["commit"],
        changed=" with changes not committed" if line["changed"] else "",
        cpu=line["cpu"],
        cores=line["cores"],
        kernel=line["kernel"],
        rustc=line["rustc"],
        versions=", ".join(line["versions"].values()) or "none was run",
        goals=goals_text(workloads),
        rates=rates_table(workloads),
        parts=peers_parts(workloads),
        costs=costs_table(workloads),
        history=history_table(lines),
        workloads="\n".join(f"- **{entry['name']}**: {entry['what']}." for entry in workloads),
    )


def goals_text(workloads: list[dict[str, Any]]) -> str:
    """Return the number of goals that this run reaches, and the others with what it has instead."""
    missed = [text for text, reached in goals(workloads) if not reached]
    count = len(list(goals(workloads)))
    if not missed:
        return f"All {count} goals that could be judged in this run are reached."
    values: dict[str, list[str]] = {}
    for text in missed:
        name, _, rest = text.partition(": ")
        goal, _, value = rest.rpartition("; is ")
        values.setdefault(goal, []).append(f"{name} {value}")
    head = f"{count - len(missed)} of {count} goals that could be judged in this run are reached. These are not:"
    return "\n".join([head, "", *(f"- {goal}: {', '.join(of_goal)}" for goal, of_goal in values.items())])


def goals(workloads: list[dict[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Yield each goal with its measurement, and whether it is reached."""
    of_w2 = ours_in(find(workloads, "W2"))
    half_of_w2 = of_w2["packets_per_cpu_s"] / 2 if of_w2 else None
    for entry in workloads:
        name, ours = entry["name"], ours_in(entry)
        if ours is None:
            continue
        speed = ours["packets_per_cpu_s"]
        if name == HALF_OF_W2 and half_of_w2 is not None:
            text = f"{name}: at least half of W2's rate, {half_of_w2:,.0f} packets per CPU second; is {speed:,.0f}"
            yield text, speed >= half_of_w2
        if name in OWN_RATE_GOALS:
            least_rate = OWN_RATE_GOALS[name]
            yield f"{name}: at least {least_rate:,} packets per CPU second; is {speed:,.0f}", speed >= least_rate
        ratios = PEER_GOALS.get(name, {}) | ({"over_skeleton": SKELETON_GOALS[name]} if name in SKELETON_GOALS else {})
        for key, least in ratios.items():
            if key in entry:
                engine = key.removeprefix("over_")
                yield f"{name}: at least {least:,} times the rate of {engine}; is {entry[key]:.3g}", entry[key] >= least
        if name in REAL_TIME_GOALS:
            least, value = REAL_TIME_GOALS[name], entry["over_real_time"]
            yield f"{name}: at least {least:g} times faster than real time; is {value:.2g}", value >= least
        if name in CORES_GOALS and "by_two_cores" in entry:
            (own_name, least), value = CORES_GOALS[name], entry["by_two_cores"]
            yield f"{own_name}: {name} on two cores at least {least:g} times as fast; is {value:.2f}", value >= least
        if "bytes_per_packet_in_flight" in entry and name in MEMORY_GOALS:
            most, size = MEMORY_GOALS[name], entry["bytes_per_packet_in_flight"]
            yield f"{name}: at most {most} bytes per packet in flight; is {size:.0f}", size <= most
        if "series_cost" in entry:
            cost = entry["series_cost"]
            yield f"{name}: series at 10 ms cost less than 5 %; is {100 * cost:.0f} %", cost < SERIES_GOAL


def ours_in(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Return elephan's result of a workload."""
    return result(entry, "elephan")


def rates_table(workloads: list[dict[str, Any]]) -> str:
    """Rates of all engines and elephan's ratio to each."""
    head = ["", "elephan", "events/s", "skeleton", "of skeleton", "ns-2", "times ns-2", "ns-3", "times ns-3"]
    rows = []
    for entry in workloads:
        ours = result(entry, "elephan")
        events = f"{ours['events'] / ours['cpu_s']:,.0f}" if ours else "-"
        rows.append(
            [
                entry["name"],
                rate(ours),
                events,
                rate(result(entry, "skeleton")),
                share(entry.get("over_skeleton")),
                rate(result(entry, "ns-2")),
                times(entry.get("over_ns-2")),
                rate(result(entry, "ns-3")),
                times(entry.get("over_ns-3")),
            ]
        )
    return table(head, rows)


def peers_parts(workloads: list[dict[str, Any]]) -> str:
    """Return which simulated part of each workload each peer ran, as text."""
    texts = []
    for peer in PEERS:
        found = [(entry["name"], result(entry, peer)) for entry in workloads]
        parts = [f"{name} {entry['note'].partition(';')[0]}" for name, entry in found if entry and "note" in entry]
        if parts:
            texts.append(f"{peer} {', '.join(parts)}")
    return "; ".join(texts) or "none"


def costs_table(workloads: list[dict[str, Any]]) -> str:
    """Real time, series and memory."""
    rows = []
    for entry in workloads:
        ours = result(entry, "elephan")
        if ours is None:
            continue
        rows.append(
            [
                entry["name"],
                times(entry.get("over_real_time")),
                f"{entry['by_two_cores']:.2f} x" if "by_two_cores" in entry else "-",
                share(entry.get("series_cost")),
                f"{entry['bytes_per_packet_in_flight']:.0f} B/packet" if "bytes_per_packet_in_flight" in entry else "-",
                f"{entry['in_flight_packets']:,}" if "in_flight_packets" in entry else "-",
                f"{ours['peak_rss_bytes'] / 1e6:,.1f} MB" if "peak_rss_bytes" in ours else "-",
            ]
        )
    return table(["", "over real time", "two cores", "series", "memory", "packets in flight", "peak"], rows)


def history_table(lines: Sequence[dict[str, Any]]) -> str:
    """The skeleton's rate, elephan's share of it and its ratio to ns-2 in each run."""
    rows = []
    for line in lines:
        entries = [find(line["workloads"], name) for name in SKELETON_GOALS]
        rates = [found["packets_per_cpu_s"] for entry in entries if (found := result(entry, "skeleton"))]
        speed = f"{median(rates):,.0f}" if rates else "-"
        shares = [share(entry.get("over_skeleton")) for entry in entries]
        of_peer = [times(find(line["workloads"], name).get("over_ns-2")) for name in PEER_GOALS]
        rows.append([line["date"][:10], f"`{line['commit']}`", line["cpu"], speed, *shares, *of_peer])
    over_peer = [f"{name}, times ns-2" for name in PEER_GOALS]
    return table(["", "commit", "processor", "skeleton", *SKELETON_GOALS, *over_peer], rows)


def find(workloads: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the entry of a workload, one without results where it was not run."""
    return next((entry for entry in workloads if entry["name"] == name), {"results": []})


def result(entry: dict[str, Any], engine: str) -> dict[str, Any] | None:
    """Return an engine's result of a workload."""
    return next((found for found in entry["results"] if found["engine"] == engine), None)


def rate(found: dict[str, Any] | None) -> str:
    """Return a rate as text, with a mark where it is an upper bound."""
    if found is None or not found["packets_per_cpu_s"]:
        return "-"
    return f"{found['packets_per_cpu_s']:,.0f}" + (" \\*" if "slower still" in found.get("note", "") else "")


def share(value: float | None) -> str:
    """Return a part of one in percent."""
    return "-" if value is None else f"{100 * value:.0f} %"


def times(value: float | None) -> str:
    """Return a ratio with the digits that it deserves."""
    if value is None:
        return "-"
    return f"{value:,.0f} x" if value >= 10 else f"{value:.1f} x"
