"""Figure 10 through whole gateways: throughput, frame latency and credits under loss, and settings left open."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from elephan import units
from elephan.papers.drawing import PAPER_LABEL, framed, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, all_over_repetitions, part
from elephan.record import Record
from elephan.report.draw import Ink

from .frames import pairs, payload, stalled_share
from .loss import PAPER_LOSS, dropped_by_queue, loss_of, mean, sent_again
from .setups import ERAS, Goodput, Setup
from .variants import COLOURS, VARIANTS, variant

Groups = dict[tuple[int, str, float], list[Record]]
"""Repetitions by pairs of N_Ports, congestion control and loss rate."""


def _grouped(records: Sequence[Record]) -> Groups:
    groups: Groups = {}
    for record in records:
        groups.setdefault((pairs(record), variant(record), loss_of(record)), []).append(record)
    return groups


def _payloads(records: Sequence[Record]) -> dict[str, Goodput]:
    """Return the payload of each congestion control over the seeds."""
    found: dict[str, list[float]] = {}
    for record in records:
        found.setdefault(variant(record), []).append(payload(record))
    return {name: Goodput(tuple(values)) for name, values in found.items()}


@part("gateways-fig10.toml", "gateways-setups.toml", "gateways-ports.toml")
def gateways_figure10(results: PaperResults) -> Evaluation:
    """Payload by loss rate as the paper states it and with four pairs; set-ups and ports that it leaves open."""
    groups = _grouped(results.of("gateways-fig10.toml"))
    at_paper = [record for record in results.of("gateways-fig10.toml") if loss_of(record) == PAPER_LOSS]
    measured = all_over_repetitions(
        at_paper,
        lambda group: {variant(one) + ("" if pairs(one) == 1 else "_4"): payload(one) for one in group},
    )
    setups = _setups_of(results)
    tables = [_cost_table(groups), _setup_table(setups), _port_table(results.of("gateways-ports.toml"))]
    return Evaluation({"dsan.fig10-gateways": measured}, [_by_loss(results, groups)], tables)


def _setups_of(results: PaperResults) -> list[Setup]:
    """Return every set-up of gateways-setups.toml, the nearest to the paper first."""
    claim = results.paper.claim("dsan.fig10-gateways")
    paper = {name: claim.paper_value(name) for name in VARIANTS}
    found: dict[tuple[str, int, int], list[Record]] = {}
    for record in results.of("gateways-setups.toml"):
        transport = record.spec["flows"][0]["transport"]
        found.setdefault((transport["recovery"], transport["mtu_bytes"], pairs(record)), []).append(record)
    setups = [Setup(*key, _payloads(records), paper) for key, records in found.items()]
    return sorted(setups, key=lambda setup: setup.distance)


def _by_loss(results: PaperResults, groups: Groups) -> Figure:
    claim = results.paper.claim("dsan.fig10-gateways")
    losses = sorted({loss for _, _, loss in groups})
    place = {loss: loss if loss > 0 else min(filter(None, losses)) / math.sqrt(10) for loss in losses}

    def latency_ms(record: Record) -> float:
        return 1000 * float(record.metrics["latency_p99_s"] or 0)

    def line(axes: Any, ink: Ink, count: int, name: str, value: Callable[[Record], float]) -> None:
        runs = [[value(record) for record in groups[count, name, loss]] for loss in losses]
        xs = [place[loss] for loss in losses]
        colour = ink.curve(COLOURS[name])
        axes.fill_between(xs, [min(r) for r in runs], [max(r) for r in runs], color=colour, alpha=0.15, linewidth=0)
        means = [sum(r) / len(r) for r in runs]
        axes.plot(xs, means, "o-", color=colour, markersize=4, linewidth=1.5, label=VARIANTS[name])

    def draw(drawing: Any, ink: Ink) -> None:
        rows = drawing.subplots(2, 2, sharex=True, sharey="row")
        for column, count in enumerate((1, 4)):
            above, below = rows[0][column], rows[1][column]
            framed(above, ink, "", f"{units.pluralize(count, 'pair')}: payload of frames, MB/s")
            framed(below, ink, "loss rate", "frame latency p99, ms")
            for name in VARIANTS:
                line(above, ink, count, name, payload)
                line(below, ink, count, name, latency_ms)
                colour, value = ink.curve(COLOURS[name]), claim.paper_value(name)
                above.scatter([PAPER_LOSS], [value], marker="D", s=52, facecolors="none", edgecolors=colour, lw=1.7)
            for axes in (above, below):
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            below.set_xscale("log")
            below.set_xticks(list(place.values()))
            below.set_xticklabels([_rate(loss) for loss in losses])
            below.minorticks_off()
        rows[0][0].scatter(
            [], [], marker="D", s=40, facecolors="none", edgecolors=ink.text, linewidths=1.4, label=PAPER_LABEL
        )
        legend(drawing, ink, rows[0][0], columns=5)

    return Figure(
        "fig10-gateways",
        claim.id,
        "Figure 10 through whole gateways",
        "RTT 25 ms, 90 % of a 1GFC port offered, SACK, 1500 B, window 8 MB; mean and range of five seeds. The latency "
        "is a frame's, its wait in the sending port included.",
        draw,
        (7.4, 5.2),
    )


def _rate(loss: float) -> str:
    return "0" if loss == 0 else f"{loss:.0e}".replace("e-0", "e-")


def _cost_table(groups: Groups) -> Table:
    rows = []
    for (count, name, loss), records in sorted(groups.items(), key=lambda item: (item[0][0], item[0][2])):
        if loss not in (0.0, PAPER_LOSS):
            continue
        rows.append(
            (
                f"{units.pluralize(count, 'pair')}, loss {_rate(loss)}, {VARIANTS[name]}",
                Goodput(tuple(payload(record) for record in records)).text,
                f"{100 * mean(records, sent_again):.2f} %",
                f"{mean(records, dropped_by_queue):.0f}",
                f"{100 * mean(records, stalled_share):.0f} %",
                units.duration(mean(records, lambda record: float(record.metrics["latency_p99_s"] or 0))),
            )
        )
    heads = ("", "payload, MB/s", "sent again", "queue drops/s", "port without credit", "frame latency p99")
    return Table(
        "dsan.fig10-gateways",
        "Cost through whole gateways",
        heads,
        tuple(rows),
        "Mean (and range of the payload) of five seeds.",
    )


def _setup_table(setups: Sequence[Setup]) -> Table:
    rows = [
        (
            f"{ERAS[setup.recovery]}, {setup.mtu_bytes} B, {units.pluralize(setup.connections, 'pair')}",
            *(setup.goodput[name].text for name in VARIANTS),
            "yes" if setup.in_order else "no",
            f"{math.exp(setup.distance):.2f}",
        )
        for setup in setups
    ]
    paper = setups[0].paper
    rows.insert(0, ("the paper", *(f"{paper[name]:.1f}" for name in VARIANTS), "yes", "1.00"))
    return Table(
        "dsan.fig10-gateways",
        "Set-ups of whole gateways nearest to the paper's numbers",
        ("set-up, MB/s of payload", *VARIANTS.values(), "paper's order", "mean factor off"),
        tuple(rows),
        f"All {len(setups)}, the nearest first; {_in_order(setups)} in the paper's order.",
    )


def _in_order(setups: Sequence[Setup]) -> str:
    count = sum(setup.in_order for setup in setups)
    return "none" if count == 0 else str(count)


def _port_table(records: Sequence[Record]) -> Table:
    groups: dict[tuple[int, int, int], list[Record]] = {}
    for record in records:
        near = record.spec["gateways"][0]
        groups.setdefault((pairs(record), near["rate_bps"], near["buffer_bytes"]), []).append(record)
    rows = []
    for (count, rate, buffer), group in sorted(groups.items()):
        found = _payloads(group)
        both = [record for record in group if variant(record) == "both"]
        rows.append(
            (
                f"{units.pluralize(count, 'pair')}, {rate / 850e6:.0f}GFC, {buffer // 1024} KiB",
                *(found[name].text for name in VARIANTS),
                f"{mean(both, dropped_by_queue):.0f}",
            )
        )
    return Table(
        "dsan.fig10-gateways",
        "Speed of the port and buffer of the gateway",
        ("ports and buffer, MB/s of payload", *VARIANTS.values(), "queue drops/s of both"),
        tuple(rows),
        "NewReno, loss 1e-3; 90 % of a port's rate in all, which is below the IP line's at 1GFC and above it at 2GFC; "
        "far ports of 2GFC. Mean and range of three seeds.",
    )
