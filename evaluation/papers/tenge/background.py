"""Figure 8: a stream of a fifth of the line against constant background."""

from __future__ import annotations

from typing import Any

from elephan.papers.drawing import framed, label_line, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, part
from elephan.record import Record
from elephan.report.draw import Ink

from .burst import burst_share

CLAIM = "tenge.fig8"

BEARS = 0.80
"""Background, as a part of the line, up to which the paper's stream loses nothing."""


def lost_of(record: Record) -> float:
    """Return the segments that the stream had to send again, per second."""
    return float(record.metrics["retransmitted_segments"] or 0) / float(record.metrics["simulated_s"] or 1)


def gigabits_of(record: Record) -> float:
    """Return the stream's goodput, Gbit/s."""
    return float(record.metrics["goodput_bps"] or 0) / 1e9


@part("fig8.toml")
def figure8(results: PaperResults) -> Evaluation:
    """Losses and goodput of the stream by background load."""
    records = results.of("fig8.toml")
    borne = [record for record in records if burst_share(record) <= BEARS + 1e-9]
    beyond = [record for record in records if burst_share(record) > BEARS + 1e-9]
    measured = {
        "lost_up_to_80": max(lost_of(record) for record in borne),
        "lost_just_beyond": lost_of(beyond[0]),
        "lost_most": lost_of(beyond[-1]),
        "goodput_up_to_80": min(gigabits_of(record) for record in borne),
    }

    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2)
        shares = [100 * burst_share(record) for record in records]
        framed(left, ink, "background, % of the line", "goodput of the stream, Gbit/s")
        left.plot(shares, [gigabits_of(record) for record in records], "o-", color=ink.curve(0), markersize=4)
        line = records[0].spec["links"][records[0].spec["flows"][0]["route"][-1]]["rate_bps"] / 1e9
        spare = [(share, line * (1 - share / 100)) for share in (79, 100)]
        label = "what the line has left"
        left.plot(*zip(*spare, strict=True), color=ink.muted, linewidth=1.0, linestyle=(0, (4, 3)), label=label)
        left.set_ylim(0, 2.2)
        framed(right, ink, "background, % of the line", "sent again, segments per s")
        right.plot(shares, [lost_of(record) for record in records], "o-", color=ink.curve(1), markersize=4)
        for axes in (left, right):
            axes.axvline(100 * BEARS, color=ink.text, linewidth=0.9, linestyle=(0, (1, 2)))
            axes.set_xlim(-2, 100)
        label_line(right, 78, 0.8 * right.get_ylim()[1], "the paper:\nno loss up to 80 %", ink.text, ha="right")
        legend(drawing, ink, left)

    figure = Figure(
        "fig8",
        CLAIM,
        "Figure 8: a stream of 1.9 Gbit/s against background",
        "One TCP stream (Reno) whose sender is the limit, ten seconds of constant background of packets of 1500 B, "
        "queue a tenth of rate x RTT.",
        draw,
        (7.4, 3.2),
    )
    return Evaluation({CLAIM: measured}, [figure], [])
