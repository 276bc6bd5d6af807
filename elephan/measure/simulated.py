"""A path test in the simulator: beside the traffic of a scenario's first run, with the truth (`--in SCENARIO.toml`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan import control_process
from elephan.errors import InputError
from elephan.scenario import expand, load

START_S = 1.0
"""Beginning of the test, s: traffic has then been there for a while."""


@dataclass(frozen=True)
class Simulated:
    """Result of a path test in the simulator."""

    outcome: dict[str, Any]
    """As of a test on a real path: `estimates`, `refused`, `notes`, `cost`."""
    truth: dict[str, Any]
    """`capacity_bps`, `available_bps`, `queue_bytes` of the path while the test ran, and each of its `links`."""


def simulate_test(
    scenario: Path | str, test: Mapping[str, Any], *, overrides: Sequence[str] = (), start_s: float = START_S
) -> Simulated:
    """Run a path test beside the first run of a scenario, on the route of its first flow, from `start_s` on.

    Without a flow it takes the route of the first background traffic, and the same nodes back.

    `test` has the keys of a train test: `{"test": "capacity", "packet_bytes": 1500}`. Raises `ScenarioError` for a
    scenario that cannot run, `InputError` for a wrong test or a run that ends before it.
    """
    spec = expand(load(scenario, overrides))[0].to_spec()
    # The test ends the run; flows that are done earlier do not.
    spec["stop_when_done"] = False
    at = {"start_ns": round(start_s * 1e9), **_route(scenario, spec)}
    try:
        found = json.loads(control_process.simulate_path_test(json.dumps(spec), json.dumps(dict(test)), json.dumps(at)))
    except ValueError as wrong:
        raise InputError(f"{scenario}: {wrong}") from wrong
    return Simulated(found["outcome"], found["truth"])


def _route(scenario: Path | str, spec: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return the links of the test in a run without flows; empty with a flow, whose route it takes.

    Raises `InputError` if no traffic has a route, or if it does not lead back.
    """
    if spec["flows"]:
        return {}
    links, route = spec["links"], next((traffic["route"] for traffic in spec["background"]), None)
    if route is None:
        raise InputError(f"{scenario}: a path test needs a route: that of a [[flow]] or of [[background]]")
    between = {(link["from"], link["to"]): number for number, link in enumerate(links)}
    back = [between.get((links[hop]["to"], links[hop]["from"])) for hop in reversed(route)]
    if None in back:
        raise InputError(f"{scenario}: no links lead back along the route of the background traffic: add a [[flow]]")
    return {"route": list(route), "return_route": [hop for hop in back if hop is not None]}
