"""Section 3.2: the window from bandwidth and round-trip time, at one end and at both."""

from __future__ import annotations

from elephan.papers.evaluation import (
    Evaluation,
    PaperResults,
    Table,
    line_bps,
    megabytes_per_s,
    part,
    path_packets,
    round_trip_s,
)
from elephan.run_spec.quantities import given

CLAIM = "dr.window"

UNTUNED_BYTES = 65_535
"""The paper's default window."""


@part("window.toml")
def window(results: PaperResults) -> Evaluation:
    """Goodput with each end tuned or not."""
    goodput: dict[tuple[bool, bool], float] = {}
    records = results.of("window.toml")
    for record in records:
        transport = record.spec["flows"][0]["transport"]
        tuned = (given(transport["send_buffer_bytes"]) > UNTUNED_BYTES, transport["window_bytes"] > UNTUNED_BYTES)
        goodput[tuned] = megabytes_per_s(record.metrics["goodput_bps"])
    neither = goodput[False, False]
    measured = {
        "product": path_packets(line_bps(records[0]), round_trip_s(records[0]), 1),
        "sender_only": goodput[True, False] / neither,
        "receiver_only": goodput[False, True] / neither,
        "neither": neither,
        "both": goodput[True, True],
    }
    names = {
        (False, False): "neither",
        (True, False): "the sender",
        (False, True): "the receiver",
        (True, True): "both",
    }
    table = Table(
        CLAIM,
        "One stream, by the end that is tuned",
        ("with 184,320 B", "goodput"),
        tuple((name, f"{goodput[tuned]:.2f} MB/s") for tuned, name in names.items()),
        "The other end has 65,535 B.",
    )
    return Evaluation({CLAIM: measured}, [], [table])
