"""The manager and its lightpaths as the core takes them."""

from __future__ import annotations

from typing import Any

from elephan.scenario.document import Document
from elephan.scenario.hybrid import AS_MUCH_AGAIN, Manager
from elephan.scenario.problem import Problem
from elephan.scenario.spec.network import Network
from elephan.scenario.spec.remedies import remedy_spec


def manager_spec(document: Document, network: Network, flows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The manager's policy; None where there is none. `flows` are specified ones. Raises `Problem`."""
    manager = document.manager
    if manager is None:
        return None
    names = document.flow_names()
    for index, (path, lines) in enumerate(zip(document.lightpath, network.lightpaths, strict=True)):
        if all(network.over(route, lines) is None for route, _ in network.flow_routes):
            raise Problem(("lightpath", index, "route"), "routers that a flow passes, in the order in which it does")
        slowest = network.slowest_bps(lines)
        if path.capacity is not None and path.capacity > slowest:
            raise Problem(("lightpath", index, "capacity"), f"at most {slowest}bit/s, the rate of its slowest link")
    return {
        "interval_ns": manager.interval,
        "one_in": manager.sample,
        "memory": manager.memory,
        "idle_ns": manager.idle,
        "rate_bps": manager.rate,
        "volume_bytes": manager.volume,
        "standard_errors_e3": manager.standard_errors,
        "back_below_bps": manager.rate // 2 if manager.back_below is None else manager.back_below,
        "minimum_stay_ns": manager.minimum_stay,
        "linger_ns": manager.linger,
        "lightpaths_max": len(document.lightpath) if manager.lightpaths is None else manager.lightpaths,
        "fill_ppm": manager.fill,
        "offload_worth_ppm": manager.offload_worth,
        "busy_ppm": manager.busy,
        "refuse": manager.refuse,
        "watch_ns": manager.watch,
        "keep_ppm": manager.keep,
        **_when_given(manager, network),
        "priorities": [manager.priorities.get(names[flow["group"]], 0) for flow in flows],
        "lightpaths": [
            {
                "name": path.name,
                "route": lines,
                "capacity_bps": network.slowest_bps(lines) if path.capacity is None else path.capacity,
                "set_up_ns": path.set_up,
                "cost_bytes": path.cost,
            }
            for path, lines in zip(document.lightpath, network.lightpaths, strict=True)
        ],
    }


def _when_given(manager: Manager, network: Network) -> dict[str, Any]:
    """Keys that not every manager has: specifications of before stay as they were, ids and all."""
    given: dict[str, Any] = {}
    if manager.tail != AS_MUCH_AGAIN:
        given["tail_e3"] = manager.tail
    if manager.remedies:
        ways = dict.fromkeys(tuple(route) for route, _ in network.flow_routes)
        given["remedies"] = [
            {
                "route": list(way),
                "lightpath": index,
                "remedy": remedy_spec(network, manager.remedies, list(way), over),
            }
            for way in ways
            for index, lines in enumerate(network.lightpaths)
            for over in [network.over(list(way), lines)]
            if over is not None
        ]
    return given
