"""Figure 3: slow start step by step, read off what the lines delivered and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from elephan.papers.drawing import framed
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, part
from elephan.record import Record
from elephan.report.draw import Ink
from elephan.store.series import Series

STEP_S = 0.001
"""The paper's unit of time in fig3.toml: a segment of 1500 B at 12 Mbit/s."""

TRAVEL_STEPS = 4
"""From the start of a transmission to the whole packet's arrival, steps: 1 on the wire, 3 of propagation."""

SEGMENT_BYTES = 1500
SHOWN_STEPS = 33
"""Steps that the diagram shows; the paper's text ends at 31."""

Floats = npt.NDArray[np.float64]


def arrivals(series: Series, link: int, packet_bytes: int) -> Floats:
    """Return when packets of exactly this size arrived over a link, s.

    Read off the link's count of delivered bytes, so to the interval of the series (10 us = a hundredth of a step), and
    only right while no two packets arrive within one interval: the line needs a hundred of them for one.
    """
    rows = series.link.column("link").to_numpy() == link
    time_s = series.link.column("time_s").to_numpy()[rows]
    grown = np.diff(series.link.column("delivered_bytes").to_numpy()[rows].astype(np.int64), prepend=0)
    arrived_s: Floats = time_s[grown == packet_bytes]
    return arrived_s


def ack_bytes(record: Record) -> int:
    """Return the size of an ACK without options, bytes: IPv4 and TCP header (RFC 791, RFC 9293)."""
    assert not record.spec["flows"][0]["transport"]["timestamps"], "fig3.toml turns timestamps off"
    return 40


@part("fig3.toml")
def figure3(results: PaperResults) -> Evaluation:
    """cwnd and every segment by step."""
    record = results.of("fig3.toml")[0]
    series = results.series(record)
    flow = record.spec["flows"][0]
    data = arrivals(series, flow["route"][0], SEGMENT_BYTES)
    # The third packet of the handshake is an ACK of the sender, not one of the receiver: it is on the other link.
    acks = arrivals(series, flow["return_route"][0], ack_bytes(record))
    start_s = data[0] - TRAVEL_STEPS * STEP_S
    leaves = np.rint((data - start_s) / STEP_S).astype(int) - TRAVEL_STEPS
    # A packet that has arrived at instant k + 1 was received within step k.
    returns = np.rint((acks - start_s) / STEP_S).astype(int) - 1
    cwnd = cwnd_by_step(series, start_s)
    last = int(leaves[-1])
    busy = set(leaves.tolist())
    measured = {f"cwnd_step_{step}": float(cwnd[step]) for step in (7, 16, 27)}
    measured |= {f"step_d{n}": float(leaves[n - 1]) for n in (2, 3, 11, 15)}
    measured |= {f"step_a{n}": float(returns[n - 1]) for n in (4, 7, 8)}
    measured["idle_after_31"] = float(sum(1 for step in range(31, last) if step not in busy))
    figure = Figure(
        "fig3",
        "dsan.fig3",
        "Figure 3: slow start, segment by segment",
        "Every segment (D) and ACK (A) of the simulated run, from the start of its transmission to its arrival, in "
        "steps of one transmission time. Below: cwnd at the end of each step; diamonds are the paper's.",
        lambda drawing, ink: _draw(drawing, ink, leaves, returns, cwnd, results),
        (7.4, 5.6),
    )
    return Evaluation({"dsan.fig3": measured}, [figure], [])


def cwnd_by_step(series: Series, start_s: float) -> npt.NDArray[np.int64]:
    """Return cwnd at the end of each step, segments."""
    time_s = series.flow.column("time_s").to_numpy()
    cwnd = series.flow.column("cwnd_packets").to_numpy()
    steps = int((time_s[-1] - start_s) / STEP_S) - 1
    # Twice the interval past the end of a step, so that what happened at the end is in it.
    ends = start_s + (np.arange(steps) + 1) * STEP_S + 2e-5
    at_ends: npt.NDArray[np.int64] = cwnd[np.searchsorted(time_s, ends)].astype(np.int64)
    return at_ends


def _draw(
    drawing: Any,
    ink: Ink,
    leaves: npt.NDArray[np.int_],
    returns: npt.NDArray[np.int_],
    cwnd: Any,
    results: PaperResults,
) -> None:
    above, below = drawing.subplots(2, 1, height_ratios=(3, 2), sharex=True)
    above.set_ylim(-0.28, 1.2)
    for side in ("top", "right", "left", "bottom"):
        above.spines[side].set_visible(False)
    above.set_yticks([])
    above.tick_params(axis="x", length=0, labelbottom=False)
    for y, name in ((1.0, "sender"), (0.0, "receiver")):
        above.plot([0, SHOWN_STEPS], [y, y], color=ink.muted, linewidth=1.2, zorder=1)
        above.text(-0.4, y, name, ha="right", va="center", color=ink.text, fontsize=9)
    for number, step in enumerate(leaves, start=1):
        _arrow(above, ink.curve(0), step, 1.0, 0.0, f"D{number}", 1.06)
    for number, step in enumerate(returns, start=1):
        _arrow(above, ink.curve(1), step + 1 - TRAVEL_STEPS, 0.0, 1.0, f"A{number}", -0.08)
    steps = list(range(SHOWN_STEPS))
    framed(below, ink, "step (transmission times of a segment)", "cwnd at the end of the step, segments")
    below.step(
        [*steps, SHOWN_STEPS],
        [*cwnd[:SHOWN_STEPS], cwnd[SHOWN_STEPS - 1]],
        where="post",
        color=ink.curve(0),
        linewidth=1.8,
    )
    claim = results.paper.claim("dsan.fig3")
    for step in (7, 16, 27):
        paper = claim.paper_value(f"cwnd_step_{step}")
        below.scatter(
            [step + 0.5], [paper], marker="D", s=46, facecolors="none", edgecolors=ink.text, linewidths=1.3, zorder=5
        )
        below.annotate(
            f"the paper: {paper:.0f} at step {step}",
            (step + 0.5, paper),
            xytext=(-8, 9),
            textcoords="offset points",
            ha="right",
            color=ink.text,
            fontsize=8,
        )
    below.set_xlim(-0.2, SHOWN_STEPS)
    below.set_ylim(0, float(max(cwnd[:SHOWN_STEPS])) * 1.18)
    below.set_xticks([0, 7, 8, 16, 23, 27, 31])


def _arrow(axes: Any, colour: str, start: float, top: float, bottom: float, name: str, label_y: float) -> None:
    """Draw a packet: its transmission, one step wide, slanted over the steps it travels."""
    if start >= SHOWN_STEPS:
        return
    travel = TRAVEL_STEPS - 1
    axes.fill(
        [start, start + 1, start + 1 + travel, start + travel],
        [top, top, bottom, bottom],
        color=colour,
        alpha=0.16,
        linewidth=0,
        zorder=2,
        clip_on=True,
    )
    axes.plot([start, start + travel], [top, bottom], color=colour, linewidth=1.0, zorder=3, clip_on=True)
    axes.text(
        start + 0.5, label_y, name, ha="center", va="bottom" if top > bottom else "top", color=colour, fontsize=6.5
    )
