"""Results of a hybrid network's manager: its move log as a table; over time each flow's path and the loads of the
paths.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from elephan import units
from elephan.record import Record
from elephan.report.figures import Loader
from elephan.report.timeline import flow_line
from elephan.store.series import Series

MOST_LANES = 24
"""Flows drawn; the ledger's table has all."""

MOST_ENTRIES = 200
"""Lines of the ledger's table."""

MOST_RUNS = 4
"""Runs shown."""

WIDTH, LEFT, RIGHT = 1120, 150, 20
LANE, CHART = 20, 130

STATES = ("down", "setting up", "up", "releasing")

WHY = {
    "elephant": "to {}",
    "refused": "refused {}",
    "slow": "back: slow",
    "over": "back: over",
    "preempted": "back: pre-empted",
    "failed": "back: lightpath failed",
}

HEADS = (
    ("at", "When it was decided."),
    ("flow", ""),
    ("what", "Moved to a lightpath, refused, or moved back and why."),
    ("limit", "What limited the flow: A a window, B the sender's line, C the core, D the receiver's line."),
    ("mitigation", "What was done about the move, and what that was to save of its cost."),
    ("rate before", "Mean of the four intervals before, as the manager saw it; ±: standard error by sampling."),
    ("after", "Mean of the watch after it."),
    ("cost forecast", "Data that the flow was to lack after the move."),
    ("cost", "Most by which it lagged behind its rate before, in the watch."),
    ("gain forecast", "What the move was to gain over the rest of the flow, the lightpath's price taken off."),
    ("gain", "Offloaded data at its worth, and what the flow delivered beyond its rate before."),
    ("offloaded", "Data that went over the lightpath."),
    ("drops forecast", "Packets that the merging router was to drop."),
    ("drops", "Packets lost there in the watch, whosesoever."),
    ("kept back forecast", "What the moving router was to keep back, and for how long."),
    ("kept back", "Most that it kept back at once, and for how long it held: D as it knew it."),
    ("RTT", "Mean smoothed RTT of the flow in the watch's length before and in the watch after."),
    ("sent again", "Segments sent again in the watch's length before and in the watch after."),
    ("IP load", "Mean load of the bypassed IP route's slowest link before and after."),
    ("IP wait", "Mean time that a packet waited there before and after."),
)


MITIGATIONS = ("mitigation", "kept back forecast", "kept back")
"""Heads that a manager without mitigations has nothing under."""


@dataclass(frozen=True)
class Managed:
    """One run's manager as the report shows it."""

    title: str
    totals: list[tuple[str, str]]
    lightpaths: list[tuple[str, str]]
    heads: tuple[tuple[str, str], ...]
    rows: list[list[str]]
    left_out: int
    svg: str
    data: str
    """Data of the page's steps, JSON."""


def managed_of(records: Sequence[Record], load: Loader) -> list[Managed]:
    """Return the pages of the first runs that have a manager."""
    found = [record for record in records if record.manager is not None]
    return [_managed(record, load(record), len(found) > 1, number) for number, record in enumerate(found[:MOST_RUNS])]


def _managed(record: Record, series: Series | None, several: bool, number: int) -> Managed:
    manager = record.manager
    assert manager is not None
    swept = ", ".join(f"{key} {value}" for key, value in record.parameters.items())
    ledger = manager["move_log"]
    watch_s = record.spec["manager"]["observation_window_ns"] / 1e9
    places = {flow["name"]: index for index, flow in enumerate(record.flows)}
    rows = [_row(entry, series, places, watch_s) for entry in ledger[:MOST_ENTRIES]]
    shown = [
        i for i, (head, _) in enumerate(HEADS) if record.spec["manager"].get("mitigations") or head not in MITIGATIONS
    ]
    return Managed(
        title=f"{record.backend}, seed {record.seed}{': ' + swept if swept else ''}" if several else "",
        totals=_totals(manager["metrics"]),
        lightpaths=_lightpaths(manager["lightpaths"]),
        heads=tuple(HEADS[i] for i in shown),
        rows=[[row[i] for i in shown] for row in rows],
        left_out=max(0, len(ledger) - MOST_ENTRIES),
        svg=_svg(record, number),
        # "</" would end the script that holds it.
        data=json.dumps(_steps(record)).replace("</", "<\\/"),
    )


def _totals(metrics: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("flows seen", units.count(metrics["flows"])),
        ("moves", f"{units.count(metrics['moves'])}, {units.count(metrics['wasted_moves'])} of them wasted"),
        ("moves back", f"{units.count(metrics['returns'])}, {units.count(metrics['preemptions'])} of them pre-empted"),
        ("refused", units.count(metrics["refusals"])),
        ("set-ups", f"{units.count(metrics['set_ups'])}, {units.count(metrics['wasted_set_ups'])} of them wasted"),
        ("lightpaths that failed", units.count(metrics["failures"])),
        ("offloaded", units.size(metrics["offloaded_bytes"])),
        ("lost their place in the table", units.count(metrics["evictions"])),
    ]


def _lightpaths(lightpaths: list[dict[str, Any]]) -> list[tuple[str, str]]:
    rows = []
    for path in lightpaths:
        sides = [
            f"{what} {units.rate(path[f'ip_load_{key}_bps'])}, wait {units.duration(path[f'ip_wait_{key}_s'])}"
            for key, what in (("idle", "while it carries nothing"), ("carrying", "while it carries"))
            if f"ip_load_{key}_bps" in path
        ]
        rows.append((path["name"], "the bypassed IP route's load " + "; ".join(sides)))
    return rows


def _row(entry: dict[str, Any], series: Series | None, places: dict[str, int], watch_s: float) -> list[str]:
    def show(name: str, how: Callable[[Any], str]) -> str:
        if name not in entry:
            return ""
        stem, _, unit = name.rpartition("_")
        error = entry.get(f"{stem}_error_{unit}")
        return how(entry[name]) + (f" ± {how(error)}" if error else "")

    def pair(before: str, after: str, how: Callable[[Any], str]) -> str:
        return f"{how(entry[before])} → {how(entry[after])}" if after in entry else how(entry[before])

    def kept(size: str, span: str) -> str:
        return f"{units.size(entry[size])}, {units.duration(entry[span])}" if size in entry else ""

    rtt, again = _qos(series, places.get(entry["flow"]), entry["at_s"], watch_s)
    return [
        f"{entry['at_s']:g} s",
        entry["flow"],
        WHY[entry["reason"]].format(entry["lightpath"]),
        entry.get("limit", ""),
        _mitigation(entry),
        show("rate_before_bps", units.rate),
        show("rate_after_bps", units.rate),
        show("forecast_cost_bytes", units.size),
        show("cost_bytes", units.size),
        show("forecast_gain_bytes", units.size),
        show("gain_bytes", units.size),
        show("offloaded_bytes", units.size),
        show("forecast_lost_packets", units.count),
        show("lost_packets", units.count),
        kept("forecast_held_bytes", "forecast_hold_s"),
        kept("held_bytes", "hold_s"),
        rtt,
        again,
        pair("ip_load_before_bps", "ip_load_after_bps", units.rate),
        pair("ip_wait_before_s", "ip_wait_after_s", units.duration),
    ]


def _mitigation(entry: dict[str, Any]) -> str:
    mitigation: str = entry.get("mitigation", "")
    saved = entry.get("mitigation_saves_bytes")
    return f"{mitigation}: saves {units.size(saved)}" if saved else mitigation


def _qos(series: Series | None, flow: int | None, at_s: float, watch_s: float) -> tuple[str, str]:
    """Mean RTT and segments sent again, before and after; empty where the series has nothing of the flow."""
    if flow is None or series is None:
        return "", ""
    rtt = flow_line(series, [flow], "srtt_s", "mean")
    again = flow_line(series, [flow], "retransmitted_segments", "sum")
    texts: list[list[str]] = [[], []]
    for start, end in ((at_s - watch_s, at_s), (at_s, at_s + watch_s)):
        within = rtt.values[(rtt.time_s > start) & (rtt.time_s <= end)]
        if len(within) and not np.all(np.isnan(within)):
            texts[0].append(units.duration(float(np.nanmean(within))))
        counts = again.values[(again.time_s >= start) & (again.time_s <= end)]
        if len(counts):
            texts[1].append(units.count(int(counts[-1] - counts[0])))
    return " → ".join(texts[0]), " → ".join(texts[1])


def stays_of(ledger: list[dict[str, Any]], end_s: float) -> dict[str, list[tuple[float, float, str]]]:
    """Return, by flow, when it was on which lightpath; in the order of first moves."""
    stays: dict[str, list[tuple[float, float, str]]] = {}
    for entry in ledger:
        if entry["reason"] == "elephant":
            stay = (entry["at_s"], entry.get("left_at_s", end_s), entry["lightpath"])
            stays.setdefault(entry["flow"], []).append(stay)
        elif entry["reason"] == "refused":
            stays.setdefault(entry["flow"], [])
    return stays


def _steps(record: Record) -> dict[str, Any]:
    """The timeline by interval, for the page's slider."""
    manager = record.manager
    assert manager is not None
    timeline, names = manager["timeline"], [path["name"] for path in manager["lightpaths"]]
    end_s = max(timeline["time_s"], default=0.0)
    stays = stays_of(manager["move_log"], end_s)
    steps: list[dict[str, Any]] = []
    for row, time_s in enumerate(timeline["time_s"]):
        if timeline["lightpath"][row] == 0:
            on = {flow: next((p for a, b, p in of if a <= time_s < b), "IP") for flow, of in stays.items()}
            events = [
                f"{entry['flow']}: {WHY[entry['reason']].format(entry['lightpath'])}"
                for entry in manager["move_log"]
                if entry["at_s"] == time_s
            ]
            ip = f"{units.rate(timeline['ip_bps'][row])}, wait {units.duration(timeline['ip_wait_s'][row])}"
            steps.append({"t": time_s, "ip": ip, "on": on, "events": events, "paths": []})
        state = STATES[timeline["state"][row]]
        carried = f", {units.rate(timeline['carried_bps'][row])}" if state == "up" else ""
        steps[-1]["paths"].append(f"{names[timeline['lightpath'][row]]}: {state}{carried}")
    return {"end": end_s, "steps": steps, "left": LEFT, "width": WIDTH - LEFT - RIGHT}


def _svg(record: Record, number: int) -> str:
    """Lanes of lightpaths and flows over time, and below them the loads."""
    manager = record.manager
    assert manager is not None
    timeline, names = manager["timeline"], [path["name"] for path in manager["lightpaths"]]
    end_s = max(timeline["time_s"], default=1.0)

    def x(time_s: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * time_s / end_s

    parts: list[str] = []
    y = 8

    def lane(name: str) -> None:
        parts.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>')

    def bar(start_s: float, stop_s: float, style: str, what: str) -> None:
        width = max(1.0, x(stop_s) - x(start_s))
        title = f"<title>{escape(what)}, {start_s:g} s to {stop_s:g} s</title>"
        parts.append(
            f'<rect x="{x(start_s):.1f}" y="{y + 3}" width="{width:.1f}" height="{LANE - 7}" {style}>{title}</rect>'
        )

    by_path = [[row for row, path in enumerate(timeline["lightpath"]) if path == i] for i in range(len(names))]
    for index, name in enumerate(names):
        lane(name)
        for state, start_s, stop_s in _runs(timeline, by_path[index]):
            if state in (1, 2):
                style = f'fill="var(--c{index + 1})"' + ("" if state == 2 else ' fill-opacity=".3"')
                bar(start_s, stop_s, style, STATES[state])
        y += LANE
    stays = stays_of(manager["move_log"], end_s)
    refused = {(entry["flow"], entry["at_s"]) for entry in manager["move_log"] if entry["reason"] == "refused"}
    for flow, of in list(stays.items())[:MOST_LANES]:
        lane(flow)
        parts.append(f'<path d="M{LEFT} {y + 10}H{WIDTH - RIGHT}" stroke="var(--grid)" stroke-width="3"/>')
        for start_s, stop_s, path in of:
            bar(start_s, stop_s, f'fill="var(--c{names.index(path) + 1})"', f"on {path}")
        for name, at_s in refused:
            if name == flow:
                parts.append(f'<text x="{x(at_s):.1f}" y="{y + 14}" text-anchor="middle" fill="var(--warn)">×</text>')
        y += LANE
    top = y + 14
    capacity = max([1, *timeline["ip_bps"], *timeline["carried_bps"]])
    for share in (0, 0.5, 1):
        at = top + CHART * (1 - share)
        parts.append(f'<path d="M{LEFT} {at}H{WIDTH - RIGHT}" stroke="var(--grid)"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4}" text-anchor="end">{units.rate(capacity * share)}</text>')
    lines = [(0, by_path[0], "ip_bps")] + [(i + 1, rows, "carried_bps") for i, rows in enumerate(by_path)]
    for colour, rows, column in lines:
        points = " ".join(
            f"{x(timeline['time_s'][row]):.1f},{top + CHART * (1 - timeline[column][row] / capacity):.1f}"
            for row in rows
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="var(--c{colour})" stroke-width="1.8"/>')
    bottom = top + CHART
    for tick in range(7):
        time_s = end_s * tick / 6
        parts.append(f'<text x="{x(time_s):.1f}" y="{bottom + 16}" text-anchor="middle">{time_s:.4g} s</text>')
    parts.append(f'<path id="cursor{number}" d="M0 4V{bottom}" stroke="var(--ink)" transform="translate({LEFT} 0)"/>')
    return (
        f'<svg viewBox="0 0 {WIDTH} {bottom + 24}" role="img" aria-label="flows, lightpaths and loads over time" '
        f'font-size="12" fill="var(--ink)">{"".join(parts)}</svg>'
    )


def _runs(timeline: dict[str, Any], rows: list[int]) -> list[tuple[int, float, float]]:
    """Stretches of one state: state, start and end. A row tells of the interval that ends with it."""
    runs: list[tuple[int, float, float]] = []
    before_s = 0.0
    for row in rows:
        state, time_s = timeline["state"][row], timeline["time_s"][row]
        if runs and runs[-1][0] == state:
            runs[-1] = (state, runs[-1][1], time_s)
        else:
            runs.append((state, before_s, time_s))
        before_s = time_s
    return runs
