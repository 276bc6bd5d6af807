"""Completion of a long copy whose bounds agree, although its simulated part is no sample of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

AGREE = 0.01
"""Difference of the bounds, of the upper one, up to which they are the result: less than a band that is extrapolated
has (2 %)."""

SAMPLE = 0.05
"""Part of the lower bound by which the second half of the simulated part may stay below it: less of it contradicts the
control's response function."""


def with_agreement(how: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an extrapolation as the core has it; one that was refused, and whose bounds agree, as one that gives their
    middle, with the reason of the refusal under `bounds_agree`."""
    if how is None or "refused" not in how or not _agrees(how, "goodput", "bps"):
        return how
    if how["second_half_bps"] < (1 - SAMPLE) * how["rest_low_bps"]:
        return how
    found = {name: value for name, value in how.items() if name != "refused"}
    return {**settled(found), "bounds_agree": how["refused"]}


def settled(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return metrics with the goodput, the completion and the share of the line that the bounds among them give."""
    found = dict(metrics)
    for stem, unit in (("goodput", "bps"), ("completion", "s")):
        if _agrees(metrics, stem, unit):
            found[f"{stem}_{unit}"] = _middle(metrics, stem, unit)
    goodput, line_share = metrics.get("goodput_bps"), metrics.get("line_share")
    if goodput and line_share:
        found["line_share"] = line_share * found["goodput_bps"] / goodput
    return found


def _middle(metrics: Mapping[str, Any], stem: str, unit: str) -> float:
    low, high = (float(metrics[f"{stem}_{end}_{unit}"]) for end in ("low", "high"))
    return (low + high) / 2


def _agrees(metrics: Mapping[str, Any], stem: str, unit: str) -> bool:
    low, high = (metrics.get(f"{stem}_{end}_{unit}") for end in ("low", "high"))
    return low is not None and high is not None and 0 <= high - low <= AGREE * high
