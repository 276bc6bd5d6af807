"""docs/howto/measure-a-path.md between two sites: estimates against what the path was set to, by arithmetic."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace
from typing import Any

import pytest

from elephan.path.testbed import ip
from tests.field.conftest import IPERF, REFLECTOR, WHOLE, whole
from tests.field.judging import black_hole, ping
from tests.field.network import RATE_BPS, Field

TRIES = 3


def measured(field: Field, test: str, *options: str, towards: str = "") -> dict[str, Any]:
    """Return a test's outcome. It may refuse, as the page says, where the machine does not send in time."""
    refusals = []
    for _ in range(TRIES):
        done = field.elephan("measure", test, towards or f"{field.b.address}:{REFLECTOR}", "--json", *options)
        if done.returncode == 0:
            found: dict[str, Any] = json.loads(done.stdout)
            return found
        assert done.returncode == 1 and "refused: " in done.stderr, done.stderr
        refusals.append(done.stderr.strip().splitlines()[-1])
    pytest.skip(f"{TRIES} refusals: {refusals[-1]}")


def estimate(outcome: dict[str, Any], quantity: str) -> tuple[float, float, float]:
    """Return value and interval of an estimate."""
    (found,) = [one for one in outcome["estimates"] if one["quantity"] == quantity]
    return found["value"], found.get("low", math.nan), found.get("high", math.nan)


LOADED = ("--set", f"line_rate_bps={RATE_BPS}", "--set", "share_ppm=300000")


@pytest.mark.parametrize("name", ["address", "address6"])
def test_the_round_trip_is_that_of_ping_by_both_protocols(field: Field, name: str) -> None:
    field.set("path.rtt=35ms")
    towards = f"[{field.b.address6}]:{REFLECTOR}" if name == "address6" else ""
    value, _, _ = estimate(measured(field, "stamp", "--count", "40", "--interval", "20ms", towards=towards), "rtt_s")
    seen = statistics.median(ping(field, "-c20"))
    assert 0.035 <= value < 0.045 and abs(value - seen) < 0.003, (value, seen)


def test_a_host_of_the_book_needs_no_reflector(field: Field) -> None:
    value, _, _ = estimate(measured(field, "stamp", "--count", "20", "--interval", "20ms", towards="b"), "rtt_s")
    assert 0.020 <= value < 0.030


def test_losses_by_direction(field: Field) -> None:
    field.set("path.loss={ every = 10 }", "path.reverse.loss={ every = 5 }")
    outcome = measured(field, "stamp", "--count", "200", "--interval", "10ms")
    # Of 200 packets 20 are lost there, and of the 180 replies 36; pings of neighbours and ARP count as well.
    value, low, high = estimate(outcome, "loss")
    assert abs(value - 56 / 200) <= 3 / 200 and low < 56 / 200 < high, outcome


@pytest.mark.measures_time
def test_the_capacity_is_the_line_s_rate(field: Field) -> None:
    for rate in (RATE_BPS, 12_000_000) if WHOLE else (12_000_000,):
        field.set(f"path.bandwidth={rate}bit/s")
        value, low, high = estimate(measured(field, "capacity", *LOADED), "capacity_bps")
        assert abs(value / rate - 1) < 0.08 and low * 0.95 <= rate <= high * 1.05, value


@whole
@pytest.mark.measures_time
def test_neighbours_are_what_is_not_available(field: Field) -> None:
    field.set("background.enabled=true", "background.rate=16Mbit/s")
    value, _, _ = estimate(measured(field, "available", *LOADED), "available_bps")
    assert abs(value - 24e6) < 6e6


@pytest.mark.measures_time
def test_a_steady_loss_and_a_policer_are_told_apart(field: Field) -> None:
    if WHOLE:
        field.set("path.loss=0.03")
        value, low, high = estimate(measured(field, "loss", *LOADED), "loss")
        assert 0.02 < value < 0.04 and low <= 0.033 and high >= 0.027
    field.set("path.loss=0", "path.policer={ rate = '8Mbit/s', burst = '60kB' }")
    outcome = measured(field, "policer", *LOADED)
    assert abs(estimate(outcome, "policer_rate_bps")[0] / 8e6 - 1) < 0.15, outcome


def test_the_mtu_is_found_by_the_router_s_answer_by_both_protocols(field: Field) -> None:
    field.set("path.mtu=1380B")
    told = measured(field, "mtu")
    assert estimate(told, "path_mtu_bytes")[0] == 1380
    assert any("10.77.1.1" in note for note in told["notes"])
    towards = f"[{field.b.address6}]:{REFLECTOR}"
    assert estimate(measured(field, "mtu", towards=towards), "path_mtu_bytes")[0] == 1380


@whole
def test_the_mtu_is_found_behind_a_router_that_is_silent(field: Field) -> None:
    field.set("path.mtu=1380B")
    with black_hole(field):
        silent = measured(field, "mtu")
    assert estimate(silent, "path_mtu_bytes")[0] == 1380
    assert any("lost without a message" in note for note in silent["notes"]), silent["notes"]


def test_the_routers_are_the_namespaces_between(field: Field) -> None:
    outcome = measured(field, "hops", "--set", "packets=0")
    assert estimate(outcome, "hops")[0] == 3
    for hop, router in ((1, "10.77.1.1"), (2, "198.18.0.2")):
        assert any(note.startswith(f"hop {hop}: {router}, ") for note in outcome["notes"]), outcome["notes"]


def test_throughput_is_iperf3_s_and_bounded(field: Field) -> None:
    field.set("path.bandwidth=10Mbit/s")
    towards = f"{field.b.address}:{IPERF}"
    outcome = measured(field, "throughput", "--bytes", "4MB", "--seconds", "2", towards=towards)
    value, _, _ = estimate(outcome, "throughput_bps")
    # Pieces of iperf3's time are not whole packets: no more than the line, headers included.
    assert 0.6 * 10e6 < value <= 10e6
    assert outcome["cost"]["bytes"] < 5_500_000


def test_nobody_there_is_said_and_is_exit_code_1(field: Field) -> None:
    done = field.elephan("measure", "stamp", f"{field.b.address}:8621", "--count", "3", "--interval", "20ms")
    assert done.returncode == 1 and "nobody listens" in done.stdout + done.stderr, done.stderr
    wrong = field.elephan("measure", "stamp", f"{field.b.address}:99999")
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1, wrong.stderr


def test_a_link_local_address_with_its_zone(field: Field) -> None:
    said = json.loads(ip("-n", field.a.router, "-6", "-j", "address", "show", "dev", "site"))
    (address,) = [
        one["local"] for device in said for one in device.get("addr_info", []) if one["scope"] == "link"
    ]
    router = replace(field.a, namespace=field.a.router)
    with field.started("measure", "reflect", "--port", "8622", site=router) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("reflecting at ")
        towards = f"[{address}%lan]:8622"
        outcome = measured(field, "stamp", "--count", "10", "--interval", "20ms", towards=towards)
    value, _, _ = estimate(outcome, "rtt_s")
    assert 0 < value < 0.005, "a veth pair"
