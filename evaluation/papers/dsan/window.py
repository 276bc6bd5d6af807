"""Table 1 and figure 9: what a window of 8 MB gives at a round-trip time and a load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elephan.papers.drawing import framed, label_line, legend, mark_paper
from elephan.papers.evaluation import (
    Evaluation,
    Figure,
    PaperResults,
    Table,
    kernel_reader,
    line_bps,
    megabytes_per_s,
    part,
    round_trip_s,
)
from elephan.record import Record
from elephan.report.draw import Ink

WINDOW_BYTES = 8_000_000
"""The gateways' receive window, "8MB"; the paper's Table 1 is exact with MB = 10^6 B."""

LINEAR_UP_TO_S = 0.080
"""Round-trip time up to which the paper finds throughput = load, s."""

PORT_BPS = 800_000_000
"""Payload of a Fibre Channel port of 1 Gbit/s: 1.0625 GBd, 8b/10b coded, 100 MB/s (FC-PI)."""


def milliseconds(record: Record) -> int:
    """Return the propagation round-trip time in ms."""
    return round(round_trip_s(record) * 1000)


def goodput(record: Record) -> float:
    """Return the goodput of a record, MB/s."""
    return megabytes_per_s(record.metrics.get("goodput_bps"))


@kernel_reader("dsan.table1")
def by_rtt(records: Sequence[Record]) -> dict[str, float]:
    """Return the goodput at each round-trip time, MB/s."""
    return {f"rtt_{milliseconds(record)}ms": goodput(record) for record in records}


@part("table1.toml")
def table1(results: PaperResults) -> Evaluation:
    """Goodput by round-trip time."""
    records = results.of("table1.toml")
    measured = by_rtt(records)
    points = [(milliseconds(record), goodput(record)) for record in records]
    claim = results.paper.claim("dsan.table1")
    paper = [(rtt, claim.paper_value(f"rtt_{rtt}ms")) for rtt, _ in points]
    reference = results.reference("kernel-window")
    kernel = [(rtt, reference.median(f"rtt_{rtt}ms")) for rtt, _ in points]

    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2, width_ratios=(3, 2))
        framed(left, ink, "round-trip time, ms", "MB/s")
        xs = range(66, 209)
        rule = [WINDOW_BYTES / x / 1000 for x in xs]
        left.plot(xs, rule, color=ink.muted, linewidth=1.0, linestyle=(0, (4, 3)), label="8 MB / RTT")
        left.plot(*zip(*points, strict=True), "o", color=ink.curve(0), markersize=4.5, label="simulator")
        left.scatter(
            *zip(*kernel, strict=True),
            marker="s",
            s=46,
            facecolors="none",
            edgecolors=ink.curve(1),
            linewidths=1.3,
            label=reference.label,
        )
        mark_paper(left, ink, [rtt for rtt, _ in paper], [value for _, value in paper], size=90)
        left.set_ylim(0, 125)
        left.set_xlim(66, 208)
        framed(right, ink, "round-trip time, ms", "measured less paper, %")
        off = [(value / wanted - 1) * 100 for (_, value), (_, wanted) in zip(points, paper, strict=True)]
        right.axhline(0, color=ink.muted, linewidth=1.0)
        right.plot([rtt for rtt, _ in points], off, "o-", color=ink.curve(0), markersize=4.5, linewidth=1.2)
        off = [(value / wanted - 1) * 100 for (_, value), (_, wanted) in zip(kernel, paper, strict=True)]
        right.plot([rtt for rtt, _ in points], off, "s-", color=ink.curve(1), markersize=4.0, linewidth=1.0)
        right.set_xlim(70, 210)
        legend(drawing, ink, left)

    figure = Figure(
        "table1",
        "dsan.table1",
        "Table 1: throughput of an 8 MB window",
        "Steady goodput of one connection on 1 Gbit/s. Right: how far each point is from the paper's number; the "
        "tolerance is half a per cent. Squares: a real kernel.",
        draw,
    )
    rows = tuple(
        (f"RTT {rtt} ms", f"{wanted:.2f}", f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.3f}")
        for (rtt, ours), (_, wanted), (_, theirs) in zip(points, paper, kernel, strict=True)
    )
    table = Table(
        "dsan.table1",
        "Table 1 on both backends",
        ("", "paper, MB/s", "simulator, MB/s", f"{reference.label}, MB/s", "simulator / kernel"),
        rows,
        reference.provenance,
    )
    return Evaluation({"dsan.table1": measured}, [figure], [table])


def offered(record: Record) -> float:
    """Return the offered load of a record, MB/s."""
    workloads = [flow["workload"] for flow in record.spec["flows"]]
    return sum(megabytes_per_s(each["rate_bps"]) for each in workloads if each["kind"] == "constant_rate")


def rule(record: Record) -> float:
    """Return min(load, window / RTT), MB/s: what the paper's text makes of a point."""
    rtt = round_trip_s(record)
    return min(offered(record), WINDOW_BYTES / rtt / 1e6) if rtt > 0 else offered(record)


def of_port(record: Record) -> bool:
    """Return True if the load is a share of a Fibre Channel port and not of the line."""
    share = 8e6 * offered(record) / line_bps(record)
    return abs(share * 10 - round(share * 10)) > 1e-3


@part("fig9.toml")
def figure9(results: PaperResults) -> Evaluation:
    """Goodput by round-trip time and load."""
    records = results.of("fig9.toml")
    loads = sorted({offered(record) for record in records})
    highest = max(load for load in loads)
    port = 0.9 * PORT_BPS / 8e6
    # By the text the highest load is linear up to 80 ms too; `why` in claims.toml says why that needs the port's rate.
    linear = [
        goodput(record) / offered(record)
        for record in records
        if round_trip_s(record) <= LINEAR_UP_TO_S + 1e-9 and offered(record) <= port + 1e-9
    ]
    by_rule = [goodput(record) / rule(record) for record in records]
    measured = {
        "linear_lowest": min(linear),
        "linear_highest": max(linear),
        "rule_lowest": min(by_rule),
        "rule_highest": max(by_rule),
    }
    for record in records:
        if abs(offered(record) - highest) < 1e-9 and round_trip_s(record) > LINEAR_UP_TO_S:
            measured[f"rtt_{milliseconds(record)}ms"] = goodput(record)
    lines = {
        load: sorted((milliseconds(r), goodput(r)) for r in records if abs(offered(r) - load) < 1e-9) for load in loads
    }
    names = {offered(record): _load_name(record) for record in records}
    claim = results.paper.claim("dsan.fig9")
    paper = [(rtt, claim.paper_value(f"rtt_{rtt}ms")) for rtt in range(100, 201, 20)]
    ported = {offered(record) for record in records if of_port(record)}

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.add_subplot()
        framed(axes, ink, "round-trip time, ms", "throughput, MB/s")
        xs = range(60, 201)
        axes.plot(
            xs,
            [WINDOW_BYTES / x / 1000 for x in xs],
            color=ink.muted,
            linewidth=1.0,
            linestyle=(0, (4, 3)),
            label="8 MB / RTT",
        )
        for load, line in lines.items():
            special = load in ported
            colour = ink.curve(1) if special else ink.curve(0)
            axes.plot(
                *zip(*line, strict=True),
                "o-",
                color=colour,
                markersize=3.2,
                linewidth=1.3,
                label="measured, 90 % of a Fibre Channel port" if special else "measured, shares of the 1 Gbit/s line",
            )
            # At RTT 0 every line is still at its load, so that is where its name can stand.
            if special:
                label_line(axes, 2, load + 1.0, names[load], colour, va="bottom")
            else:
                label_line(axes, -3, line[0][1], names[load], colour, ha="right")
        mark_paper(axes, ink, [rtt for rtt, _ in paper], [value for _, value in paper])
        axes.set_ylim(0, 128)
        axes.set_xlim(-21, 206)
        axes.set_xticks(range(0, 201, 20))
        legend(drawing, ink, axes, columns=2)

    figure = Figure(
        "fig9",
        "dsan.fig9",
        "Figure 9: throughput by round-trip time and offered load",
        "One connection, window 8 MB, frames of 2112 B at a constant load. The paper's diamonds are the numbers of its "
        "text; 90 % of a 1 Gbit/s Fibre Channel port (100 MB/s) is the highest load that is still linear at 80 ms.",
        draw,
        (7.4, 4.2),
    )
    return Evaluation({"dsan.fig9": measured}, [figure], [])


def _load_name(record: Record) -> str:
    if of_port(record):
        return f"{offered(record):.0f} MB/s"
    return f"{8e8 * offered(record) / line_bps(record):.0f} %"
