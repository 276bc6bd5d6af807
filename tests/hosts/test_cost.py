"""The cost of packets: the line through transfers, when it is refused, and transfers between two hosts."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from elephan.hosts import cost, cost_transfers
from elephan.hosts.cost import Measured, Sample, Side
from elephan.scenario import load
from tests.hosts import testbed
from tests.hosts.conftest import Elephan

SIZES = (375, 750, 1125, 1500)


def sample(size: int, packet_ns: float, others: float = 0.0, machine: str = "a") -> Sample:
    """A second in which a million packets took so long, beside others."""
    return Sample(10**6, size, 1.0, packet_ns / 1e3 + others, 0.7, others, (size - 52) * 8e6, machine)


def line(of: Callable[[int], float], others: float = 0.0, machine: str = "a") -> Side:
    """The cost of a host whose packets take so long, twice for each size, where the other host is "b"."""
    samples = [sample(size, of(size), others, machine) for size in SIZES * 2]
    return cost.side("send", samples, [sample(1500, 1.0, machine="b")])


def test_a_line_is_found_exactly_and_is_the_scenarios_cost() -> None:
    found = line(lambda size: 400 + size * 0.25)
    assert found.problem is None and found.cost is not None
    assert (found.cost.packet_ns, found.cost.byte_ns) == (pytest.approx(400), pytest.approx(0.25))
    assert found.cost.error == pytest.approx(0, abs=1e-9) and found.cost.packet_error_ns == pytest.approx(0, abs=1e-6)
    assert found.cost.as_cost() == {"packet": "400ns", "rate": "32.00Gbit/s"}


def test_others_work_before_the_transfers_is_taken_off() -> None:
    beside = line(lambda size: 400 + size * 0.25, others=0.02)
    assert beside.cost is not None and beside.cost.packet_ns == pytest.approx(400)
    told = {
        "packets": 1000,
        "payload_bytes": 1_448_000,
        "header_bytes": 52,
        "window_s": 2.0,
        "cpu_s": 0.5,
        "busiest_core_s": 0.5,
        "idle_cpu_per_s": 0.05,
        "boot_id": "a",
    }
    found = Sample.of(told, told)
    # A receiver whose hypervisor joins packets has fewer than were sent, of the same payload.
    assert Sample.of({**told, "packets": 23}, told) == found
    assert (found.packet_bytes, found.packet_ns(found.others), found.busiest) == (1500, pytest.approx(400_000), 0.25)


def test_a_time_per_packet_below_zero_is_zero() -> None:
    found = line(lambda size: size * 0.25 - 5)
    assert found.cost is not None and found.cost.packet_ns == 0
    # Through zero: the sum of n t over that of n^2.
    expected = sum(size * (size * 0.25 - 5) for size in SIZES) / sum(size * size for size in SIZES)
    assert found.cost.byte_ns == pytest.approx(expected)


def test_the_error_is_the_deviation_from_the_line() -> None:
    samples = [sample(size, 1000 + size + sign * 50) for size in SIZES for sign in (-1, 1)]
    found = cost.side("send", samples, [sample(1500, 1, machine="b")])
    assert found.cost is not None
    assert found.cost.error == pytest.approx(50 / (1000 + sum(SIZES) / 4))
    # Standard error of the intercept (Draper and Smith 1998, 1.4): s sqrt(1/n + mean^2 / S), s^2 over n - 2.
    mean = sum(SIZES) / 4
    spread = 2 * sum((size - mean) ** 2 for size in SIZES)
    assert found.cost.packet_error_ns == pytest.approx((8 * 50**2 / 6 * (1 / 8 + mean**2 / spread)) ** 0.5)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (line(lambda size: 400 + (size % 2) * 400 + size / 10), "off a line, more than 10.0 %"),
        (line(lambda size: 400 + size / 4, others=0.2), "busy otherwise: 0.200 cores before the transfers"),
        (line(lambda size: 400 + size / 4, machine="b"), "both hosts are one machine"),
        (line(lambda size: 900 - size / 1000), "larger packets took no more time"),
    ],
)
def test_what_tells_nothing_is_refused_in_words(found: Side, reason: str) -> None:
    assert found.problem is not None and reason in found.problem
    assert found.cost is None


@pytest.mark.parametrize(
    ("us", "packets", "adaptive", "keys"),
    [
        (50, 0, False, {"coalesce": "50us"}),
        (50, 32, False, {"coalesce": "50us", "coalesce_packets": 32}),
        (50, 1, False, {}),
        (0, 32, False, {}),
        (50, 32, True, {}),
    ],
)
def test_the_wait_for_an_interrupt_is_a_key_where_the_driver_keeps_to_it(
    us: int, packets: int, adaptive: bool, keys: dict[str, object]
) -> None:
    one = line(lambda size: 400 + size / 4)
    coalescing = {"us": us, "packets": packets, "adaptive": adaptive}
    host = Measured("nyc", (), coalescing, None, one, Side(**{**vars(one), "verb": "receive"}))
    receive = tomllib.loads("\n".join(cost.as_toml(host)))["node"][0]["receive"]
    assert receive == {"packet": "400ns", "rate": "32.00Gbit/s", **keys}


def test_the_lines_of_a_scenario_are_one(tmp_path: Path) -> None:
    one = line(lambda size: 400 + size / 4)
    host = Measured(
        "nyc", ("tso",), {"us": 50, "packets": 32, "adaptive": True}, 512, one, Side(**{**vars(one), "verb": "receive"})
    )
    text = "\n".join(cost.as_toml(host))
    assert tomllib.loads(text)["node"][0]["receive"] == {
        "packet": "400ns",
        "rate": "32.00Gbit/s",
        "ring": "512 packets",
    }
    rest = """
[run]
duration = "1s"
[[node]]
name = "lax"
[[link]]
from = "nyc"
to = "lax"
bandwidth = "10Gbit/s"
[[flow]]
from = "nyc"
to = "lax"
"""
    (tmp_path / "wan.toml").write_text(text + rest)
    (point,) = load(tmp_path / "wan.toml").points()
    assert {link["name"] for link in point.to_spec()["links"]} >= {"nyc.send", "nyc.receive"}
    lines = cost.as_lines(host)
    assert "400 ns (± 0 s) of CPU time per packet, 32.0 Gbit/s of bytes" in lines[0]
    assert lines[2].endswith("nyc: offloads tso; interrupt after 50 us or 32 packets, adaptive; ring of 512 packets")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--cost"], "--cost: --towards NAME, another host, is needed"),
        (["--cost", "--towards", "nyc", "--yes"], "--cost: --towards NAME, another host, is needed"),
        (["--cost", "--towards", "lax"], "--cost: 16 transfers, .* say --yes, or bound it by --rate-limit"),
        (["--cost", "--towards", "lax", "--yes", "--time", "1ms"], "--time 1ms: 100ms to 10min"),
        (["--cost", "--towards", "lax", "--yes", "--time", "soon"], "--time soon: a time such as 2s"),
        (["--towards", "lax", "--time", "1s"], "--time: is for --cost"),
        (["--yes"], "--yes: is for --cost"),
        (["--cost", "--towards", "lax", "--rate-limit", "5"], "--rate-limit 5: a rate such as"),
    ],
)
def test_wrong_options_are_refused_in_one_line_before_anything_is_sent(
    elephan_alone: Elephan, options: list[str], says: str
) -> None:
    done = elephan_alone("hosts", "check", "nyc", *options)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done
    assert re.search(says, done.stderr), done.stderr


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two sizes once and short waits, so that the test is short."""
    for name, value in {
        "PARTS": (1, 2),
        "ROUNDS": 1,
        "IDLE_MS": 50,
        "WARM_UP_MS": 100,
        "WARM_UP_ROUND_TRIPS": 4,
    }.items():
        monkeypatch.setattr(cost_transfers, name, value)
    yield


@pytest.mark.usefixtures("few", "nothing_stays")
def test_two_hosts_carry_transfers_of_each_size_and_one_machine_is_not_told_apart(
    hosts: testbed.Hosts, elephan: Elephan
) -> None:
    # A user without rights can do it, too.
    words = ("hosts", "check", "user-left", "--towards", "user-right", "--cost", "--time", "200ms")
    done = elephan(*words, "--rate-limit", "50Mbit/s", "--json")
    assert done.returncode == 1, done.stderr
    assert "both hosts are one machine" in done.stderr and done.stderr.count("\n") == 1
    left, right = json.loads(done.stdout)["cost"]
    assert (left["name"], right["name"]) == ("user-left", "user-right")
    for host, verb in ((host, verb) for host in (left, right) for verb in ("send", "receive")):
        samples = host[verb]["samples"]
        # An announced segment size holds for what is sent: 750 and 1500 B, but for the last of a write.
        assert [sample["packet_bytes"] for sample in samples] == [
            pytest.approx(750, rel=0.03),
            pytest.approx(1500, rel=0.03),
        ]
        for sample in samples:
            assert sample["packets"] > 100 and 0.15 < sample["window_s"]
            assert 0 < sample["payload_bps"] < 60e6
        assert "cost" not in host[verb] and "fit" in host[verb]
