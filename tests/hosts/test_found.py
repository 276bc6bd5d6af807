"""Notes on what was found otherwise than expected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from elephan.backends.hosts.found import notes_of
from elephan.backends.hosts.layout import Layout
from elephan.hosts.facts import Facts


def facts(name: str, offset_s: float = 0.0) -> Facts:
    """A host whose clock is off."""
    told: dict[str, Any] = {"capabilities": {"net_admin": True, "bpf": True}}
    return Facts(name, told, "192.0.2.1", offset_s, 0.001)


LAYOUT = Layout(
    True, (), (), {}, {}, expected_rtt_ns=32_000_000, expected_rate_bps=10**8, expected_mtu_bytes=1500, ip_version=4
)


@pytest.mark.parametrize(("offset_s", "says"), [(200.0, "3 min 20 s ahead of"), (-7300.0, "2 h 1 min behind")])
def test_a_clock_that_is_minutes_off_is_named(offset_s: float, says: str) -> None:
    (note,) = notes_of(facts("nyc"), facts("lax", offset_s))
    assert note.startswith("lax: its time of day is") and says in note
    assert notes_of(facts("nyc", 30.0), facts("lax", -30.0)) == []


@pytest.mark.parametrize(
    ("rtt_s", "mtu", "count"), [(0.0325, 1500, 0), (0.0340, 1500, 0), (0.036, 1500, 1), (0.020, 1400, 2)]
)
def test_a_path_that_is_not_the_expected_one_is_named(rtt_s: float, mtu: int, count: int) -> None:
    sent = {"path": {"rtt_min_s": rtt_s, "path_mtu_bytes": mtu}}
    assert len(notes_of(facts("nyc"), facts("lax"), LAYOUT, sent)) == count


def test_hosts_that_are_reached_by_another_ip_version_than_the_scenario_s_are_named() -> None:
    sent = {"path": {"rtt_min_s": 0.032, "path_mtu_bytes": 1500}}
    (note,) = notes_of(facts("nyc"), facts("lax"), replace(LAYOUT, ip_version=6), sent)
    assert note == "the hosts' addresses are of IPv4, and the scenario has ip_version = 6"
