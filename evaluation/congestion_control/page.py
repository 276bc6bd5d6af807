"""Writes docs/results/congestion-control.md and docs/img/response.png."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.congestion_control.judge import Point, Sharing
from evaluation.performance import markdown
from evaluation.performance.markdown import LINE_LENGTH, filled, table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "results" / "congestion-control.md"
SHEET = ROOT / "docs" / "img" / "response.png"

TEMPLATE = """\
# Congestion controls

What each congestion control does, measured by `make cc` (elephan {version}, {date}). This page is
generated: what is published of each congestion control, the grids and the tolerances are
`evaluation/congestion_control/congestion_controls.toml`, and `tests/evaluation` holds a quick part of it in every test
run. `elephan cc` lists them with their parameters, `elephan cc NAME` shows one's equations.

{verdict}

## Response functions

The mean window in the steady state against the loss rate: one flow, RTT {rtt_ms} ms, a line of {line_gbps} Gbit/s
that is never full, SACK and RACK-TLP, delayed ACKs, none held back for segments out of order. The window is the
segments that are delivered per round trip. The formulas are for periodic loss, one segment in every 1/p, so that is
what they are held against: {counted} cycles count, from the rarest loss to the most frequent one, after the first
{warmup}. At the first loss the window is where the formula has it. The diamonds are independent loss, as lines have
it.

![Mean window against loss rate, all congestion controls](../img/response.png)

Measured under periodic loss, segments, and in brackets over the published. Allowed: {tolerance}; {small_tolerance}
where the published window is below {small_window} segments; a control's own where it has one, below. Bold: outside. A
tilde: not steady, the window still rises or falls from cycle to cycle.

{response}

Under independent loss, median of {independent_seeds} seeds, over the published window for periodic loss. A loss that
comes early hits a small window and one that comes late a large one, so that the mean differs even in theory: {ott:.2f}
for Reno (Ott, Kemperman, Mathis 1996). Some {independent_counted} losses count.

{independent}

### What is published, and why we differ

{published}

What becomes of measured over published when the reason given is taken away:

{controls}

### Small windows

At a loss of 1e-2 most controls lie below their formulas. For Reno, what the formula leaves out, step by step:

{small}

## Sharing a line

{rate_mbps} Mbit/s, RTT {share_rtt_ms} ms, a drop-tail queue of one bandwidth-delay product ({queue} packets), a random
delay of up to one transmission time per packet. Medians of {seeds} seeds; goodput from {warmup_s} to {seconds} s.

- **RTT 2, 4, 8**: goodput of a flow with {share_rtt_ms} ms over that of one under the same control with 2, 4, 8 times
  as much; 1 is equal shares. The queue adds up to {share_rtt_ms} ms to both. Where all flows lose at the same time,
  theory expects the ratio squared for Reno and more the steeper a control's response function (Xu, Harfoush, Rhee
  2004).
- **time to Jain {jain:g}**: from the start of a second flow, some {join_s} s after the first, until Jain's index of
  their goodputs over {window_s} s is at least {jain:g} and stays so for {hold_s} s.
- **Jain 2 to 16**: Jain's index of the goodputs of so many flows under the control; 1 is equal, 1/n is all for one.
- **beside Reno**: the control's share of what it and one Reno flow carry together; 50 % is equal.
- **line**: goodput of two flows under the control over the line's rate; {most:.1f} % is full, the rest are headers.

{sharing}

{sharing_notes}

{sharing_controls}
"""


def write(parts: dict[str, Any], sheet: bytes) -> None:
    """Rewrite the page and its picture."""
    SHEET.parent.mkdir(exist_ok=True)
    SHEET.write_bytes(sheet)
    PAGE.write_text(filled(TEMPLATE.format(**parts)), encoding="utf-8")


def verdict(rows: Sequence[Point]) -> str:
    """Say how many points hold, and name those that do not."""
    judged = [row for row in rows if row.published is not None]
    return markdown.verdict(judged, "points of which something is published")


def segments(value: float) -> str:
    """Return a window with the digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def response_table(losses: Sequence[float], rows: dict[str, list[Point]]) -> str:
    """Congestion controls by loss rates."""
    cells = [[name, *(_window(point) for point in points)] for name, points in rows.items()]
    return table(["congestion control", *(f"{loss:g}" for loss in losses)], cells)


def _window(point: Point) -> str:
    if point.ratio is None:
        return ("" if point.is_steady else "~") + segments(point.measured)
    ratio = f"({point.ratio:.2f})" if point.holds else f"**({point.ratio:.2f})**"
    return f"{segments(point.measured)} {ratio}"


def independent_table(rows: dict[str, dict[float, tuple[float, float | None]]]) -> str:
    """Congestion controls by loss rates: window and ratio to the published."""
    losses = next(iter(rows.values())).keys()
    cells = [
        [
            name,
            *(
                segments(window) if published is None else f"{segments(window)} ({window / published:.2f})"
                for window, published in values.values()
            ),
        ]
        for name, values in rows.items()
    ]
    return table(["congestion control", *(f"{loss:g}" for loss in losses)], cells)


def published_list(congestion_controls: Sequence[dict[str, Any]]) -> str:
    """List the published results of each congestion control, the reason if there is none, and the reason of a different
    window.
    """
    lines = []
    for cc in congestion_controls:
        said = cc["published"] if "published" in cc else f"nothing published: {cc['none']}"
        said += f". From its equations: {cc['derived']}" if "derived" in cc else ""
        own = "".join(
            f" Allowed {span(item)}: {item['low']:g} to {item['high']:g}." for item in cc.get("tolerance", [])
        )
        why = f" {cc['why']}" if "why" in cc else ""
        lines.append(f"**{cc['name']}**: {said}.{why}{own}")
    return bullets(lines)


def span(item: dict[str, Any]) -> str:
    """Return which loss rates a tolerance is for."""
    low, high = item["from"], item["to"]
    return f"at {low:g}" if low == high else f"from {low:g} to {high:g}"


def bullets(texts: Sequence[str]) -> str:
    """Return a list of filled items."""
    items = (textwrap.fill(f"- {text}", LINE_LENGTH, subsequent_indent="  ", break_long_words=False) for text in texts)
    return "\n".join(items)


def sharing_table(ratios: Sequence[int], counts: Sequence[int], jain: float, rows: Sequence[Sharing]) -> str:
    """The one table of sharing."""
    head = ["congestion control", *(f"RTT {ratio}" for ratio in ratios), f"time to Jain {jain:g}"]
    head += [f"Jain {count}" for count in counts] + ["beside Reno", "line"]
    cells = []
    for row in rows:
        time = "never" if row.convergence_s is None else f"{row.convergence_s:.0f} s"
        cells.append(
            [
                row.cc,
                *(_times(row.rtt_ratio[ratio]) for ratio in ratios),
                time,
                *(f"{row.jain[count]:.2f}" for count in counts),
                "" if row.of_reno is None else f"{100 * row.of_reno:.0f} %",
                "" if row.line_share is None else f"{100 * row.line_share:.1f} %",
            ]
        )
    return table(head, cells)


def _times(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
