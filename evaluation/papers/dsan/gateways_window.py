"""Table 1 and figure 9 through whole gateways: N_Ports, credits, encapsulation, one TCP connection for the pair."""

from __future__ import annotations

from typing import Any

from elephan import units
from elephan.papers.drawing import framed, label_line, legend, mark_paper
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part, round_trip_s
from elephan.record import Record
from elephan.report.draw import Ink

from .frames import PAYLOAD_SHARE, offered, payload, stalled_share, stream
from .window import LINEAR_UP_TO_S, WINDOW_BYTES, milliseconds


@part("gateways-table1.toml")
def gateways_table1(results: PaperResults) -> Evaluation:
    """Throughput by round-trip time: of TCP, and of the frames' payload in it."""
    records = results.of("gateways-table1.toml")
    measured = {f"stream_{milliseconds(record)}ms": stream(record) for record in records}
    measured |= {f"payload_{milliseconds(record)}ms": payload(record) for record in records}
    claim = results.paper.claim("dsan.table1-gateways")
    rows = tuple(
        (
            f"RTT {milliseconds(record)} ms",
            f"{claim.paper_value(f'stream_{milliseconds(record)}ms'):.2f}",
            f"{stream(record):.2f}",
            f"{payload(record):.2f}",
            f"{100 * stalled_share(record):.0f} %",
            units.duration(record.metrics["latency_p50_s"]),
        )
        for record in records
    )
    table = Table(
        claim.id,
        "Table 1 through whole gateways",
        ("", "paper, MB/s", "TCP, MB/s", "payload of frames, MB/s", "port without credit", "frame latency p50"),
        rows,
        f"A frame of 2112 B takes 2176 B of TCP: its payload is {100 * PAYLOAD_SHARE:.2f} % of what TCP carries. The "
        "window is full at every RTT, so that the port waits for credits and a frame waits in the port.",
    )
    return Evaluation({claim.id: measured}, [], [table])


def rule(record: Record) -> float:
    """Return min(load, the payload's share of window / RTT), MB/s."""
    rtt = round_trip_s(record)
    return min(offered(record), PAYLOAD_SHARE * WINDOW_BYTES / rtt / 1e6) if rtt > 0 else offered(record)


@part("gateways-fig9.toml")
def gateways_figure9(results: PaperResults) -> Evaluation:
    """Throughput by round-trip time and load, and the latency of frames."""
    records = results.of("gateways-fig9.toml")
    linear = [payload(record) / offered(record) for record in records if round_trip_s(record) <= LINEAR_UP_TO_S + 1e-9]
    by_rule = [payload(record) / rule(record) for record in records]
    measured = {
        "linear_lowest": min(linear),
        "linear_highest": max(linear),
        "rule_lowest": min(by_rule),
        "rule_highest": max(by_rule),
    }
    highest = max(offered(record) for record in records)
    top = [record for record in records if offered(record) == highest]
    measured |= {
        f"stream_{milliseconds(record)}ms": stream(record) for record in top if round_trip_s(record) > LINEAR_UP_TO_S
    }
    claim = results.paper.claim("dsan.fig9-gateways")
    lines = {load: [record for record in records if offered(record) == load] for load in map(offered, records)}

    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2)
        framed(left, ink, "round-trip time, ms", "payload of frames, MB/s")
        framed(right, ink, "round-trip time, ms", "frame latency p50, ms")
        xs = range(60, 201)
        left.plot(
            xs,
            [PAYLOAD_SHARE * WINDOW_BYTES / x / 1000 for x in xs],
            color=ink.muted,
            linewidth=1.0,
            linestyle=(0, (4, 3)),
            label="8 MB / RTT less encapsulation",
        )
        right.plot([0, 200], [0, 100], color=ink.muted, linewidth=1.0, linestyle=(0, (1, 2)), label="RTT / 2")
        for line in lines.values():
            xs_ms = [milliseconds(record) for record in line]
            left.plot(xs_ms, [payload(r) for r in line], "o-", color=ink.curve(0), ms=3.2, lw=1.3, label="measured")
            latency = [1000 * float(record.metrics["latency_p50_s"] or 0) for record in line]
            right.plot(xs_ms, latency, "o-", color=ink.curve(0), ms=3.2, lw=1.3)
            name = f"{100 * offered(line[0]) / highest * 0.9:.0f} %"
            label_line(left, -4, payload(line[0]), name, ink.curve(0), ha="right")
        paper = [(rtt, claim.paper_value(f"stream_{rtt}ms")) for rtt in range(100, 201, 20)]
        mark_paper(left, ink, [rtt for rtt, _ in paper], [value for _, value in paper])
        left.set_xlim(-30, 206)
        left.set_ylim(0, 105)
        right.set_ylim(bottom=0)
        legend(drawing, ink, left, right)

    figure = Figure(
        "fig9-gateways",
        claim.id,
        "Figure 9 through whole gateways",
        "A pair of N_Ports over gateways with 1GFC ports, window 8 MB; the load is a share of the port's rate. Beyond "
        "window / RTT the ports wait for credits, and frames wait in the ports.",
        draw,
        (7.4, 3.8),
    )
    return Evaluation({claim.id: measured}, [figure], [])
