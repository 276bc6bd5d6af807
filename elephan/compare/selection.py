"""The congestion controls of a comparison: parse the text after --cc."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elephan.congestion_control import congestion_controls, find
from elephan.errors import InputError
from elephan.run_spec.route import header_bytes, policers_of
from elephan.scenario.toml import format_value, parse_value
from elephan.units import rate

ALL = "all"

ITEM = re.compile(r"\s*(?P<name>[^\s(),]+)\s*(?:\((?P<values>[^()]*)\))?\s*")


@dataclass(frozen=True)
class Choice:
    """A congestion control to be compared."""

    label: str
    """As the user wrote it, a file without its folder."""
    value: str
    """As `--set flow.congestion_control=` takes it."""
    max_pacing_bps: int | None = None
    """Most payload of each connection, paced; None: as the scenario has it."""
    streams: int | None = None
    """Connections of the only flow; None: as the scenario has it."""

    def changes(self, flows: int) -> list[str]:
        """Return the changes to a scenario of so many flows."""
        found = [f"flow.{index}.congestion_control={self.value}" for index in range(flows)]
        if self.max_pacing_bps is not None:
            found += [f'flow.{index}.max_pacing_rate="{self.max_pacing_bps}bit/s"' for index in range(flows)]
        if self.streams is not None:
            found.append(f"flow.0.connections={self.streams}")
        return found


PACED_CC = "cubic"
"""The congestion control that is paced below a policer too: the default of Linux, which its drops slow down most."""
BELOW_POLICER = 0.97
"""Paced rate, of the policer's."""


def paced(choices: Sequence[Choice], spec: Mapping[str, Any]) -> list[Choice]:
    """Return the choices that pacing adds: below a policer that all flows of a run pass, none where there is no such.

    What exceeds a policer is dropped whatever the congestion control does, and whatever the flows carry; a sender that
    stays below it loses nothing.
    """
    base = next((choice for choice in choices if choice.label == PACED_CC), None)
    flows = spec["flows"]
    if base is None or any("udt" in flow["transport"] or "max_pacing_bps" in flow["transport"] for flow in flows):
        return []
    if any(flow["workload"]["kind"] == "program" for flow in flows):
        # A real program opens its own sockets.
        return []
    shared = set(flows[0]["route"]).intersection(*(flow["route"] for flow in flows))
    rates = [policer["rate_bps"] for policer in policers_of(spec, shared)]
    if not rates:
        return []
    largest = max((flow["transport"] for flow in flows), key=lambda transport: transport["mtu_bytes"])
    mtu = largest["mtu_bytes"]
    together = BELOW_POLICER * min(rates) * (mtu - header_bytes(largest)) / mtu
    each = int(_fair_share(together, [_load_bps(flow, flows) for flow in flows]))
    return [replace(base, label=f"{base.label}, paced at {rate(each)}", max_pacing_bps=each)]


def _load_bps(flow: Mapping[str, Any], flows: Sequence[Mapping[str, Any]]) -> float:
    """Return the rate that a connection offers, bit/s; infinite without a rate of its own."""
    workload = flow["workload"]
    own = (workload.get("writes") or workload).get("rate_bps")
    if own is None:
        return math.inf
    is_shared = flow.get("distribution", "each") == "striped"
    return float(own) / (sum(one["group"] == flow["group"] for one in flows) if is_shared else 1)


def _fair_share(total_bps: float, loads_bps: Sequence[float]) -> float:
    """Return the bound of each connection that shares a total: those that offer less leave their rest to others
    (max-min fairness)."""
    left, bound = total_bps, total_bps / len(loads_bps)
    for number, load in enumerate(sorted(loads_bps)):
        bound = left / (len(loads_bps) - number)
        if load >= bound:
            return bound
        left -= load
    # None offers more than an equal share.
    return total_bps / len(loads_bps)


def chosen(text: str, folder: Path) -> list[Choice]:
    """Return the congestion controls of "all" or of "reno, cubic(beta=1/2), ./mine.c", each once. Raises `InputError`.

    A file is looked for where the user is, then in `folder`, where the scenario lies.
    """
    if text.strip() == ALL:
        return [Choice(cc.name, cc.name) for cc in congestion_controls()]
    found: dict[str, Choice] = {}
    at = 0
    while at < len(text):
        match = ITEM.match(text, at)
        end = match.end() if match else at
        if match is None or (end < len(text) and text[end] != ","):
            raise InputError(f'--cc {text}: expected "{ALL}", or names such as reno,cubic(beta=1/2),./mine.c')
        choice = _choice(match["name"], match["values"], folder)
        found.setdefault(choice.value, choice)
        at = end + 1
    if not found:
        raise InputError(f'--cc: expected "{ALL}", or names such as reno,cubic')
    return list(found.values())


def _choice(name: str, values: str | None, folder: Path) -> Choice:
    label = name
    if name.endswith(".c"):
        place = Path(name) if Path(name).exists() else folder / name
        if not place.is_file():
            raise InputError(f"--cc {name}: no such file")
        name, label = str(place.resolve()), place.name
    else:
        find(name)
    if not (values or "").strip():
        return Choice(label, format_value(name))
    table = {"name": name}
    for pair in (values or "").split(","):
        key, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--cc {name}({values}): expected parameters such as reduction=1/4")
        table[key.strip()] = parse_value(value.strip())
    shown = ", ".join(f"{key}={value}" for key, value in list(table.items())[1:])
    return Choice(f"{label}({shown})", format_value(table))
