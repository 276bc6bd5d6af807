"""Scenarios: one TOML file describes paths, flows, events, what to measure and what to sweep.

What it does: reads and validates, expands sweeps, and hands every point to a backend as a complete specification in
integers. What it does not: run anything.

**Invariant: a scenario that loads can run; one that cannot is refused with one error that names file, key, value and
what would be right.**

    scenario = load("file.toml", ["path.loss=1e-3"])
    for point in scenario.points():
        point.parameters, point.seed, point.to_spec()
"""

from elephan.scenario.load import Point, Scenario, expand, load
from elephan.scenario.problem import ScenarioError

__all__ = ["Point", "Scenario", "ScenarioError", "expand", "load"]
