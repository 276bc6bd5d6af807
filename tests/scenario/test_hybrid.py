"""[manager], [[lightpath]] and short flows: their part of the specification, and refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from elephan.backends.kernel.mapping import Machine
from elephan.backends.kernel.plan import layout_of
from elephan.core import native
from elephan.scenario import ScenarioError
from tests.scenario.conftest import Load

NETWORK = """
[run]
duration = "10s"
[[node]]
name = "s"
[[node]]
name = "r1"
[[node]]
name = "r2"
[[node]]
name = "r3"
[[node]]
name = "d"
[[link]]
from = "s"
to = "r1"
bandwidth = "622Mbit/s"
[[link]]
from = "r1"
to = "r2"
bandwidth = "100Mbit/s"
delay = "10ms"
[[link]]
from = "r2"
to = "r3"
bandwidth = "622Mbit/s"
delay = "10ms"
[[link]]
name = "lambda"
from = "r1"
to = "r3"
bandwidth = "622Mbit/s"
delay = "4ms"
[[link]]
from = "r3"
to = "d"
bandwidth = "622Mbit/s"
[[flow]]
name = "backup"
from = "s"
to = "d"
"""
MANAGER = '[manager]\nrate = "20Mbit/s"\n[[lightpath]]\nname = "lambda1"\nroute = ["r1", "lambda", "r3"]\n'
WEB = '[[flow]]\nname = "web"\nfrom = "s"\nto = "d"\nworkload = { kind = "short_flows", arrivals = 12.5 }\n'


def spec(scenario: Load, text: str, *overrides: str) -> dict[str, Any]:
    (point,) = scenario(text, *overrides).points()
    return point.to_spec()


def test_the_links_of_a_lightpath_are_no_part_of_the_ways_over_ip(scenario: Load) -> None:
    def names(result: dict[str, Any], route: list[int]) -> list[str]:
        return [result["links"][line]["name"] for line in route]

    plain = spec(scenario, NETWORK)
    assert "manager" not in plain
    assert "lambda.forward" in names(plain, plain["flows"][0]["route"])
    result = spec(scenario, NETWORK + MANAGER)
    flow = result["flows"][0]
    assert names(result, flow["route"]) == ["s-r1.forward", "r1-r2.forward", "r2-r3.forward", "r3-d.forward"]
    assert "lambda.reverse" not in names(result, flow["return_route"])
    (path,) = result["manager"]["lightpaths"]
    assert names(result, path["route"]) == ["lambda.forward"]
    assert (path["capacity_bps"], path["set_up_ns"]) == (622_000_000, 0)
    # The window fills the fastest route that the flow may come to have.
    assert flow["transport"]["window_bytes"] > 2 * 622e6 * 24e-3 / 8


def test_the_policy_in_integers(scenario: Load) -> None:
    keys = [
        "manager.max_utilization='80%'",
        "manager.confidence_sigmas=2.5",
        "manager.priorities.backup=3",
        "manager.cc_beta=0.5",
    ]
    manager = spec(scenario, NETWORK + WEB + MANAGER, *keys, "flow.backup.connections=2")["manager"]
    assert (manager["max_utilization_ppm"], manager["confidence_sigmas_e3"], manager["cc_beta_ppm"]) == (
        800_000,
        2500,
        500_000,
    )
    assert (manager["return_rate_bps"], manager["lightpaths_max"]) == (10_000_000, 1)
    assert manager["priorities"] == [3, 3]


def test_mitigations_are_those_of_an_events_move_for_each_way_and_lightpath(scenario: Load) -> None:
    plain = spec(scenario, NETWORK + WEB + MANAGER)
    assert not {"mitigations", "pareto_shape_e3"} & set(plain["manager"])
    event = '[[event]]\nat = "1s"\nmove = "backup"\nroute = ["s", "r1", "lambda", "r3", "d"]\nmitigation = {}\n'
    mitigations = '["cwnd_reduction", { kind = "hold_buffer", buffer = "1MB", error = "10%" }]'
    managed = spec(scenario, NETWORK + WEB + MANAGER.replace("rate =", f"mitigations = {mitigations}\nrate ="))
    # Two flows of one route, one lightpath.
    (found,) = managed["manager"]["mitigations"]
    assert (found["route"], found["lightpath"]) == (managed["flows"][0]["route"], 0)
    over_ip = "flow.backup.route=['s', 'r1', 'r2', 'r3', 'd']"
    moved = spec(scenario, NETWORK + event.format(mitigations), over_ip)
    assert found["mitigation"] == moved["events"][0]["action"]["mitigation"]
    # 20 ms and 120 and 19.3 us of a packet over IP, 4 ms and 19.3 us over the lightpath; a tenth more.
    assert found["mitigation"]["hold_buffer"]["delay_ns"] == 16_120_000 * 11 // 10
    assert spec(scenario, NETWORK + MANAGER, "manager.pareto_shape=1.2")["manager"]["pareto_shape_e3"] == 1200


def test_on_the_kernel_backend_those_listen_that_the_manager_may_trim(scenario: Load) -> None:
    machine = Machine((6, 18), frozenset())
    more = '[[flow]]\nname = "else"\nfrom = "r1"\nto = "r2"\ncongestion_control = "reno"\n'

    def listening(mitigations: str) -> list[str]:
        layout = layout_of(spec(scenario, NETWORK + more + MANAGER, f"manager.mitigations={mitigations}"), machine)
        return [layout.controls[number][0] for number in layout.listening]

    assert (listening("'hold_buffer'"), listening("['hold_buffer', 'cwnd_reduction']")) == ([], ["cubic"])


def test_short_flows_are_one_entry_of_their_own(scenario: Load) -> None:
    result = spec(scenario, NETWORK + WEB, "flow.web.congestion_control=reno")
    assert [flow["name"] for flow in result["flows"]] == ["backup"]
    (crowd,) = result["short_flows"]
    assert (crowd["name"], crowd["arrivals_per_ks"], crowd["transport"]["congestion_control"]) == (
        "web",
        12_500,
        "reno",
    )
    pareto = {"kind": "pareto", "pareto_shape_e3": 1200, "min_bytes": 10_000, "max_bytes": 10**9}
    assert crowd["sizes"] == pareto
    lognormal = spec(scenario, NETWORK + WEB, "flow.web.workload.median=30kB")["short_flows"][0]["sizes"]
    assert lognormal == {"kind": "lognormal", "median_bytes": 30_000, "sigma_e3": 2000}


def test_the_core_runs_it(scenario: Load) -> None:
    result = native.simulate(json.dumps(spec(scenario, NETWORK + WEB + MANAGER)))
    assert result.metrics["moves"] >= 1
    assert result.manager["move_log"][0]["flow"] == "backup"
    assert len(result.manager["timeline"]["time_s"]) == 10
    assert result.short_flows[0]["flows"] > 80


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        (NETWORK + '[manager]\nrate = "1Gbit/s"\n', "manager", "at least one [[lightpath]]"),
        (NETWORK + "[[lightpath]]\nname = 'l'\nroute = ['r1', 'r3']\n", "lightpath", "a [manager] beside it"),
        (NETWORK + MANAGER.replace('["r1", "lambda", "r3"]', '["r1"]'), "lightpath.lambda1.route", "two routers"),
        (NETWORK + MANAGER.replace('["r1", "lambda", "r3"]', '["r3", "r2"]'), "route", "routers that a flow passes"),
        (NETWORK + MANAGER + 'capacity = "1Gbit/s"\n', "capacity", "at most 622000000bit/s"),
        (NETWORK + MANAGER.replace("rate =", "return_rate = '30Mbit/s'\nrate ="), "return_rate", "a rate below rate"),
        (NETWORK + MANAGER.replace("rate =", "priorities = { bakup = 1 }\nrate ="), "priorities.bakup", "backup"),
        (
            NETWORK + MANAGER.replace("rate =", "max_utilization = 1.5\nrate ="),
            "manager.max_utilization",
            "a share from 0 to 1",
        ),
        (
            NETWORK + MANAGER.replace("rate =", "mitigations = 'reordering_tolerance'\nrate ="),
            "manager.mitigations",
            'one of "hold_buffer", "delay_equalization", "cwnd_reduction"',
        ),
        (
            NETWORK + MANAGER.replace("rate =", "mitigations = ['hold_buffer', 'delay_equalization']\nrate ="),
            "manager.mitigations",
            'one of "hold_buffer" and "delay_equalization"',
        ),
        (
            NETWORK + MANAGER.replace("rate =", "mitigations = { kind = 'hold_buffer', buffer = '5' }\nrate ="),
            "manager.mitigations.0.buffer",
            "a size",
        ),
        (
            NETWORK + MANAGER.replace("rate =", "pareto_shape = 1\nrate ="),
            "manager.pareto_shape",
            "above 1 and at most 10",
        ),
        (NETWORK + WEB + "connections = 2\n", "flow.web.connections", "workload.arrivals says"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(scenario: Load, text: str, key: str, expected: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(text).points()[0].to_spec()
    assert key in str(error.value) and expected in str(error.value)
    assert "\n" not in str(error.value)
