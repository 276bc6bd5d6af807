"""Writes docs/results/fidelity.md from rows: tables of reference, measured and ratio, each with its tolerance."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.fidelity.judge import Price, Row
from evaluation.performance import markdown
from evaluation.performance.markdown import LINE_LENGTH, filled, table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "results" / "fidelity.md"
MBPS = 1e6

TEMPLATE = """\
# Fidelity

How true the simulator is, measured by `make fidelity` (elephan {version}, {date}). This page is generated:
the references and tolerances are `evaluation/fidelity/reference.toml`, and `tests/evaluation` holds a quick part of it
in every test run. Goodput is payload in Mbit/s; a ratio is elephan over the reference; packets of 1500 bytes carry
1448.

{verdict}

## Reno against the formulas

One flow, SACK and RACK-TLP, delayed ACKs, independent loss, a line that is never full. Mathis (1997): C /
(RTT sqrt(p)) with C = sqrt(3/2), because Linux counts acknowledged segments, not ACKs (RFC 3465); delayed
ACKs do not slow its growth. The formula is for periodic loss; for independent loss theory expects {ott:.2f}
times its value (Ott, Kemperman, Mathis 1996). Padhye (1998, equation 30) models a Reno without SACK that runs
into a time-out when a window loses several segments; a sender with SACK and RACK-TLP mostly does not, and
lies above it where loss is high. Allowed: Mathis {mathis_tolerance}, Padhye {padhye_tolerance}; where only a
few loss events are simulated, {scatter_tolerance}.

{formulas}

## A window as the limit

A receive window of {window_bytes:,} bytes without scaling holds 45 segments and gives W / RTT; the delayed ACK of
an odd last segment keeps one of them waiting. Allowed: {window_tolerance}.

{window}

## The sawtooth

One Reno flow on a line with a queue of one bandwidth-delay product: a loss every 3/8 W^2 segments. Allowed:
{sawtooth_tolerance}; the formula does not count the round trip that each recovery takes.

{sawtooth}

## The Linux kernel

{kernel_source}: {kernel_path}. elephan: median, least and most of {kernel_seeds} seeds. Allowed: {kernel_tolerance}.

{kernel}

### The price of both

With 1/8 reduction and congestion avoidance off, "both", the window doubles every round trip until the queue
overflows. Segments retransmitted without any random loss in {kernel_seconds} s on the same path, beside those of the
kernel ({price_source}); of several runs the median and, in brackets, the least and the most. By its own account the
emulator under the kernel's was late {price_late}. Reno's are the overshoot of its first slow start and a few more:
allowed {price_tolerance}.

{price}

What "both" retransmits is no number that a second run repeats, in the kernel either: a recovery ends with a burst whose
losses begin the next, and how large it is depends on the spacing of single packets. On a line without any jitter the
simulated flow falls into a cycle that repeats itself to the segment; half a transmission time of jitter, or duplicate
ACKs that are not held back, lead elsewhere. An earlier table of the kernel, on a path of which the emulator is not
known, had 242,000 for "both", and 48 for Reno; that 48 is not explained: Linux 6.18 does not remember ssthresh from one
connection to the next (net.ipv4.tcp_no_ssthresh_metrics_save is 1).

## The kernel backend

{backend}

## ns-2

{ns2}
"""


def write_page(parts: dict[str, Any]) -> None:
    """Rewrite docs/results/fidelity.md."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(filled(TEMPLATE.format(**parts)), encoding="utf-8")


def verdict(rows: list[Row]) -> str:
    """Say how many comparisons of those that are judged hold, and name those that do not."""
    return markdown.verdict([row for row in rows if row.low is not None], "comparisons")


def numbers(values: list[float]) -> str:
    """Return numbers as a list in words."""
    return ", ".join(f"{value:g}" for value in values)


def between(tolerance: tuple[float, float] | list[float]) -> str:
    """Return a tolerance as text."""
    return f"{tolerance[0]:g} to {tolerance[1]:g}"


def formula_table(rows: list[tuple[Row, Row]]) -> str:
    """Both formulas beside each other."""
    cells = []
    for mathis, padhye in rows:
        _, loss, rtt = mathis.name
        cells.append(
            [
                rtt.removeprefix("RTT "),
                loss.removeprefix("loss "),
                mbps(mathis.measured),
                mbps(mathis.reference),
                ratio(mathis),
                mbps(padhye.reference),
                ratio(padhye),
            ]
        )
    return table(["RTT", "loss", "elephan", "Mathis", "ratio", "Padhye", "ratio"], cells)


def goodput_table(head: list[str], reference: str, rows: list[Row]) -> str:
    """Goodput beside a reference, with the scatter over seeds where there is one."""
    scatter = any(row.least is not None for row in rows)
    cells = []
    for row in rows:
        line = [*row.name, mbps(row.reference), mbps(row.measured)]
        if scatter:
            line.append("" if row.least is None or row.most is None else f"{mbps(row.least)} to {mbps(row.most)}")
        cells.append([*line, ratio(row)])
    return table([*head, reference, "elephan", *(["least to most"] if scatter else []), "ratio"], cells)


def grid_text(grid: dict[str, Any]) -> str:
    """Say what a grid of the comparison with ns-2 is."""
    names = ", ".join(grid["congestion_control"])
    acks = "" if grid["delayed_ack"] else ", an ACK per segment in both"
    return f"{names} on {grid['rate_mbps']} Mbit/s, {grid['round_trips']} round trips, {grid['seeds']} seeds{acks}"


def reasons(congestion_controls: dict[str, dict[str, Any]]) -> str:
    """Say, congestion control by congestion control, what was set to what ns-2 has, and why the two differ all the
    same."""
    lines = []
    for name, cc in congestion_controls.items():
        own = [
            (
                f"Allowed at {item['to']:g}"
                if item["from"] == item["to"]
                else f"Allowed from {item['from']:g} to {item['to']:g}"
            )
            + ("" if item.get("delayed_ack", True) else ", an ACK per segment")
            + f": {item['low']:g} to {item['high']:g}."
            for item in cc.get("tolerance", [])
        ]
        text = " ".join([f"- **{name}**:", *([cc["why"]] if "why" in cc else []), *own])
        lines.append(textwrap.fill(text, LINE_LENGTH, subsequent_indent="  ", break_long_words=False))
    return "\n".join(lines)


def period_table(rows: list[Row]) -> str:
    """Periods in seconds."""
    cells = [[*row.name, f"{row.reference:.2f} s", f"{row.measured:.2f} s", ratio(row)] for row in rows]
    return table(["line", "RTT", "3/8 W^2", "elephan", "ratio"], cells)


def price_table(prices: list[Price]) -> str:
    """Retransmitted segments and the goodput that they bought."""
    cells = [
        [
            price.case.cc,
            "none" if price.case.jitter_us == 0 else f"{price.case.jitter_us} us",
            "held back" if price.case.sack_compression else "one for each segment",
            scattered(price.case.kernel_segments),
            scattered(price.segments),
            mbps(price.goodput_bps),
        ]
        for price in prices
    ]
    return table(["congestion control", "jitter", "duplicate ACKs", "kernel", "elephan", "elephan, goodput"], cells)


def scattered(values: Sequence[int]) -> str:
    """Return the median and, of several, the least and the most; nothing for none."""
    if not values:
        return ""
    median = f"{statistics.median(values):,.0f}"
    return median if len(values) == 1 else f"{median} ({min(values):,} to {max(values):,})"


def mbps(value_bps: float) -> str:
    """Return a rate in Mbit/s with three digits that count."""
    value = value_bps / MBPS
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(row: Row) -> str:
    """Return the ratio, set in bold where it is out of its tolerance."""
    return f"{row.ratio:.2f}" if row.holds else f"**{row.ratio:.2f}**"
