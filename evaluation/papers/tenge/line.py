"""Section 3: the line at full load for days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from elephan.papers.evaluation import Evaluation, PaperResults, Table, part
from elephan.record import Record

CLAIM = "tenge.line"

HOURS = {327_602_470_000_000: "91h", 355_705_300_000_000: "98h"}
"""Durations, ns."""

NO_ERROR = 3.0
"""No error in n bits: with 95 % confidence fewer than 3 / n are wrong (-ln 0.05)."""


def frame_bytes_of(record: Record) -> float:
    """Return what was sent, bytes of frames."""
    frames: Mapping[str, Any] = record.spec["background"][0]["frames"]
    framing = frames["framing"]
    sizes = [max(n + framing["header_bytes"], framing["min_frame_bytes"]) for n in frames["packets_bytes"]]
    return float(record.background[0]["sent_packets"]) * float(np.mean(sizes))


def error_rate_of(record: Record) -> float:
    """Return the bit error rate of the line."""
    loss: Mapping[str, Any] = record.spec["links"][0]["loss"]
    return float(loss.get("probability_e18", 0)) / 1e18


@part("line.toml")
def line(results: PaperResults) -> Evaluation:
    """Bytes that a full line carries, and frames that bit errors take, over both durations."""
    claim = results.paper.claim(CLAIM)
    measured: dict[str, float] = {"claimed": 1.0}
    rows = []
    for duration_ns, hours in HOURS.items():
        runs = [record for record in results.of("line.toml") if record.spec["duration_ns"] == duration_ns]
        sent = frame_bytes_of(runs[0]) / 1e14
        measured[f"bytes_{hours}"] = sent
        bits = claim.paper_value(f"bytes_{hours}") * 8e14
        row = [hours, f"{sent:.4f}e14", f"{bits / 8e14:.4f}e14", f"{NO_ERROR / bits:.2e}"]
        for rate in (0.0, 1e-15, 1e-12):
            counts = [float(record.links[0]["dropped_by_loss"]) for record in runs if error_rate_of(record) == rate]
            row.append(f"{np.mean(counts):.1f}")
        rows.append(tuple(row))
    all_bits = sum(claim.paper_value(f"bytes_{hours}") for hours in HOURS.values()) * 8e14
    measured["bound_both"] = NO_ERROR / all_bits / 1e-15
    heads = ("", "bytes, full line", "bytes, paper", "rate below, 95 %", "lost at 0", "at 1e-15", "at 1e-12")
    caption = "Lost: frames, mean of five seeds. The bound is 3 / n for the paper's n bits without an error."
    return Evaluation({CLAIM: measured}, [], [Table(CLAIM, "The line at full load", heads, tuple(rows), caption)])
