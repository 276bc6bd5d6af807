"""Effect of a change of a path on a transfer: its scenario, simulated with the path as it was and as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elephan.errors import ElephanError
from elephan.units import duration

LEAST_RTT_S = 1e-6
MOST_LOSS = 0.5


def overrides_of(path: Mapping[str, float]) -> list[str]:
    """Return the changes of a scenario that put these values on its path; absent ones stay the scenario's own."""
    changes = []
    if "rtt_s" in path:
        changes.append(f"path.rtt={max(round(max(path['rtt_s'], LEAST_RTT_S) * 1e9), 1)}ns")
    if "loss" in path:
        # The scenario takes none below 1e-12.
        loss = min(max(path["loss"], 0.0), MOST_LOSS)
        changes.append(f"path.loss={loss if loss >= 1e-12 else 0.0:.12f}")
    if "available_bps" in path:
        changes.append(f"path.bandwidth={max(round(path['available_bps']), 1)}bit/s")
    return changes


def completion_s(file: Path, path: Mapping[str, float]) -> float | None:
    """Return how long the scenario's transfer takes over such a path, s; None: it does not end in the run.

    Raises `ElephanError`.
    """
    from elephan.api import run

    (record,) = run(file, overrides_of(path), store="none", workers=1).records
    found = record.metrics.get("completion_s")
    return None if found is None else float(found)


def forecast(file: Path, before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, Any]:
    """Return `scenario`, `name`, `before_s`, `after_s` and the two in words, `text`."""
    from elephan.scenario import load

    found: dict[str, Any] = {"scenario": str(file), "name": file.stem, "before_s": None, "after_s": None}
    try:
        scenario = load(file)
        found["name"] = scenario.title or scenario.name
        found["before_s"], found["after_s"] = completion_s(file, before), completion_s(file, after)
    except ElephanError as error:
        return found | {"text": f"{found['name']}: no forecast: {error}"}
    return found | {"text": text_of(found["name"], found["before_s"], found["after_s"])}


def text_of(name: str, before_s: float | None, after_s: float | None) -> str:
    """Return a forecast in words."""
    if before_s is None and after_s is None:
        return f"{name}: no end within the scenario's run, before or now"
    if after_s is None:
        return f"{name}: no end within the scenario's run instead of {duration(before_s)}"
    now = duration(after_s)
    was = "no end within the scenario's run" if before_s is None else duration(before_s)
    return f"{name}: {now}, as before" if now == was else f"{name}: {now} instead of {was}"
