"""Congestion controls of a run: each with its parameters once, and the flows that use it."""

from __future__ import annotations

from collections.abc import Sequence

from elephan.kernel.run_controls import Control
from elephan.run_spec.types import FlowSpec


def controls_of(flows: Sequence[FlowSpec]) -> tuple[tuple[Control, ...], tuple[int, ...]]:
    """Return the controls in order of first use, and for each flow its index among them."""
    controls: dict[Control, int] = {}
    control_of = []
    for flow in flows:
        transport = flow["transport"]
        control = (transport["congestion_control"], tuple(sorted(transport["parameters"].items())))
        control_of.append(controls.setdefault(control, len(controls)))
    return tuple(controls), tuple(control_of)
