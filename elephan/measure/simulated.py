"""A path test in the simulator, beside the traffic of a scenario's first run, with the truth (`measure TEST FILE`)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan import control_process
from elephan.errors import InputError
from elephan.run_spec.types import BackgroundSpec, RunSpec
from elephan.scenario import Scenario, expand, load
from elephan.scenario.load import read

START_S = 1.0
"""Beginning of the test, s: traffic has then been there for a while."""

IDLE = """
[[flow]]
name = "idle"
workload = { kind = "bulk", bytes = "1B" }
"""
"""Traffic that is added to a file with a path alone: it names the route, and ends before the test starts."""
IDLE_LASTS = "run.duration=10min"
"""Length of a run whose file names none: the test ends it."""


@dataclass(frozen=True)
class Traffic:
    """Traffic of a scenario beside which its path is measured."""

    flows: tuple[str, ...]
    """Names of its `[[flow]]` entries."""
    background: tuple[str, ...]
    """Names of its `[[background]]` entries."""


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

    Without a flow it takes the route of the first background traffic, and the same nodes back. A file with a [path] and
    no traffic is an idle path, and one with a [path] needs no [run].

    `test` has the keys of a train test: `{"test": "capacity", "packet_bytes": 1500}`. Raises `ScenarioError` for a
    scenario that cannot run, `InputError` for a wrong test or a run that ends before it.
    """
    spec = expand(_loaded(scenario, overrides))[0].to_spec()
    # The test ends the run; flows that are done earlier do not.
    spec["stop_when_done"] = False
    at = {"start_ns": round(start_s * 1e9), **_route(scenario, spec)}
    try:
        found = json.loads(control_process.simulate_path_test(json.dumps(spec), json.dumps(dict(test)), json.dumps(at)))
    except ValueError as wrong:
        raise InputError(f"{scenario}: {wrong}") from wrong
    return Simulated(found["outcome"], found["truth"])


def traffic_of(scenario: Path | str) -> Traffic:
    """Return the traffic that a scenario has of its own. Raises `ScenarioError`."""
    if _is_idle(read(Path(scenario))):
        return Traffic((), ())
    document = expand(_loaded(scenario))[0].document
    return Traffic(tuple(document.flow_names()), tuple(document.background_names()))


def stated(scenario: Path | str) -> dict[str, float]:
    """Return what a scenario states of the route that a path test takes: `rate_bps`, `loss`, `loss_burst`, and without
    flows `competing_bps` and `competing_flows`. Empty where events may change it; without a loss that has no rate per
    packet. Raises `ScenarioError`.
    """
    spec = expand(_loaded(scenario))[0].to_spec()
    if spec["events"]:
        return {}
    route = _test_route(scenario, spec)
    narrowest = _narrowest(spec, route)
    facts = {"rate_bps": float(spec["links"][narrowest]["rate_bps"])}
    rates = [_mean_bps(source) for source in _sources_on(spec, narrowest)]
    has_flows = bool(spec["flows"]) and not _is_idle(read(Path(scenario)))
    if not has_flows and None not in rates:
        facts |= {"competing_bps": sum(rate for rate in rates if rate is not None), "competing_flows": 0.0}
    losses = [loss for link in route if (loss := _loss_of(spec["links"][link]["loss"])) != (0.0, 1.0)]
    if not losses:
        return {**facts, "loss": 0.0, "loss_burst": 1.0}
    if len(losses) == 1 and (known := losses[0]) is not None:
        return {**facts, "loss": known[0], "loss_burst": known[1]}
    return facts


def background_of(scenario: Path | str) -> list[BackgroundSpec]:
    """Return the background traffic that passes the narrowest link of the route that a path test takes. Raises
    `ScenarioError`.
    """
    spec = expand(_loaded(scenario))[0].to_spec()
    return _sources_on(spec, _narrowest(spec, _test_route(scenario, spec)))


def _test_route(scenario: Path | str, spec: RunSpec) -> list[int]:
    """Return the links that a path test takes there."""
    return spec["flows"][0]["route"] if spec["flows"] else _route(scenario, spec)["route"]


def _narrowest(spec: RunSpec, route: Sequence[int]) -> int:
    return min(route, key=lambda link: spec["links"][link]["rate_bps"])


def _sources_on(spec: RunSpec, link: int) -> list[BackgroundSpec]:
    return [source for source in spec["background"] if link in source["route"]]


def _mean_bps(background: Mapping[str, Any]) -> float | None:
    """Return the mean rate of background traffic; None: it does not last for the whole run, or has periods or framing
    of its own.
    """
    if background["start_ns"] or background["stop_ns"] is not None or not background["enabled"]:
        return None
    # With framing the rate is that of frames, not of IP packets.
    if background.get("active") or any(background.get("frames", {}).get("framing", {}).values()):
        return None
    on, off = background["on_off_ns"] or (1, 0)
    return float(background["rate_bps"]) * on / (on + off)


def _loss_of(loss: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the share of packets that a loss model takes and the mean number of one event; None: another model."""
    if loss["kind"] == "none":
        return 0.0, 1.0
    if loss["kind"] == "independent":
        return loss["probability_e12"] / 1e12, 1.0
    if loss["kind"] == "gilbert_elliott" and loss["loss_good_e12"] == 0 and loss["loss_bad_e12"] == 10**12:
        enter, leave = loss["good_to_bad_e12"], loss["bad_to_good_e12"]
        return (enter / (enter + leave), 1e12 / leave) if leave else None
    return None


def _loaded(scenario: Path | str, overrides: Sequence[str] = ()) -> Scenario:
    """Return a scenario; a file with a path alone has traffic that ends at once, and one with a [path] needs no [run].
    Raises `ScenarioError`.
    """
    text = read(Path(scenario))
    raw = _raw(text)
    length = [IDLE_LASTS] if "path" in raw and "run" not in raw else []
    if not _is_idle(text):
        return load(scenario, [*length, *overrides])
    return Scenario(Path(scenario), text + IDLE, [*length, *overrides])


def _is_idle(text: str) -> bool:
    """Return True for a file with a [path] and no traffic."""
    raw = _raw(text)
    return "path" in raw and "flow" not in raw and "background" not in raw


def _raw(text: str) -> dict[str, Any]:
    """Return the tables of a file; none where it is no TOML, of which the loader has the message."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


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
