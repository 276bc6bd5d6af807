"""Results of line tests as tables of text, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elephan.line.methods.ber import CONFIDENCE, BitErrors, Bound
from elephan.line.methods.rfc2544 import BackToBack, LatencyAt, Loss, Result, Throughput
from elephan.line.methods.rfc6349 import TRANSFER_BYTES, Path, TcpRun
from elephan.line.methods.y1564 import Check, Step
from elephan.line.soak import Soak
from elephan.line.text import error_text, ratio, time_text
from elephan.line.trial import Clock, Verdict
from elephan.units import NOTHING, count, duration, plain, pluralize, rate, share, size


@dataclass(frozen=True)
class Table:
    """A table; the first column names the row."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


LIMITS = {
    Verdict.PASSED: "the line's whole rate",
    Verdict.LOST: "the line lost frames above",
    Verdict.GENERATOR: "at least: the generator's limit",
    Verdict.RECEIVER: "at least: the receiver's limit",
}
"""Meaning of a search's end."""


def rfc2544_tables(results: Sequence[Result]) -> list[Table]:
    """Return a table for each of RFC 2544's tests that there are results of."""
    tables = []
    throughputs = [one for one in results if isinstance(one, Throughput)]
    if throughputs:
        tables.append(
            Table(
                "Throughput (RFC 2544, 26.1)",
                ("frame", "of the line", "frames/s", "frames, bit/s", "limit"),
                tuple(
                    (f"{one.frame_bytes} B", share(one.share), count(one.frames_per_s), rate(one.frame_bps),
                     LIMITS[one.limit] if one.rate_bps or one.limit is not Verdict.LOST else "the line lost frames at "
                     "every rate")
                    for one in throughputs
                ),
                "The largest rate at which no frame was lost. The line's share counts preamble and gap.",
            )
        )  # fmt: skip
    latencies = [one for one in results if isinstance(one, LatencyAt)]
    if latencies:
        tables.append(
            Table(
                "Latency, one way (RFC 2544, 26.2)",
                ("frame", "at", "mean", "min", "p99", "max", "variation", "error", "lost"),
                tuple(
                    (
                        f"{one.frame_bytes} B",
                        rate(one.rate_bps),
                        *(time_text(value) for value in (one.mean_ns, one.min_ns, one.p99_ns, one.max_ns)),
                        NOTHING if one.ipdv_ns is None else time_text(one.ipdv_ns),
                        _error(one.clock),
                        count(one.lost),
                    )
                    for one in latencies
                ),
                "Of every frame at the throughput's rate; the mean of all repetitions, of p99 and max the largest. "
                "Clocks of both ends are compared over control frames: the error is what that leaves.",
            )
        )
    losses = [one for one in results if isinstance(one, Loss)]
    if losses:
        tables.append(
            Table(
                "Frame loss (RFC 2544, 26.3)",
                ("frame", "of the line", "sent", "lost", "ratio"),
                tuple(
                    (
                        f"{one.frame_bytes} B",
                        share(one.share),
                        count(one.sent),
                        count(one.lost),
                        f"not known: {one.limit.value}" if one.loss_ratio is None else ratio(one.loss_ratio),
                    )
                    for one in losses
                ),
                "From the line's rate downwards, until two rates lost nothing.",
            )
        )
    bursts = [one for one in results if isinstance(one, BackToBack)]
    if bursts:
        tables.append(
            Table(
                "Back-to-back frames (RFC 2544, 26.4)",
                ("frame", "longest burst", "repetitions", "least", "most", "limit"),
                tuple(
                    (
                        f"{one.frame_bytes} B",
                        f"{count(round(one.frames))} frames",
                        count(one.repetitions),
                        count(one.frames_min),
                        count(one.frames_max),
                        "the longest that was tried" if one.limit is Verdict.PASSED else LIMITS[one.limit],
                    )
                    for one in bursts
                ),
                "The longest burst at the line's rate without a lost frame, on average.",
            )
        )
    return tables


def met(passed: bool | None) -> str:
    """Return a verdict in a word."""
    return {True: "pass", False: "fail", None: "undecided"}[passed]


def y1564_tables(steps: Sequence[Step]) -> list[Table]:
    """Return the table of a service's steps."""
    rows = []
    for step in steps:
        for number, check in enumerate(step.checks):
            first = (step.name, rate(step.sent_bps), rate(step.received_bps)) if number == 0 else ("", "", "")
            rows.append((*first, check.name, _value(check, check.value), _bound(check), met(check.passed)))
    caption = "Rates are of Ethernet frames, without preamble and gap."
    if any(step.passed is None for step in steps):
        caption += " Undecided: an end limited the step, or the clocks' error is larger than the distance to the bound."
    heads = ("step", "sent", "received", "criterion", "measured", "agreed", "verdict")
    return [Table("Steps", heads, tuple(rows), caption)]


def _value(check: Check, value: float | None) -> str:
    if value is None:
        return "not known"
    if check.name.startswith("rate"):
        return rate(value)
    if check.name == "frame loss ratio":
        return ratio(value)
    if check.name == "availability":
        return share(value)
    return time_text(value) + (f" ± {time_text(check.error)}" if check.error else "")


def _bound(check: Check) -> str:
    plain = _value(Check(check.name, None, check.bound, None), check.bound)
    return f"{'≥' if check.is_least else '≤'} {plain}"


def ber_tables(found: BitErrors) -> list[Table]:
    """Return the table of bit error rates."""
    return [
        Table(
            "Bit error rate",
            ("counted in", "errors", "bits", "rate", f"below, with {CONFIDENCE * 100:.0f} %", "above"),
            (
                bound_row("payloads that arrived", found.payload),
                bound_row("all frames, each lost one an error", found.line),
            ),
            "A card drops a frame with a wrong check sequence: its bit error arrives as a lost frame. Without errors "
            "the bound is 3 / bits.",
        )
    ]


def bound_row(what: str, bound: Bound) -> tuple[str, ...]:
    """Return the row of one rate."""
    exact = f"{bound.rate:.2e}" if bound.errors else "0"
    below = f"{bound.upper:.2e}" if bound.bits else NOTHING
    return what, count(bound.errors), f"{bound.bits:.4g}", exact, below, f"{bound.lower:.2e}" if bound.errors else "0"


def tcp_tables(path: Path, runs: Sequence[TcpRun]) -> list[Table]:
    """Return the tables of TCP over a path: the path, and a row for each run."""
    of_path = (
        ("baseline round-trip time (3.2)", duration(path.rtt_s)),
        ("bottleneck (3.2)", rate(path.bottleneck_bps)),
        ("bandwidth-delay product (3.3)", size(path.bdp_bytes)),
        ("MTU, payload of a segment", f"{path.mtu_bytes} B, {path.payload_bytes} B"),
        ("largest TCP throughput (4.1)", rate(path.ideal_bps)),
        (f"ideal time for {size(TRANSFER_BYTES)} (4.1)", duration(TRANSFER_BYTES * 8 / path.ideal_bps)),
    )
    rows = tuple(
        (
            f"{run.window_per_cent} %" + (f", {run.connections} connections" if run.connections > 1 else ""),
            size(run.window_bytes),
            rate(run.expected_bps),
            rate(run.goodput_bps),
            plain(run.transfer_time_ratio),
            duration(run.transfer_s),
            f"{run.efficiency * 100:.2f} %",
            NOTHING if run.buffer_delay is None else share(max(0.0, run.buffer_delay)),
        )
        for run in runs
    )
    heads = (
        "window",
        "of each",
        "window allows",
        "throughput",
        "transfer time ratio",
        f"{size(TRANSFER_BYTES)} in",
        "efficiency",
        "buffer delay",
    )
    caption = (
        "Windows are of the bandwidth-delay product. Transfer time ratio: actual by ideal time (4.1). Efficiency: "
        "bytes that were not sent again (4.2). Buffer delay: increase of the round-trip time over the baseline (4.3)."
    )
    return [Table("The path (RFC 6349)", ("what", "value"), of_path), Table("TCP", heads, rows, caption)]


def soak_tables(found: Soak) -> list[Table]:
    """Return the tables of a soak: its sums, its bit error rates, its parts."""
    totals = found.totals()
    shown = [
        ("measured", duration(totals.span_ns / 1e9)),
        ("frames sent", count(totals.sent)),
        ("bytes sent", f"{totals.sent_bytes:.4e}"),
        ("frames lost by the line", count(totals.line_lost)),
        ("of them not sent, without a carrier", count(totals.no_carrier_frames)),
        ("duplicates, reordered", f"{count(totals.duplicates)}, {count(totals.reordered)}"),
        ("bit errors in payloads", f"{count(totals.bit_errors)} in {pluralize(totals.errored_frames, 'frame')}"),
        ("frames of a wrong length", count(totals.wrong_lengths)),
        ("one-way latency", _range(totals.latency_min_ns, totals.latency_max_ns, totals.clock_error_ns)),
        ("dropped by the receiver itself", count(totals.receiver_drops)),
        ("dropped by the sender itself", count(totals.sender_drops)),
        ("left late, left out by the generator", f"{count(totals.late_frames)}, {count(totals.left_out_frames)}"),
        ("intervals without the receiver's answer", count(totals.unanswered_rows)),
        (
            "of them never known",
            f"{count(totals.unknown_rows)}, with {pluralize(totals.unknown_frames, 'frame')}, in no other sum",
        ),
    ]
    payload, line = totals.bounds
    heads = ("counted in", "errors", "bits", "rate", f"below, with {CONFIDENCE * 100:.0f} %", "above")
    rates = (bound_row("payloads that arrived", payload), bound_row("all frames, each lost one an error", line))
    gaps = dict(found.gaps)
    parts = tuple(
        (
            str(part.number),
            f"{part.start:%Y-%m-%d %H:%M:%S} UTC",
            duration(part.span_ns / 1e9),
            "killed: by its rows" if part.outcome is None else part.outcome.ended or "to its end",
            duration(gaps[part.end].total_seconds()) if part.end in gaps else "",
        )
        for part in found.parts
    )
    return [
        Table("Sums", ("what", "value"), tuple(shown)),
        Table("Bit error rate", heads, rates, "Without errors the bound is 3 / bits."),
        Table("Parts", ("part", "began", "measured", "ended", "then not measured for"), parts),
    ]


def _range(low_ns: int | None, high_ns: int | None, error_ns: int | None) -> str:
    if low_ns is None or high_ns is None:
        return NOTHING
    error = error_text(None if error_ns is None else Clock(0, error_ns))
    return f"{time_text(low_ns)} to {time_text(high_ns)}; {error}"


def _error(clock: Clock | None) -> str:
    if clock is None:
        return "not known"
    return f"± {time_text(clock.error_ns)}" if clock.error_ns else "one clock"
