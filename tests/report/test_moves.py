"""Cost of a move, from a record and series made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from elephan.record import Record
from elephan.report.moves import moves_of
from elephan.store.series import Series, table

LINKS = [{"delay_ns": delay_ns, "rate_bps": 10**9} for delay_ns in (0, 50_000_000, 10_000_000, 50_000_000)]


def record_of(**more: Any) -> Record:
    """A flow that moves from link 1 to link 2 at 5 s."""
    events = [
        {"when": {"kind": "at", "time_ns": 1}, "action": {"kind": "delay", "link": 0, "delay_ns": 0}},
        {
            "when": {"kind": "at", "time_ns": 5 * 10**9},
            "action": {"kind": "move", "flows": [0], "route": [0, 2], "return_route": None},
        },
    ]
    spec = {
        "links": [dict(link) for link in LINKS],
        "events": events,
        "flows": [{"route": [0, 1], "return_route": [3]}],
    }
    values: dict[str, Any] = {
        "id": "0" * 16,
        "scenario": {"name": "made"},
        "backend": "sim",
        "parameters": {},
        "seed": 1,
        "version": "0",
        "metrics": {},
        "flows": [{"name": "f"}],
        "links": [],
        "event_times_s": [0.0, 5.0],
        "host": {},
        "created": "",
        "spec": spec,
    }
    return Record(**{**values, **more})


def series_of(rates: list[float], duplicates: list[int] | None = None, dropped: list[int] | None = None) -> Series:
    """Samples every 0.1 s."""
    count = len(rates)
    time_s = 0.1 * np.arange(1, count + 1)
    flow: dict[str, Any] = {
        "time_s": time_s,
        "flow": np.zeros(count, dtype=np.int32),
        "goodput_bps": np.array(rates, dtype=np.float64),
        "retransmitted_segments": np.zeros(count, dtype=np.uint64),
    }
    if duplicates is not None:
        flow["duplicate_acks"] = np.array(duplicates, dtype=np.uint64)
    lost = np.array(dropped if dropped is not None else [0] * count, dtype=np.uint64)
    link = {
        "time_s": np.tile(time_s, 2),
        "link": np.repeat(np.arange(2, dtype=np.int32), count),
        "dropped_packets": np.concatenate([lost, np.zeros(count, dtype=np.uint64)]),
    }
    return Series(table(flow), table(link))


def test_rates_dip_and_recovery_are_counted_from_the_move() -> None:
    # 1 before; 1.4 for 0.1 s, 0.2 for 1 s, 0.5 for 1 s, then 1.
    rates = [1.0] * 50 + [1.4] + [0.2] * 10 + [0.5] * 10 + [1.0] * 80
    (move,) = moves_of(record_of(), series_of(rates))
    assert (move.flow, move.time_s, move.route_after) == (0, 5.0, (0, 2))
    assert move.rtt_before_s == pytest.approx(0.1) and move.rtt_after_s == pytest.approx(0.06)
    assert move.before_bps == pytest.approx(1.0) and move.peak_bps == pytest.approx(1.4)
    assert move.least_bps == pytest.approx(0.2) and move.least_at_s == pytest.approx(0.1)
    assert move.dip == pytest.approx(0.8)
    # The first second at 0.95 begins within the last tenth of 0.5.
    assert move.back_s(0.95) == pytest.approx(2.0)
    assert move.back_s(1.05) is None, "the peak came before the dip"
    assert move.back_s(0.2 - 1e-9) == 0, "it was never slower"


def test_duplicate_acks_and_losses_are_those_of_the_wake() -> None:
    duplicates = [7] * 50 + [10] * 50 + [90] * 200
    dropped = [3] * 50 + [4, 8] + [8] * 50 + [20] * 198
    (move,) = moves_of(record_of(), series_of([1.0] * 300, duplicates, dropped))
    # 20 round trips are 2 s; the wake is 10 s, which end at 15 s.
    assert move.duplicate_acks == 83
    assert (move.dropped_early, move.dropped) == (5, 17)


def test_what_a_backend_does_not_know_is_none_and_a_move_that_did_not_happen_is_not_there() -> None:
    (move,) = moves_of(record_of(), series_of([1.0] * 100))
    assert move.duplicate_acks is None
    assert moves_of(record_of(event_times_s=[0.0, None]), series_of([1.0] * 100)) == []
    assert moves_of(record_of(event_times_s=[]), series_of([1.0] * 100)) == []
    assert moves_of(record_of(), series_of([1.0] * 55)) == [], "not a whole second after it"


def test_a_hole_that_is_filled_is_no_rate() -> None:
    # Data that waited for a lost segment comes in the tenth before the move: 3 Gbit/s over a link of 1 Gbit/s.
    (move,) = moves_of(record_of(), series_of([1e9] * 49 + [3e9] + [1e9] * 80))
    assert move.before_bps == 1e9
    assert move.dip == pytest.approx(0)


def test_a_burst_of_what_waited_is_not_being_back() -> None:
    # Nothing for 2 s, then all of it within a second, then half the rate: never back.
    rates = [1.0] * 50 + [0.0] * 20 + [2.0] * 10 + [0.5] * 60
    record = record_of()
    for link in record.spec["links"]:
        link["delay_ns"] = link["delay_ns"] * 5
    (move,) = moves_of(record, series_of(rates))
    assert move.rtt_before_s == pytest.approx(0.5)
    assert move.back_s(0.95) is None


def test_samples_that_are_late_by_some_us_tell_the_rate_before() -> None:
    series = series_of([1.0] * 100)
    late = np.asarray(series.flow.column("time_s")) + 1e-5 * (np.arange(100) % 7)
    flow = {name: np.asarray(series.flow.column(name)) for name in series.flow.column_names} | {"time_s": late}
    (move,) = moves_of(record_of(), Series(table(flow), series.link))
    assert move.before_bps == pytest.approx(1.0)


def test_a_move_between_two_samples_counts_from_the_one_before() -> None:
    # Samples of a real clock, each a little late; immediate losses come before the next one.
    times = 0.1 * np.arange(1, 151) + np.linspace(0.0001, 0.0149, 150)
    series = series_of([1.0] * 50 + [0.5] * 100, dropped=[0] * 50 + [7] * 100)
    flow = series.flow.set_column(0, "time_s", pa.array(times))
    link = series.link.set_column(0, "time_s", pa.array(np.tile(times, 2)))
    (move,) = moves_of(record_of(event_times_s=[0.0, 5.06]), Series(flow, link))
    assert move.before_bps == pytest.approx(1.0)
    assert move.peak_bps == pytest.approx(0.5)
    assert (move.dropped_early, move.dropped) == (7, 7)
