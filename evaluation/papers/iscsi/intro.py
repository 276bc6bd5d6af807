"""The introduction: how long Reno takes to regain a fast path after one loss, and what loss rate it bears there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from elephan.papers.drawing import framed, label_line, legend, mark_paper
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, line_bps, part, round_trip_s
from elephan.record import Record
from elephan.report.draw import Ink
from elephan.run_spec.quantities import given

from . import sawtooth
from .sawtooth import Window, constant, line_window, loss_for_window, rounds_to_recover

CLAIM = "iscsi.intro"

PER_ACK = "reno_per_ack.c"
"""Reno that grows by 1 / cwnd per ACK (evaluation/papers/iscsi)."""

SEGMENTS_PER_ACK = 2
"""Of a receiver that delays its ACKs (RFC 5681, 4.2)."""


def growth(record: Record) -> float:
    """Return segments per round trip in congestion avoidance that the set-up of a record should give."""
    transport = record.spec["flows"][0]["transport"]
    counted = transport["congestion_control"].endswith(PER_ACK) and transport["delayed_ack"]
    return 1 / SEGMENTS_PER_ACK if counted else 1.0


def name_of(record: Record) -> str:
    """Return a set-up in words."""
    transport = record.spec["flows"][0]["transport"]
    if not transport["congestion_control"].endswith(PER_ACK):
        return "segments counted (Linux today)"
    return "ACKs counted, every 2nd segment acknowledged" if growth(record) < 1 else "ACKs counted, one per segment"


@dataclass(frozen=True)
class Recovery:
    """One loss on a full path."""

    record: Record
    window: Window
    lost: int
    back: int

    @property
    def rounds(self) -> float:
        """Round trips until the window was back."""
        return self.window.rounds(self.lost, self.back)

    @property
    def minutes(self) -> float:
        """The same in time."""
        return float(self.window.time_s[self.back] - self.window.time_s[self.lost]) / 60

    @property
    def missed_bytes(self) -> float:
        """Additional data that a full line would have carried meanwhile."""
        full = float(self.window.goodput_bps[self.lost - 2])
        took = float(self.window.time_s[self.back] - self.window.time_s[self.lost])
        return (full - self.window.goodput(self.lost, self.back)) * took / 8


@dataclass(frozen=True)
class Lossy:
    """Whole periods of the sawtooth at a loss rate."""

    loss: float
    per_round: float
    mean: float
    """Window in the mean over round trips."""
    use: float
    """Goodput as a part of what a full line carries."""

    @property
    def constant(self) -> float:
        """Mean window times the square root of the loss rate."""
        root: float = self.loss**0.5
        return self.mean * root


def _recovery(results: PaperResults, record: Record) -> Recovery:
    window = Window.of(results.series(record))
    return Recovery(record, window, *window.regained())


def _lossy(results: PaperResults, record: Record) -> Lossy:
    spec = record.spec["links"][record.spec["flows"][0]["route"][0]]
    window = Window.of(results.series(record))
    start, end = window.periods(given(record.spec["flows"][0]["transport"]["initial_ssthresh"]))
    use = window.goodput(start, end) / _full(record)
    loss = spec["loss"]
    assert loss["kind"] == "every_nth", "a scenario of the paper's"
    return Lossy(1 / loss["n"], growth(record), window.mean(start, end), use)


def _full(record: Record) -> float:
    """Return the payload that a full line carries, bit/s: 20 B of IP, 20 B of TCP and 12 B of timestamps go off."""
    return line_bps(record) * (sawtooth.PACKET_BYTES - 52) / sawtooth.PACKET_BYTES


@part("recovery.toml", "queue.toml", "loss.toml")
def introduction(results: PaperResults) -> Evaluation:
    """The two numbers, computed and simulated."""
    recoveries = [_recovery(results, record) for record in results.of("recovery.toml")]
    losses = [_lossy(results, record) for record in results.of("loss.toml")]
    queued = results.of("queue.toml")[0]
    delayed = next(item for item in recoveries if growth(item.record) < 1)
    ruled = next(
        item for item in recoveries if PER_ACK not in item.record.spec["flows"][0]["transport"]["congestion_control"]
    )
    by_rule = {item.loss: item for item in losses if item.per_round == 1}
    path = line_window(delayed.record)
    computed = loss_for_window(path)
    least = min(by_rule)
    measured = {
        "rounds_computed": rounds_to_recover(path, 1 / SEGMENTS_PER_ACK),
        "rounds_delayed": delayed.rounds,
        "rounds_rule": ruled.rounds,
        "minutes": delayed.minutes,
        "loss_computed": computed,
        "constant": by_rule[2e-8].constant,
        "bit_error_rate": computed / (8 * sawtooth.PACKET_BYTES),
        "use_2e-6": by_rule[2e-6].use,
        "use_2e-7": by_rule[2e-7].use,
        "use_2e-8": by_rule[2e-8].use,
        "use_least": by_rule[least].use,
    }
    return Evaluation(
        {CLAIM: measured},
        [_recovery_figure(results, recoveries), _loss_figure(path, losses)],
        [_recovery_table(recoveries, queued), _loss_table(losses)],
    )


def _recovery_figure(results: PaperResults, recoveries: list[Recovery]) -> Figure:
    claim = results.paper.claim(CLAIM)

    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.add_subplot()
        framed(axes, ink, "minutes since the loss", "cwnd, packets")
        # The last two lie on each other; colours as in the figure of losses.
        styles: list[tuple[int, Any]] = [(1, "-"), (2, "-"), (0, (0, (4, 3)))]
        for item, (colour, style) in zip(recoveries, styles, strict=True):
            window, end = item.window, item.back + 80
            axes.plot(
                (window.time_s[:end] - window.time_s[item.lost]) / 60,
                window.cwnd[:end],
                color=ink.curve(colour),
                linestyle=style,
                linewidth=1.6,
                label=name_of(item.record),
            )
        full = line_window(recoveries[0].record)
        axes.axhline(full, color=ink.muted, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
        label_line(axes, 8.6, full * 1.035, f"rate x RTT: {full:.0f} packets", ink.muted)
        mark_paper(axes, ink, [claim.paper_value("minutes")], [full], "the paper: 8300 round trips, 14 min")
        axes.set_ylim(0, 9400)
        axes.set_xlim(-0.4, 15)
        legend(drawing, ink, axes, columns=2)

    return Figure(
        "recovery",
        CLAIM,
        "One loss at 1 Gbit/s and 100 ms",
        "Window after one lost packet on a full path whose queue is empty. By the paper's own rule, one segment per "
        "round trip, half a window takes half as many round trips as it says; its number needs delayed ACKs that "
        "are counted one by one.",
        draw,
    )


def _loss_figure(path: float, losses: list[Lossy]) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2)
        framed(left, ink, "loss rate", "mean window, packets")
        framed(right, ink, "loss rate", "use of the line, %")
        left.set_yscale("log")
        span = [5e-9, 4e-6]
        left.plot(
            span,
            [sawtooth.MATHIS / loss**0.5 for loss in span],
            color=ink.text,
            linewidth=0.9,
            linestyle=(0, (4, 3)),
            label="1.2 / sqrt(p), the paper's relation",
        )
        growths = ((1.0, "1 segment per round trip"), (0.5, "1/2 segment (delayed ACKs)"))
        for colour, (per_round, name) in enumerate(growths):
            found = sorted((item.loss, item.mean, 100 * item.use) for item in losses if item.per_round == per_round)
            rates, means, uses = zip(*found, strict=True)
            left.plot(rates, means, "o", color=ink.curve(colour), markersize=5, label=name)
            right.plot(rates, uses, "o-", color=ink.curve(colour), markersize=5, linewidth=1.4, label=name)
        for axes in (left, right):
            axes.set_xscale("log")
            axes.set_xlim(*span)
        left.axhline(path, color=ink.muted, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
        left.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        right.set_ylim(0, 108)
        mark_paper(left, ink, [2e-8], [path], "the paper: 2e-8 for full use")
        mark_paper(right, ink, [2e-8], [100], "the paper: 2e-8 for full use")
        legend(drawing, ink, left, columns=2)

    return Figure(
        "loss",
        CLAIM,
        "Reno's window and use of 1 Gbit/s by loss rate",
        "Every n-th packet lost, whole periods of the sawtooth, a queue that takes its top. The mean window is the "
        "relation's; but a mean that fills the line leaves it partly idle in the lower half of each period.",
        draw,
    )


def _recovery_table(recoveries: list[Recovery], queued: Record) -> Table:
    rows = []
    for item in recoveries:
        record = item.record
        rows.append(
            (
                name_of(record),
                f"{growth(record):g}",
                f"{rounds_to_recover(line_window(record), growth(record)):.0f}",
                f"{item.rounds:.0f}",
                f"{rounds_to_recover(line_window(record), growth(record)) * round_trip_s(record) / 60:.1f}",
                f"{item.minutes:.1f}",
                f"{item.missed_bytes / 1e9:.1f} GB",
            )
        )
    share = float(queued.metrics["goodput_bps"] or 0) / _full(queued)
    return Table(
        CLAIM,
        "Until the window is rate x RTT again",
        ("growth", "per round", "rounds, computed", "simulated", "min, computed", "simulated", "not sent"),
        tuple(rows),
        "Computed: half of rate x RTT / packet, over growth per round. Not sent: what a full line would have carried "
        "more. "
        f"All without a standing queue; with a queue of one rate x RTT the same flow uses {share:.1%} of the line "
        "over 300 s with its own losses (queue.toml).",
    )


def _loss_table(losses: list[Lossy]) -> Table:
    return Table(
        CLAIM,
        "Reno at a loss rate",
        ("loss rate", "per round", "mean window, rule", "simulated", "window x sqrt(p)", "use of the line"),
        tuple(
            (
                f"{item.loss:.2g}",
                f"{item.per_round:g}",
                f"{constant(item.per_round) / item.loss**0.5:.0f}",
                f"{item.mean:.0f}",
                f"{item.constant:.3f}",
                f"{item.use:.1%}",
            )
            for item in losses
        ),
        "Rule: sqrt(3 r / 2p), r segments per round trip; the paper's 1.2 is that of r = 1.",
    )
