"""Mitigations of moves, as a user writes them and as the core takes them."""

from __future__ import annotations

from typing import Any

import pytest

from elephan.backends.kernel.mapping import Machine
from elephan.backends.kernel.plan import layout_of
from elephan.errors import InputError
from elephan.scenario import ScenarioError
from tests.scenario.conftest import NETWORK, Load

MOVE = "[[event]]\nat = '1s'\nmove = 'one'\nroute = ['a', 'c', 'd']\nmitigation = {}\n"
# Over b 10 ms, over c 6 ms; and a packet of 1500 B takes 12 and 60 us on one route, 12 and 120 us on the other.
DIFFERENCE_NS = 4_000_000 + 72_000 - 132_000


def spec(scenario: Load, mitigation: str) -> dict[str, Any]:
    (point,) = scenario(NETWORK + MOVE.format(mitigation), "flow.one.route=['a', 'b', 'd']").points()
    return point.to_spec()


def mitigation_of(scenario: Load, mitigation: str) -> dict[str, Any]:
    result: dict[str, Any] = spec(scenario, mitigation)["events"][0]["action"]["mitigation"]
    return result


def test_a_hold_is_of_the_difference_and_of_what_waits_at_the_moving_router(scenario: Load) -> None:
    found = spec(scenario, "'hold_buffer'")
    names = [line["name"] for line in found["links"]]
    assert found["events"][0]["action"]["mitigation"] == {
        "hold_buffer": {
            "delay_ns": DIFFERENCE_NS,
            "queues": [{"link": names.index("a-b.forward"), "rate_bps": 10**9}],
            "share_ppm": None,
            "rate_bps": 10**9,
            "line": names.index("a-c.forward"),
            "limit_bytes": None,
        },
        "cwnd_reduction": None,
        "reordering_tolerance": None,
    }


def test_a_mitigation_is_that_of_its_own_event(scenario: Load) -> None:
    earlier = "[[event]]\nat = '0.5s'\nlink = 'a-b'\nbandwidth = '900Mbit/s'\n"
    (point,) = scenario(NETWORK + earlier + MOVE.format("'hold_buffer'"), "flow.one.route=['a', 'b', 'd']").points()
    moves = [event["action"] for event in point.to_spec()["events"] if event["action"]["kind"] == "move"]
    assert [move["mitigation"]["hold_buffer"]["delay_ns"] for move in moves] == [DIFFERENCE_NS]


def test_what_is_known_may_be_mistaken(scenario: Load) -> None:
    gate = mitigation_of(scenario, "{ kind = 'hold_buffer', error = '-10%', queue = 'path', buffer = '1MB' }")[
        "hold_buffer"
    ]
    assert (gate["delay_ns"], len(gate["queues"]), gate["limit_bytes"]) == (DIFFERENCE_NS * 9 // 10, 2, 10**6)
    known = mitigation_of(
        scenario, "{ kind = 'hold_buffer', delay_difference = '5ms', error = '10%', queue = 'none' }"
    )["hold_buffer"]
    assert (known["delay_ns"], known["queues"]) == (5_500_000, [])


def test_what_was_kept_back_is_let_go_at_a_lines_rate_or_the_ways_or_a_given_one(scenario: Load) -> None:
    def released(text: str) -> tuple[int, str]:
        mitigation = f"{{ kind = 'hold_buffer', release = '{text}' }}"
        gate, lines = mitigation_of(scenario, mitigation)["hold_buffer"], spec(scenario, mitigation)["links"]
        return gate["rate_bps"], lines[gate["line"]]["name"]

    # From a over c: 1 Gbit/s, then 100 Mbit/s.
    assert released("line") == (10**9, "a-c.forward")
    assert released("bottleneck") == (10**8, "c-d.forward")
    assert released("30Mbit/s") == (30_000_000, "a-c.forward")


def test_a_delay_line_a_trimmed_window_and_patience(scenario: Load) -> None:
    several = mitigation_of(
        scenario,
        "[{ kind = 'delay_equalization', share = '5%' }, 'cwnd_reduction', { kind = 'reordering_tolerance', duration "
        "= '1s' }]",
    )
    assert several["hold_buffer"]["share_ppm"] == 50_000
    assert several["cwnd_reduction"] == {
        "delay_ns": DIFFERENCE_NS,
        "cwnd_fraction_ppm": None,
        "lead_ns": 0,
        "restore_ns": None,
    }
    assert several["reordering_tolerance"] == {"delay_ns": DIFFERENCE_NS, "duration_ns": 10**9}


@pytest.mark.parametrize(
    ("mitigation", "says"),
    [
        ("'wait'", 'one of "hold_buffer", "delay_equalization", "cwnd_reduction", "reordering_tolerance"'),
        ("['hold_buffer', 'delay_equalization']", "a router has one delay line for a move"),
        ("['cwnd_reduction', 'cwnd_reduction']", '"cwnd_reduction" once'),
        ("{ kind = 'hold_buffer', error = '10' }", "from -100% to 100%"),
        ("{ kind = 'hold_buffer', delay_difference = '5' }", '"auto", or a time'),
        ("{ kind = 'cwnd_reduction', cwnd_fraction = '110%' }", "at most 1"),
        ("{ kind = 'hold_buffer', release = 'path' }", '"line", "bottleneck", or a rate'),
        ("{ kind = 'hold_buffer', release = '0bit/s' }", '"line", "bottleneck", or a rate'),
        ("{ kind = 'delay_equalization', share = 0 }", "a share above 0"),
    ],
)
def test_what_is_wrong_is_said(scenario: Load, mitigation: str, says: str) -> None:
    with pytest.raises(ScenarioError) as error:
        spec(scenario, mitigation)
    assert says in str(error.value)


def test_a_mitigation_is_for_data_that_moves(scenario: Load) -> None:
    move = "[[event]]\nat = '1s'\nmove = 'one'\nreturn_route = ['d', 'b', 'a']\nmitigation = 'hold_buffer'\n"
    with pytest.raises(ScenarioError, match="beside it move and route"):
        scenario(NETWORK + move).points()[0].to_spec()


def test_the_kernel_backend_says_what_no_linux_can_be_told(scenario: Load) -> None:
    machine = Machine((6, 18), frozenset())
    with pytest.raises(InputError, match="no Linux takes another duplicate ACK threshold"):
        layout_of(spec(scenario, "'reordering_tolerance'"), machine)
    assert layout_of(spec(scenario, "['hold_buffer', 'cwnd_reduction']"), machine).listening == {0}
    layout = layout_of(spec(scenario, "['hold_buffer', { kind = 'reordering_tolerance', by = 'reo_wnd' }]"), machine)
    assert layout.listening == set()
    assert {host.sysctls["tcp_recovery"] for host in layout.hosts} == {"5"}
