"""200 pairs of N_Ports over one path: rate, fairness, latency, and the simulator's own speed."""

from __future__ import annotations

from typing import Any

from elephan import units
from elephan.record import Record
from elephan.report.draw import Ink, frame
from evaluation.gateways.section import Picture, Section, jobs, number, payload
from evaluation.markdown import table
from evaluation.runner import Runner

FILE = "pairs.toml"
PAIRS = 200
TUNNEL = 8
"""Connections of the FCIP tunnel."""

SETUPS = {
    f"iFCP, {PAIRS} connections": {"flow.connections": PAIRS, "flow.workload.protocol": "ifcp"},
    f"FCIP, {TUNNEL} connections": {"flow.connections": TUNNEL, "flow.workload.protocol": "fcip"},
}

Found = dict[tuple[str, int], Record]
"""Record by set-up and load of a pair, bit/s."""


def measure(runner: Runner, changes: dict[str, Any] | None = None) -> Found:
    """Run both protocols at both loads."""
    found: Found = {}
    for name, own in SETUPS.items():
        for record in runner.run(jobs(FILE, own | (changes or {}))):
            workload = record.spec["flows"][0]["workload"]
            assert workload["kind"] == "fc"
            found[name, workload["load"]["rate_bps"]] = record
    return found


def frames_per_s(record: Record) -> float:
    """Return the simulator's speed: frames that reached their N_Port per second of processor time."""
    return number(record, "fc_frames") / number(record, "cpu_s")


def section(found: Found) -> Section:
    """Return the part of the page."""
    rows = []
    for (name, load), record in found.items():
        rows.append(
            [
                f"{name}, {PAIRS * load / 8e6:,.0f} MB/s offered",
                f"{payload(record):,.0f}",
                f"{100 * number(record, 'line_share'):.1f} %",
                f"{number(record, 'jain_index'):.3f}",
                *(f"{1000 * number(record, name):.1f}" for name in ("latency_p50_s", "latency_p99_s")),
                f"{number(record, 'retransmitted_segments'):,.0f}",
                units.duration(number(record, "cpu_s") / number(record, "simulated_s")),
                f"{frames_per_s(record):,.0f}",
            ]
        )
    heads = ["", "payload, MB/s", "TCP's share of the line", "Jain's index", "p50, ms", "p99, ms", "sent again"]
    heads += ["processor time per simulated second", "frames per second of it"]
    text = f"""{PAIRS} pairs of 8GFC ports share a path of 10 Gbit/s and 20 ms with a queue of one bandwidth-delay
product, under CUBIC. They offer less than the path carries, or half as much again. Jain's index is of the connections:
with iFCP of the pairs, with FCIP of a tunnel's connections that carry {PAIRS // TUNNEL} pairs each. Two seconds after
one of warm-up.

{table(heads, rows)}
"""
    return Section(f"{PAIRS} pairs over one path of 10 Gbit/s", text, _picture(found))


def _picture(found: Found) -> Picture:
    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2)
        for axes, title in ((left, "goodput of each iFCP pair, MB/s"), (right, "its frame latency p99, ms")):
            frame(axes, ink)
            axes.set_title(title, loc="left", color=ink.text, fontsize=9)
            axes.set_xlabel("pairs, from least to most", color=ink.muted, loc="right", labelpad=2)
        for index, ((name, load), record) in enumerate(found.items()):
            if not name.startswith("iFCP"):
                continue
            label = f"{PAIRS * load / 8e6:,.0f} MB/s offered"
            rates = sorted(float(flow["goodput_bps"]) / 8e6 for flow in record.flows)
            waits = sorted(1000 * float(flow["latency_p99_s"]) for flow in record.flows)
            left.plot(rates, color=ink.curve(index), label=label)
            right.plot(waits, color=ink.curve(index), label=label)
        for axes in (left, right):
            axes.set_ylim(bottom=0)
            axes.legend(frameon=False, labelcolor=ink.text, fontsize=8)

    return Picture("gateways-pairs", "Goodput and latency of 200 pairs", draw)
