"""Figures 4, 6, 7 and 9: what a host gets out of the line, by a cost per packet and per byte fitted on two numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from elephan.papers.claims import Paper
from elephan.papers.drawing import framed, label_line, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.record import Record
from elephan.report.draw import Ink

FIG4, FIG6, FIG7, FIG9 = "tenge.fig4", "tenge.fig6", "tenge.fig7", "tenge.fig9"

HEADERS_BYTES = 52
"""IP and TCP headers with time stamps, B: what a packet of the MTU has beside payload."""

FIT = {9216: "mtu_9216", 1500: "mtu_1500"}
"""MTU, B, and the claim's number that the fit takes."""

LOW_GBPS = 5.40
"""Throughput below which the paper counts ten points, Gbit/s."""

BAND_GBPS = (5.44, 5.46)
"""Throughput within which the paper has 93 % of its points, Gbit/s."""

POINTS = 2700
"""Points of ten seconds in the paper."""


def fit(paper: Paper) -> tuple[float, float]:
    """Return a host's time per packet, us, and its rate, Gbit/s: a packet takes its payload over the goodput, at both
    MTUs of figure 6."""
    goodput = {mtu: paper.claim(FIG6).paper_value(name) for mtu, name in FIT.items()}
    time_us = {mtu: (mtu - HEADERS_BYTES) * 8 / (goodput[mtu] * 1e3) for mtu in FIT}
    per_byte_us = (time_us[9216] - time_us[1500]) / (9216 - 1500)
    return time_us[1500] - 1500 * per_byte_us, 8 / per_byte_us / 1e3


def goodput_of(record: Record) -> float:
    """Return the goodput of all flows, Gbit/s."""
    return float(record.metrics["goodput_bps"] or 0) / 1e9


def raw_of(record: Record) -> float:
    """Return what the source's frames carried, Gbit/s of their data."""
    source = record.spec["background"][0]
    return float(record.background[0]["sent_packets"]) * source["packet_bytes"] * 8 / record.spec["duration_ns"]


def carried_of(record: Record, name: str) -> dict[str, float]:
    """Return what a link carried, Gbit/s, and the packets that its queue dropped per second."""
    link = next(link for link in record.links if link["name"] == name)
    return {
        "carried": float(link["carried_bps"]) / 1e9,
        "dropped": float(link["dropped_by_queue"]) / (record.spec["duration_ns"] / 1e9),
    }


def error_of(predicted: float, paper: float) -> str:
    """Return how far a prediction is off, in per cent."""
    return f"{100 * (predicted / paper - 1):+.1f} %"


@part("fig4.toml", "fig5.toml")
def figure4(results: PaperResults) -> Evaluation:
    """Raw frames by size, predicted; and both hosts at once over the line, of the rates that the paper measured."""
    records = results.of("fig4.toml")
    rates = {int(record.spec["background"][0]["packet_bytes"]): raw_of(record) for record in records}
    one, both = (carried_of(record, "line.forward") for record in results.of("fig5.toml"))
    claim = results.paper.claim(FIG4)
    measured = {
        "itanium": rates[9000],
        "xeon": rates[9000],
        "line_both": both["carried"],
        "dropped_one": one["dropped"],
        "dropped_both": both["dropped"],
    }

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.subplots()
        framed(axes, ink, "size of a raw frame's data, B", "Gbit/s")
        axes.plot(list(rates), list(rates.values()), "o-", color=ink.curve(0), markersize=4, label="predicted")
        for name, title, colour in (("itanium", "Itanium-2", 0), ("xeon", "Xeon", 1)):
            label = f"the paper: {title}"
            axes.plot([9000], [claim.paper_value(name)], "s", color=ink.curve(colour), markersize=7, label=label)
        axes.set_xlim(0, 9600)
        axes.set_ylim(0, 6)
        legend(drawing, ink, axes)

    caption = "As fast as a host can that takes what the fit on two TCP throughputs of the Itanium-2 says."
    figure = Figure("fig4", FIG4, "Figure 4: raw frames by their size", caption, draw, (7.4, 3.2))
    rows = [
        (
            f"raw, 9000 B, {title}",
            f"{rates[9000]:.3f}",
            f"{claim.paper_value(name):.3f}",
            error_of(rates[9000], claim.paper_value(name)),
        )
        for name, title in (("itanium", "Itanium-2"), ("xeon", "Xeon, another machine"))
    ]
    table = Table(FIG4, "Predictions, Gbit/s", ("", "predicted", "paper", "error"), tuple(rows), _fitted(results))
    return Evaluation({FIG4: measured}, [figure], [table])


@part("fig6.toml")
def figure6(results: PaperResults) -> Evaluation:
    """One stream by MTU and window."""
    grid: dict[tuple[int, int], float] = {}
    for record in results.of("fig6.toml"):
        tcp = record.spec["flows"][0]["transport"]
        grid[int(tcp["mtu_bytes"]), int(tcp["window_bytes"]) // 10**6] = goodput_of(record)
    mtus, windows = sorted({mtu for mtu, _ in grid}), sorted({window for _, window in grid})
    small = [grid[1500, window] for window in windows if window >= 8]
    measured = {
        "mtu_9216": grid[9216, 16],
        "mtu_1500": grid[1500, 16],
        "least_1500": min(small),
        "most_1500": max(small),
        "window_8": grid[9216, 8],
    }

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.subplots()
        framed(axes, ink, "window, MB", "goodput, Gbit/s")
        for number, mtu in enumerate(mtus):
            rates = [grid[mtu, window] for window in windows]
            axes.plot(windows, rates, "o-", color=ink.curve(number), markersize=4, label=f"{mtu} B")
        paper = results.paper.claim(FIG6)
        for name in FIT.values():
            axes.axhline(paper.paper_value(name), color=ink.text, linewidth=0.9, linestyle=(0, (1, 2)))
        label_line(axes, 1, paper.paper_value("mtu_9216") + 0.1, "the paper, and the fit", ink.text)
        axes.set_xlim(0, 21)
        axes.set_ylim(0, 6.2)
        legend(drawing, ink, axes)

    figure = Figure(
        "fig6",
        FIG6,
        "Figure 6: one TCP stream by MTU and window",
        "The two dotted lines are fitted; all else follows. RTT 17 ms.",
        draw,
        (7.4, 3.2),
    )
    rows = tuple((f"{mtu} B", *(f"{grid[mtu, window]:.2f}" for window in windows)) for mtu in mtus)
    heads = ("MTU", *(f"{window} MB" for window in windows))
    return Evaluation(
        {FIG6: measured}, [figure], [Table(FIG6, "Goodput, Gbit/s, by window", heads, rows, _fitted(results))]
    )


@part("fig7.toml")
def figure7(results: PaperResults) -> Evaluation:
    """Points of ten seconds, without a loss and with one."""
    points = {}
    for record in results.of("fig7.toml"):
        table = results.series(record).flow
        # The first point has the handshake and slow start in it.
        lost = record.spec["links"][record.spec["flows"][0]["route"][-1]]["loss"]["kind"] != "none"
        points[lost] = table.column("goodput_bps").to_numpy()[1:] / 1e9
    clean, lossy = points[False], points[True]
    measured = {
        "mean": float(np.mean(clean)),
        "in_band": 100 * float(np.mean((clean >= BAND_GBPS[0]) & (clean <= BAND_GBPS[1]))),
        "below": POINTS * float(np.mean(clean < LOW_GBPS)),
        "least": float(np.min(lossy)),
        "low": LOW_GBPS,
    }

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.subplots()
        framed(axes, ink, "point of ten seconds", "goodput, Gbit/s")
        numbers = np.arange(2, 2 + len(clean))
        axes.plot(numbers, lossy, "o-", color=ink.curve(1), markersize=4, label="one packet lost")
        axes.plot(numbers, clean, "o-", color=ink.curve(0), markersize=4, label="none lost")
        least = results.paper.claim(FIG7).paper_value("least")
        axes.axhline(least, color=ink.text, linewidth=0.9, linestyle=(0, (1, 2)), label="the paper's least")
        axes.set_ylim(4.8, 5.6)
        legend(drawing, ink, axes)

    caption = "Predicted; MTU 9216 B, window 16 MB, RTT 17 ms."
    figure = Figure("fig7", FIG7, "Figure 7: one stream in points of ten seconds", caption, draw, (7.4, 3.0))
    return Evaluation({FIG7: measured}, [figure], [])


@part("fig9.toml")
def figure9(results: PaperResults) -> Evaluation:
    """All streams of a host together, by their number."""
    rates = {len(record.spec["flows"]): goodput_of(record) for record in results.of("fig9.toml")}
    measured = {"least": min(rates.values()), "most": max(rates.values())}

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.subplots()
        framed(axes, ink, "streams", "goodput of all, Gbit/s")
        axes.plot(list(rates), list(rates.values()), "o-", color=ink.curve(0), markersize=4)
        axes.set_xlim(0, 21)
        axes.set_ylim(0, 6.2)

    caption = "Predicted; MTU 9216 B, window 16 MB each, one host."
    figure = Figure("fig9", FIG9, "Figure 9: many streams from one host", caption, draw, (7.4, 2.8))
    return Evaluation({FIG9: measured}, [figure], [])


def _fitted(results: PaperResults) -> str:
    packet_us, rate_gbps = fit(results.paper)
    of = "Fitted on figure 6, at 9216 B and 1500 B"
    return f"{of}: {packet_us:.2f} us per packet and {rate_gbps:.3f} Gbit/s."
