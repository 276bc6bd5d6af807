"""Events that move flows, connections and background traffic to another route."""

from __future__ import annotations

import json
from typing import Any

import pytest

from elephan.core import native
from elephan.scenario import ScenarioError
from tests.scenario.conftest import BASE, NETWORK, Load

MOVE = "[[event]]\nat = '1s'\nmove = {}\n{}\n"


def spec(scenario: Load, what: str, ways: str, more: str = "", *overrides: str) -> dict[str, Any]:
    (point,) = scenario(NETWORK + more + MOVE.format(what, ways), *overrides).points()
    return point.to_spec()


def test_a_move_of_a_flow_is_of_all_its_connections(scenario: Load) -> None:
    changes = ["flow.one.connections=3", "flow.one.route=['a', 'b', 'd']"]
    result = spec(scenario, "'one'", "route = ['a', 'c', 'd']", "", *changes)
    names = [line["name"] for line in result["links"]]
    over_c = [names.index("a-c.forward"), names.index("c-d.forward")]
    (event,) = result["events"]
    assert event["action"] == {"kind": "move", "flows": [0, 1, 2], "route": over_c, "return_route": None}


def test_a_connection_a_list_and_the_way_back(scenario: Load) -> None:
    more = "connections = 2\n[[flow]]\nname = 'two'\nfrom = 'a'\nto = 'd'\n"
    result = spec(scenario, "['one.2', 'two']", "return_route = ['d', 'b', 'a']", more)
    names = [line["name"] for line in result["links"]]
    back = [names.index("b-d.reverse"), names.index("a-b.reverse")]
    (event,) = result["events"]
    assert event["action"] == {"kind": "move", "flows": [1, 2], "route": None, "return_route": back}


def test_background_moves_and_a_flow_beside_it(scenario: Load) -> None:
    more = "[[background]]\nname = 'udp'\nfrom = 'a'\nto = 'd'\nroute = ['a', 'b', 'd']\nrate = '1Mbit/s'\n"
    result = spec(scenario, "['udp', 'one']", "route = ['a', 'c', 'd']", more)
    names = [line["name"] for line in result["links"]]
    route = [names.index("a-c.forward"), names.index("c-d.forward")]
    assert [event["action"] for event in result["events"]] == [
        {"kind": "move", "flows": [0], "route": route, "return_route": None},
        {"kind": "move_background", "sources": [0], "route": route},
    ]


def test_window_mtu_and_queues_allow_for_every_way_that_a_flow_may_take(scenario: Load) -> None:
    stay = ["flow.one.route=['a', 'c', 'd']", "flow.one.return_route=['d', 'b', 'a']", "link.a-b.mtu=1400B"]
    changes = ["flow.one.route=['a', 'c', 'd']", "flow.one.return_route=['d', 'c', 'a']", "link.a-b.mtu=1400B"]
    plain = scenario(NETWORK, *changes).points()[0].to_spec()["flows"][0]["transport"]
    moved = spec(scenario, "'one'", "route = ['a', 'b', 'd']", "", *changes)["flows"][0]["transport"]
    assert (plain["mtu_bytes"], moved["mtu_bytes"]) == (1500, 1400)
    # Over b the line has twice the rate, and the whole path 52 ms (back over c 42 ms of them) instead of 48 ms.
    assert moved["window_bytes"] - plain["window_bytes"] >= 2 * (200e6 * 52e-3 - 100e6 * 48e-3) / 8
    queues = {
        link["name"]: link["queue"] for link in spec(scenario, "'one'", "route = ['a', 'b', 'd']", "", *stay)["links"]
    }
    assert queues["b-d.forward"]["limit_bytes"] == 200_000_000 * 20 // 8000


@pytest.mark.parametrize(
    ("what", "ways", "error"),
    [
        ("'one'", "", 'event.0.move = "one": beside it route, return_route or both'),
        ("'two'", "route = ['a', 'c', 'd']", 'event.0.move = "two": unknown flow or background source; known: one'),
        ("'one.2'", "route = ['a', 'c', 'd']", 'event.0.move = "one.2": unknown flow or background source'),
        ("'one'", "route = ['a', 'c']", 'event.0.route = ["a", "c"]: a route from "a" to "d"'),
        ("'one'", "return_route = ['a', 'c', 'd']", 'event.0.return_route = ["a", "c", "d"]: a route from "d" to "a"'),
        ("'one'", "route = ['a', 'x', 'd']", "unknown node or link"),
        ("[]", "route = ['a', 'c', 'd']", "event.0.move = []: a name"),
    ],
)
def test_a_move_that_cannot_be_is_one_clear_error(scenario: Load, what: str, ways: str, error: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        spec(scenario, what, ways)
    assert error in str(caught.value)


def test_a_way_without_a_move_and_a_move_with_one_path_are_refused(scenario: Load) -> None:
    with pytest.raises(ScenarioError, match="beside it move: what takes this way"):
        scenario(NETWORK + "[[event]]\nat = '1s'\nlink_down = 'a-c'\nroute = ['a', 'c', 'd']\n")
    with pytest.raises(ScenarioError, match=r"event.0.move = \"backup\": absent: with \[path\] there is one way"):
        scenario(BASE + MOVE.format("'backup'", "route = ['left', 'right']"))
    more = "[[background]]\nname = 'udp'\nfrom = 'a'\nto = 'd'\nrate = '1Mbit/s'\n"
    with pytest.raises(ScenarioError, match='background source "udp" gets no ACKs'):
        spec(scenario, "'udp'", "return_route = ['d', 'b', 'a']", more)


def test_the_core_moves_what_the_scenario_says_and_tells_when(scenario: Load) -> None:
    result = spec(scenario, "'one'", "route = ['a', 'c', 'd']", "", "run.duration=2s", "flow.one.route=['a', 'b', 'd']")
    run = native.simulate(json.dumps(result))
    assert run.event_times_s == [1.0]
    carried = {link["name"]: link["delivered_packets"] for link in run.links}
    assert carried["c-d.forward"] > 1000 and carried["b-d.forward"] > 1000
