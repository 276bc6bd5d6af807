"""Outcomes of line tests as lines of text."""

from __future__ import annotations

from elephan.line.trial import Clock, Latency, Outcome, Received, Row, Sent
from elephan.units import NOTHING, count, digits, duration, pluralize, rate


def sent_text(sent: Sent) -> str:
    """Return frames and rate of a generator, and the frames that it did not send in time."""
    seconds = sent.span_ns / 1e9
    parts = [f"{count(sent.frames)} frames"]
    if seconds:
        frames = f"{digits(sent.frames / seconds)} frames/s" if sent.frames else NOTHING
        parts.append(f"{rate(sent.bytes * 8 / seconds)} of frames ({frames}) in {duration(seconds)}")
    text = ", ".join(parts)
    if sent.late_frames:
        text += f"; {count(sent.late_frames)} left late, by up to {duration(sent.late_max_ns / 1e9)}"
    if sent.left_out_frames:
        text += f"; {count(sent.left_out_frames)} left out: the generator had no time for them"
    if sent.no_carrier_frames:
        text += f"; {count(sent.no_carrier_frames)} not sent: the interface had no carrier"
    if sent.interface_drops:
        text += f"; {count(sent.interface_drops)} dropped by the sender's own interface, not by the line"
    return text


def received_text(got: Received, sent_frames: int | None = None) -> str:
    """Return the counts of a receiver; with the number of frames sent, the loss as a ratio."""
    lost = f"{count(got.lost)} lost"
    if sent_frames and got.lost:
        lost += f" ({ratio(got.lost / sent_frames)})"
    parts = [f"{count(got.frames)} frames", lost]
    if got.loss_events:
        parts.append(f"{pluralize(got.loss_events, 'gap')}, the longest of {pluralize(got.longest_loss, 'frame')}")
    if got.duplicates:
        parts.append(pluralize(got.duplicates, "duplicate"))
    if got.reordered:
        parts.append(f"{count(got.reordered)} reordered, by up to {pluralize(got.reorder_extent_max, 'frame')}")
    errors = f"{count(got.bit_errors)} bit errors"
    if got.bit_errors:
        errors += f" in {pluralize(got.errored_frames, 'frame')}"
    parts.append(f"{errors} in {got.bits_checked:.4g} bits" if got.bits_checked else errors)
    if got.wrong_lengths:
        parts.append(f"{count(got.wrong_lengths)} of a wrong length")
    if got.bad_headers:
        parts.append(pluralize(got.bad_headers, "bad header"))
    text = ", ".join(parts)
    for drops, who in ((got.ring_drops, "kernel"), (got.interface_drops, "interface")):
        if drops:
            text += f"; {count(drops)} dropped by the receiver's own {who}, not by the line"
    return text


def latency_text(latency: Latency | None, clock: Clock | None, ipdv_mean_ns: int | None = None) -> str:
    """Return one-way latency with the error that the clocks allow."""
    if latency is None:
        return f"{NOTHING}: no frame arrived"
    shown = {
        "min": latency.min,
        "mean": latency.mean,
        "p50": latency.p50,
        "p99": latency.p99,
        "p99.9": latency.p999,
        "max": latency.max,
    }
    text = ", ".join(f"{name} {time_text(value)}" for name, value in shown.items())
    if ipdv_mean_ns is not None:
        text += f"; variation {duration(ipdv_mean_ns / 1e9)} on average"
    return text + f"; {error_text(clock)}"


def time_text(value_ns: float) -> str:
    """Return a time; one below 0 is the clocks' error, and is shown."""
    return duration(value_ns / 1e9) if value_ns >= 0 else f"-{duration(-value_ns / 1e9)}"


def faults(lost: int, no_carrier: int, bit_errors: int, wrong_lengths: int) -> list[str]:
    """Return the faults of a line in words; `lost` frames are without those that found no carrier."""
    found = [f"{pluralize(lost, 'frame')} lost"] if lost else []
    found += [f"{pluralize(no_carrier, 'frame')} not sent without a carrier"] if no_carrier else []
    found += [pluralize(bit_errors, "bit error")] if bit_errors else []
    return found + ([f"{pluralize(wrong_lengths, 'frame')} of a wrong length"] if wrong_lengths else [])


def error_text(clock: Clock | None) -> str:
    """Return the largest error of a latency."""
    if clock is None:
        return "clocks were not compared: the error is not known"
    if not clock.error_ns:
        return "both ends have one clock"
    return f"± {duration(clock.error_ns / 1e9)} by the clocks"


def ratio(value: float) -> str:
    """Return a ratio that may be very small: 0.0123 as "1.23 %", 3e-7 as "3.00e-07"."""
    if value == 0:
        return "0"
    return f"{digits(value * 100)} %" if value >= 1e-4 else f"{value:.2e}"


def outcome_lines(outcome: Outcome) -> list[str]:
    """Return a stream's outcome for a terminal."""
    lines = [f"sent:     {sent_text(outcome.sent)}"]
    got = outcome.received
    if got is None:
        return [*lines, "received: the receiver gave no counts"]
    lines.append(f"received: {received_text(got, outcome.sent.frames)}")
    lines.append(f"latency:  {latency_text(got.latency_ns, outcome.clock, got.ipdv_mean_ns)}")
    return lines


def row_text(row: Row) -> str:
    """Return one interval of a series."""
    at = f"{duration(row.time_ns / 1e9):>12}: {count(row.sent)} sent"
    if not row.is_answered:
        carrier = f", {count(row.no_carrier_frames)} not sent without a carrier" if row.no_carrier_frames else ""
        return f"{at}{carrier}, the receiver did not answer"
    parts = [f"{at}, {count(row.received)} received", f"{count(row.lost)} lost"]
    for value, what in (
        (row.bit_errors, "bit errors"),
        (row.late_frames, "left late"),
        (row.left_out_frames, "left out"),
        (row.no_carrier_frames, "not sent without a carrier"),
    ):
        parts += [f"{count(value)} {what}"] if value else []
    if row.latency_mean_ns is not None:
        parts.append(f"latency {time_text(row.latency_mean_ns)}")
    return ", ".join(parts)
