"""Tables of docs/results/iscsi.md, from what was measured."""

from __future__ import annotations

from itertools import product

from evaluation.performance.iscsi_beyond import joined
from evaluation.performance.iscsi_knee import CONNECTIONS, DEPTHS, text_of


def test_settings_that_cost_the_same_are_one_row() -> None:
    rows = []
    switch = ("Yes", "No")
    for r2t, immediate, first, burst in product(switch, switch, ("8 KiB", "64 KiB"), ("64 KiB", "256 KiB")):
        small = "2" if (r2t, immediate) == ("Yes", "No") else "1"
        unasked = r2t == "No" and first == "64 KiB"
        large = "2" if burst == "256 KiB" else "4" if unasked else "5"
        rows.append([r2t, immediate, first, burst, small, "1" if unasked else "2", large])
    assert joined(rows) == [
        ["Yes", "Yes", "any", "64 KiB, 256 KiB", "1", "2", "5, 2"],
        ["Yes", "No", "any", "64 KiB, 256 KiB", "2", "2", "5, 2"],
        ["No", "any", "8 KiB", "64 KiB, 256 KiB", "1", "2", "5, 2"],
        ["No", "any", "64 KiB", "64 KiB, 256 KiB", "1", "1", "4, 2"],
    ]


def test_rows_that_lack_a_value_of_a_key_stay_apart() -> None:
    rows = [["Yes", "Yes", "8 KiB", "64 KiB", "1"], ["No", "Yes", "8 KiB", "64 KiB", "2"]]
    assert joined(rows) == rows


def test_the_knee_and_the_faults_of_the_emulator_are_told() -> None:
    reads = {"bytes": 4e6, "latency_p50_ns": 41_000_000, "latency_p99_ns": 46_000_000}
    points = [
        {"depth": depth, "connections": count, "elapsed_ns": 4e9, "reads": reads}
        for count, depth in product(CONNECTIONS, DEPTHS)
    ]
    text = text_of({"points": points, "knee": {"depth": 64, "connections": 4}}, ["1 packet in 100 came late"])
    assert text.startswith("The knee is at a depth of 64, with 4 connections.")
    assert "did not honour the path: 1 packet in 100 came late." in " ".join(text.split())
    assert "| MB/s, 4 connections | 1.0 |" in text and "| p99, ms | 46 |" in text
