"""Writes docs/fidelity.md from rows: tables of reference, measured and ratio, each with its tolerance."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from bench import markdown
from bench.markdown import LINE_LENGTH, filled, table
from fidelity.judge import Row

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "fidelity.md"
MBPS = 1e6

TEMPLATE = """\
# Fidelity

How true the simulator is, measured by `make fidelity` (elephan {version}, {date}). This page is generated:
the references and tolerances are `fidelity/reference.toml`, and `tests/fidelity` holds a quick part of it in
every test run. Goodput is payload in Mbit/s; a ratio is elephan over the reference; packets of 1500 bytes
carry 1448.

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

With 1/8 reduction and congestion avoidance off, the window doubles every round trip until the queue
overflows. Without any random loss at all, in {kernel_seconds} s on the same path. Two things of the kernel's runs are
not known, so both ends are shown: the receive window, which bounds the overrun; and the first ssthresh, which the
kernel remembers from earlier connections to a host: with it a slow start does not overshoot.

{price}

## ns-2

{ns2}
"""


def write_page(parts: dict[str, Any]) -> None:
    """Rewrite docs/fidelity.md."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(filled(TEMPLATE.format(**parts)), encoding="utf-8")


def verdict(rows: list[Row]) -> str:
    """Say how many comparisons of those that are judged hold, and name those that do not."""
    return markdown.verdict([row for row in rows if row.low is not None], "comparisons")


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
    names = ", ".join(grid["congestion"])
    acks = "" if grid["delayed_ack"] else ", an ACK per segment in both"
    return f"{names} on {grid['rate_mbps']} Mbit/s, {grid['round_trips']} round trips, {grid['seeds']} seeds{acks}"


def reasons(stacks: dict[str, dict[str, Any]]) -> str:
    """Say, stack by stack, what was set to what ns-2 has, and why the two differ all the same."""
    lines = []
    for name, stack in stacks.items():
        own = [
            (
                f"Allowed at {item['to']:g}"
                if item["from"] == item["to"]
                else f"Allowed from {item['from']:g} to {item['to']:g}"
            )
            + ("" if item.get("delayed_ack", True) else ", an ACK per segment")
            + f": {item['low']:g} to {item['high']:g}."
            for item in stack.get("tolerance", [])
        ]
        text = " ".join([f"- **{name}**:", *([stack["why"]] if "why" in stack else []), *own])
        lines.append(textwrap.fill(text, LINE_LENGTH, subsequent_indent="  ", break_long_words=False))
    return "\n".join(lines)


def period_table(rows: list[Row]) -> str:
    """Periods in seconds."""
    cells = [[*row.name, f"{row.reference:.2f} s", f"{row.measured:.2f} s", ratio(row)] for row in rows]
    return table(["line", "RTT", "3/8 W^2", "elephan", "ratio"], cells)


def price_table(rows: list[tuple[Row, float]]) -> str:
    """Retransmitted segments and the goodput that they bought."""
    cells = [[*row.name, f"{row.reference:,.0f}", f"{row.measured:,.0f}", mbps(goodput)] for row, goodput in rows]
    return table(
        ["stack", "receive window", "kernel, retransmitted", "elephan, retransmitted", "elephan, goodput"], cells
    )


def mbps(value_bps: float) -> str:
    """Return a rate in Mbit/s with three digits that count."""
    value = value_bps / MBPS
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(row: Row) -> str:
    """Return the ratio, set in bold where it is out of its tolerance."""
    return f"{row.ratio:.2f}" if row.holds else f"**{row.ratio:.2f}**"
