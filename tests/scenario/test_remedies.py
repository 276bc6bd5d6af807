"""What keeps a move from hurting, as a user writes it and as the core takes it."""

from __future__ import annotations

from typing import Any

import pytest

from elephan.errors import InputError
from elephan.grounds.kernel.mapping import Machine
from elephan.grounds.kernel.plan import layout_of
from elephan.scenario import ScenarioError
from tests.scenario.conftest import NETWORK, Load

MOVE = "[[event]]\nat = '1s'\nmove = 'one'\nroute = ['a', 'c', 'd']\nremedy = {}\n"
#: Over b 10 ms, over c 6 ms; and a packet of 1500 B takes 12 and 60 us on one way, 12 and 120 us on the other.
DIFFERENCE_NS = 4_000_000 + 72_000 - 132_000


def spec(scenario: Load, remedy: str) -> dict[str, Any]:
    (point,) = scenario(NETWORK + MOVE.format(remedy), "flow.one.route=['a', 'b', 'd']").points()
    return point.to_spec()


def remedy_of(scenario: Load, remedy: str) -> dict[str, Any]:
    result: dict[str, Any] = spec(scenario, remedy)["events"][0]["action"]["remedy"]
    return result


def test_a_hold_is_of_the_difference_and_of_what_waits_at_the_moving_router(scenario: Load) -> None:
    found = spec(scenario, "'hold'")
    names = [line["name"] for line in found["links"]]
    assert found["events"][0]["action"]["remedy"] == {
        "gate": {
            "delay_ns": DIFFERENCE_NS,
            "queues": [{"link": names.index("a-b.forward"), "rate_bps": 10**9}],
            "share_ppm": None,
            "rate_bps": 10**9,
            "line": names.index("a-c.forward"),
            "limit_bytes": None,
        },
        "trim": None,
        "tolerate": None,
    }


def test_a_remedy_is_that_of_its_own_event(scenario: Load) -> None:
    earlier = "[[event]]\nat = '0.5s'\nlink = 'a-b'\nbandwidth = '900Mbit/s'\n"
    (point,) = scenario(NETWORK + earlier + MOVE.format("'hold'"), "flow.one.route=['a', 'b', 'd']").points()
    moves = [event["action"] for event in point.to_spec()["events"] if event["action"]["kind"] == "move"]
    assert [move["remedy"]["gate"]["delay_ns"] for move in moves] == [DIFFERENCE_NS]


def test_what_is_known_may_be_mistaken(scenario: Load) -> None:
    gate = remedy_of(scenario, "{ kind = 'hold', error = '-10%', queue = 'way', buffer = '1MB' }")["gate"]
    assert (gate["delay_ns"], len(gate["queues"]), gate["limit_bytes"]) == (DIFFERENCE_NS * 9 // 10, 2, 10**6)
    known = remedy_of(scenario, "{ kind = 'hold', delay_difference = '5ms', error = '10%', queue = 'none' }")["gate"]
    assert (known["delay_ns"], known["queues"]) == (5_500_000, [])


def test_what_was_kept_back_is_let_go_at_a_lines_rate_or_the_ways_or_a_given_one(scenario: Load) -> None:
    def released(text: str) -> tuple[int, str]:
        remedy = f"{{ kind = 'hold', release = '{text}' }}"
        gate, lines = remedy_of(scenario, remedy)["gate"], spec(scenario, remedy)["links"]
        return gate["rate_bps"], lines[gate["line"]]["name"]

    # From a over c: 1 Gbit/s, then 100 Mbit/s.
    assert released("line") == (10**9, "a-c.forward")
    assert released("way") == (10**8, "c-d.forward")
    assert released("30Mbit/s") == (30_000_000, "a-c.forward")


def test_a_delay_line_a_trimmed_window_and_patience(scenario: Load) -> None:
    several = remedy_of(
        scenario, "[{ kind = 'equalise', share = '5%' }, 'trim', { kind = 'tolerate', duration = '1s' }]"
    )
    assert several["gate"]["share_ppm"] == 50_000
    assert several["trim"] == {"delay_ns": DIFFERENCE_NS, "keep_ppm": None, "lead_ns": 0, "restore_ns": None}
    assert several["tolerate"] == {"delay_ns": DIFFERENCE_NS, "duration_ns": 10**9}


@pytest.mark.parametrize(
    ("remedy", "says"),
    [
        ("'wait'", 'one of "hold", "equalise", "trim", "tolerate"'),
        ("['hold', 'equalise']", "a router has one delay line for a move"),
        ("['trim', 'trim']", '"trim" once'),
        ("{ kind = 'hold', error = '10' }", "from -100% to 100%"),
        ("{ kind = 'hold', delay_difference = '5' }", '"auto", or a time'),
        ("{ kind = 'trim', keep = '110%' }", "at most 1"),
        ("{ kind = 'hold', release = 'path' }", '"line", "way", or a rate'),
        ("{ kind = 'hold', release = '0bit/s' }", '"line", "way", or a rate'),
        ("{ kind = 'equalise', share = 0 }", "a share above 0"),
    ],
)
def test_what_is_wrong_is_said(scenario: Load, remedy: str, says: str) -> None:
    with pytest.raises(ScenarioError) as error:
        spec(scenario, remedy)
    assert says in str(error.value)


def test_a_remedy_is_for_data_that_moves(scenario: Load) -> None:
    move = "[[event]]\nat = '1s'\nmove = 'one'\nreturn_route = ['d', 'b', 'a']\nremedy = 'hold'\n"
    with pytest.raises(ScenarioError, match="beside it move and route"):
        scenario(NETWORK + move).points()[0].to_spec()


def test_the_kernel_ground_says_what_no_linux_can_be_told(scenario: Load) -> None:
    machine = Machine((6, 18), frozenset())
    with pytest.raises(InputError, match="no Linux takes another reordering degree"):
        layout_of(spec(scenario, "'tolerate'"), machine)
    assert layout_of(spec(scenario, "['hold', 'trim']"), machine).listening == {0}
    layout = layout_of(spec(scenario, "['hold', { kind = 'tolerate', by = 'wait' }]"), machine)
    assert layout.listening == set()
    assert {host.sysctls["tcp_recovery"] for host in layout.hosts} == {"5"}
