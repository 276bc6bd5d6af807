"""Head-of-line blocking: the latency of frames that wait for what another pair of N_Ports lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elephan.record import Record
from elephan.report.draw import Ink, frame
from elephan.run_spec.quantities import loss_rate
from evaluation.gateways.section import Picture, Section, jobs, mean
from evaluation.markdown import table
from evaluation.runner import Runner

FILE = "head-of-line.toml"
PAIRS = 32

SETUPS = {"FCIP, 1 connection": 1, "FCIP, 4 connections": 4, "FCIP, 16 connections": 16, "iFCP, 1 for each pair": PAIRS}
"""Connections by name; all but the last are tunnels."""

PERCENTILES = {"p50": "latency_p50_s", "p95": "latency_p95_s", "p99": "latency_p99_s", "max": "latency_max_s"}

Found = dict[tuple[str, float], list[Record]]
"""Repetitions by set-up and loss rate."""


def measure(runner: Runner, changes: dict[str, Any] | None = None) -> Found:
    """Run every set-up at every loss rate."""
    found: Found = {}
    for name, connections in SETUPS.items():
        protocol = "ifcp" if connections == PAIRS else "fcip"
        own = {"flow.connections": connections, "flow.workload.protocol": protocol} | (changes or {})
        for record in runner.run(jobs(FILE, own)):
            found.setdefault((name, loss_rate(record.spec["links"][0]["loss"])), []).append(record)
    return found


def untouched(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the connections on which nothing was lost."""
    return [flow for record in records for flow in record.flows if flow["dropped_packets"] == 0]


def section(found: Found) -> Section:
    """Return the part of the page."""
    rows = []
    for (name, loss), records in found.items():
        latencies = [f"{1000 * mean(records, metric):.1f}" for metric in PERCENTILES.values()]
        clean = untouched(records)
        connections = sum(len(record.flows) for record in records)
        worst = max((1000 * float(flow["latency_max_s"]) for flow in clean), default=None)
        rows.append(
            [
                f"{name}, loss {loss:.0e}".replace("e-0", "e-"),
                *latencies,
                f"{len(clean)} of {connections}",
                "" if worst is None else f"{worst:.1f}",
            ]
        )
    heads = ["", *(f"{name}, ms" for name in PERCENTILES), "connections without loss", "their max, ms"]
    text = f"""{PAIRS} pairs offer 16 MB/s in all, at random times, to a path of 1 Gbit/s and 50 ms. A lost packet keeps
back every later frame of its TCP connection until it is sent again, a round trip and more later. In a tunnel these are
the frames of all pairs that share the connection; with iFCP they are the pair's own. So the share of frames that wait
falls with the number of connections, and a pair with a connection of its own that loses nothing waits for nobody.

Times are from a frame's generation to its last bit at the far port; mean of three seeds. They are of all frames: the
lost ones themselves are one in 5,000 at a loss of 1e-4. Of those that wait behind them, the pairs that lost nothing
have 31 of 32 in a tunnel of one connection, 7 of 8 with 4, and half with 16: the columns are what such a pair sees,
with 16 connections at most. With iFCP none of its frames wait: the last columns are of connections that lost nothing.
The congestion control keeps its window at a loss (storage-friendly, both), so that nothing waits for a window.

{table(heads, rows)}
"""
    return Section("Whose frames wait for a lost packet?", text, _picture(found))


def _picture(found: Found) -> Picture:
    losses = sorted({loss for _, loss in found})

    def draw(drawing: Any, ink: Ink) -> None:
        panels = drawing.subplots(1, len(losses), sharey=True, squeeze=False)[0]
        for axes, loss in zip(panels, losses, strict=True):
            frame(axes, ink)
            axes.set_title(f"loss {loss:.0e}".replace("e-0", "e-"), loc="left", color=ink.text, fontsize=9)
            for index, name in enumerate(SETUPS):
                records = found[name, loss]
                values = [1000 * mean(records, metric) for metric in PERCENTILES.values()]
                axes.plot(range(len(values)), values, "o-", color=ink.curve(index), label=name, markersize=4)
            clean = untouched(found["iFCP, 1 for each pair", loss])
            if clean:
                values = [max(1000 * float(flow[metric]) for flow in clean) for metric in PERCENTILES.values()]
                label = "iFCP, worst pair that lost nothing"
                axes.plot(range(len(values)), values, "--", color=ink.text, linewidth=1.0, label=label)
            axes.set_xticks(range(len(PERCENTILES)))
            axes.set_xticklabels(PERCENTILES)
        panels[0].set_ylim(0, 120)
        panels[0].set_ylabel("frame latency, ms", color=ink.muted)
        labels: dict[str, Any] = {}
        for axes in panels:
            labels |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        drawing.legend(
            labels.values(), labels, loc="outside lower left", ncols=3, frameon=False, labelcolor=ink.text, fontsize=8
        )

    return Picture("gateways-head-of-line", "Frame latency by protocol, connections and loss", draw)
