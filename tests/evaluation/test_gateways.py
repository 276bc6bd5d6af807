"""Closed forms of credits, window and waits, in small parts of what `make gateways` runs; and what its page says."""

from __future__ import annotations

import pytest

from evaluation.gateways import distance, head_of_line, neighbours, page, pairs
from evaluation.gateways.section import mean, payload
from evaluation.runner import Runner

RUNNER = Runner(None)


def test_a_port_gets_what_its_credits_and_its_distance_allow() -> None:
    credits = {"sweep": {"node.0.distance": ["10km", "300km"], "node.0.credits": [4, 64]}, "run.duration": "600ms"}
    windows = {"sweep": {"link.delay": ["5ms"], "flow.window": ["256KiB", "4MiB"]}, "run.duration": "4s"}
    # Bursts leave a part of a window of four packets empty, in the kernel too (tests/cli/test_bursts.py).
    windows["flow.tso_autosizing"] = False
    by_credits, by_window = distance.measure(RUNNER, (credits, windows))
    assert set(by_credits) == {(10, 4), (10, 64), (300, 4), (300, 64)}
    for (km, count), rate in by_credits.items():
        assert rate == pytest.approx(distance.by_credits(km, count), rel=0.01)
    assert by_window[1000, 2**18] == pytest.approx(distance.by_window(1000, 2**18), rel=0.02)
    assert by_window[1000, 2**22] == pytest.approx(distance.PORT_MB_PER_S, rel=0.002)
    text = page.text([distance.section((by_credits, by_window))], "1", "2026-11-23")
    assert "| 10 km | 70.1 (70.1) | 103.3 (103.3) | 6 |" in text


def test_wanted_credits_and_window_are_the_least_that_fill_the_port() -> None:
    for km in (1, 10, 100, 1000):
        wanted = distance.credits_wanted(km)
        assert distance.by_credits(km, wanted) == distance.PORT_MB_PER_S > distance.by_credits(km, wanted - 1)
        window = int(distance.window_wanted(km)) + 1
        assert distance.by_window(km, window) == distance.PORT_MB_PER_S > distance.by_window(km, window - 1000)


def test_in_a_tunnel_all_pairs_wait_for_a_loss_and_over_ifcp_its_own() -> None:
    changes = {"run.duration": "8s", "run.repetitions": 1, "sweep": {"link.loss": [1e-3]}}
    found = head_of_line.measure(RUNNER, changes)
    p95 = {name: mean(records, "latency_p95_s") for (name, _), records in found.items()}
    # 15 losses a second, each of which keeps a connection back for at least a round trip of 50 ms.
    assert p95["FCIP, 1 connection"] > 0.05
    assert p95["FCIP, 1 connection"] >= p95["FCIP, 4 connections"] > p95["FCIP, 16 connections"]
    (ifcp,) = found["iFCP, 1 for each pair", 1e-3]
    assert p95["iFCP, 1 for each pair"] == pytest.approx(0.025, rel=0.01)
    clean = head_of_line.untouched([ifcp])
    assert all(flow["latency_max_s"] < 0.027 for flow in clean)
    assert "FCIP, 4 connections, loss 1e-3" in head_of_line.section(found).text


def test_below_the_paths_rate_every_pair_gets_what_it_offers() -> None:
    changes = {"link.bandwidth": "1Gbit/s", "run.duration": "2s", "sweep": {"flow.workload.load": ["4Mbit/s"]}}
    found = pairs.measure(RUNNER, changes)
    assert len(found) == 2
    for record in found.values():
        # Poisson arrivals: 47,000 frames in the measured second.
        assert payload(record) == pytest.approx(200 * 4 / 8, rel=0.02)
        assert record.metrics["jain_index"] == pytest.approx(1, abs=0.01)
        assert pairs.frames_per_s(record) > 1000
    assert "| iFCP, 200 connections, 100 MB/s offered |" in pairs.section(found).text


def test_credits_leave_a_neighbour_room_where_ports_are_slower_than_the_path() -> None:
    short = {"run.duration": "4s", "measure.warmup": "1s", "run.repetitions": 1}
    controls = "reno, storage_friendly(reduction=1/8, congestion_avoidance=off)"
    found = neighbours.measure(short, controls, store="none")
    kept = {
        (case, neighbours.name(row).partition("(")[0]): neighbours.kept(row)
        for case, comparison in found.items()
        for row in comparison.rows
    }
    assert kept["one 1GFC port", "reno"] == kept["four 2GFC ports", "reno"] == 1
    assert kept["four 2GFC ports", "storage_friendly"] < 0.1
    assert kept["one 1GFC port", "storage_friendly"] > 0.15
    assert "one 1GFC port, reno" in neighbours.section(found).text
