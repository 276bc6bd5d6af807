"""The manager and its lightpaths as the core takes them."""

from __future__ import annotations

from elephan.run_spec.defaults import MANAGER_PARETO_SHAPE_E3
from elephan.run_spec.types import FlowSpec, ManagerSpec
from elephan.scenario.document import Document
from elephan.scenario.problem import Problem
from elephan.scenario.spec.mitigations import mitigation_spec
from elephan.scenario.spec.network import Network


def manager_spec(document: Document, network: Network, flows: list[FlowSpec]) -> ManagerSpec | None:
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
    spec: ManagerSpec = {
        "interval_ns": manager.interval,
        "sampling_rate": manager.sampling_rate,
        "flow_table_size": manager.flow_table_size,
        "inactive_timeout_ns": manager.inactive_timeout,
        "rate_bps": manager.rate,
        "volume_bytes": manager.volume,
        "confidence_sigmas_e3": manager.confidence_sigmas,
        "return_rate_bps": manager.rate // 2 if manager.return_rate is None else manager.return_rate,
        "min_dwell_time_ns": manager.min_dwell_time,
        "lightpath_timeout_ns": manager.lightpath_timeout,
        "lightpaths_max": len(document.lightpath) if manager.lightpaths is None else manager.lightpaths,
        "max_utilization_ppm": manager.max_utilization,
        "offload_weight_ppm": manager.offload_weight,
        "congestion_threshold_ppm": manager.congestion_threshold,
        "refuse": manager.refuse,
        "observation_window_ns": manager.observation_window,
        "cc_beta_ppm": manager.cc_beta,
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
    # Left out where they change nothing: specifications without them stay as they were, ids and all.
    if manager.pareto_shape != MANAGER_PARETO_SHAPE_E3:
        spec["pareto_shape_e3"] = manager.pareto_shape
    if manager.mitigations:
        ways = dict.fromkeys(tuple(route) for route, _ in network.flow_routes)
        spec["mitigations"] = [
            {
                "route": list(way),
                "lightpath": index,
                "mitigation": mitigation_spec(network, manager.mitigations, list(way), over),
            }
            for way in ways
            for index, lines in enumerate(network.lightpaths)
            for over in [network.over(list(way), lines)]
            if over is not None
        ]
    return spec
