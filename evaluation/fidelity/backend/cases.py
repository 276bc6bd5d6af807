"""The cells of the comparison, made from reference.toml: specifications that both backends take."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evaluation.fidelity.cases import BPS_PER_MBPS, NS_PER_MS
from evaluation.performance.dumbbell import Dumbbell, run_spec

LIKE_LINUX = {"sack_compression": True, "tso_autosizing": True}
"""Settings of Linux's defaults that the dumbbell's flows lack."""


@dataclass(frozen=True)
class Cell:
    """One congestion control on one path, with its seeds."""

    cc: str
    rtt_ms: int
    loss: float
    flows: int
    rival: bool
    """True if the last flow is Reno, to share the line with."""
    specs: tuple[dict[str, Any], ...]
    """One for each seed."""

    @property
    def name(self) -> tuple[str, ...]:
        """Name in a table."""
        flows = "beside Reno" if self.rival else "1 flow" if self.flows == 1 else f"{self.flows} flows"
        return self.cc, f"{self.rtt_ms} ms", f"{self.loss:g}", flows


def cells(reference: dict[str, Any]) -> Iterator[Cell]:
    """Yield every cell, in the order of the page."""
    table = reference["backend"]
    for cc in table["congestion_control"]:
        for rtt_ms, seconds in zip(table["rtt_ms"], table["seconds"], strict=True):
            for loss in table["loss"]:
                for flows in table["flows"]:
                    yield _cell(table, cc, rtt_ms, seconds, loss, flows, rival=False)
        fair = table["fairness"]
        yield _cell(table, cc, fair["rtt_ms"], fair["seconds"], fair["loss"], 2, rival=True)


def _cell(
    table: dict[str, Any], cc: dict[str, Any], rtt_ms: int, seconds: int, loss: float, flows: int, *, rival: bool
) -> Cell:
    specs = []
    for seed in range(1, table["seeds"] + 1):
        bell = Dumbbell(
            rate_bps=table["rate_mbps"] * BPS_PER_MBPS,
            rtt_ns=rtt_ms * NS_PER_MS,
            duration_ns=seconds * 1000 * NS_PER_MS,
            flows=flows,
            congestion_control=cc["congestion_control"],
            parameters=cc["parameters"],
            loss_e12=round(loss * 1e12),
            window_bytes=table["window_bytes"],
            seed=seed,
            transport=LIKE_LINUX,
        )
        spec = run_spec(bell)
        if rival:
            spec["flows"][-1]["transport"] |= {"congestion_control": "reno", "parameters": {}}
        specs.append(spec)
    return Cell(cc["name"], rtt_ms, loss, flows, rival, tuple(specs))


def simulated(
    reference: dict[str, Any], cell: Cell, spec: dict[str, Any], jitter_us: int | None = None
) -> dict[str, Any]:
    """Return the simulator's side of a kernel's run: the same, with the hosts' jitter where phases decide.

    `jitter_us`: by how much hosts answer late at most, us, in place of the reference's.
    """
    if not cell.rival:
        return spec
    scale_us = reference["backend"]["fairness"]["jitter_us"] if jitter_us is None else jitter_us
    jitter = {"distribution": "uniform", "scale_ns": scale_us * 1000, "reordering": False}
    hosts = {node for flow in spec["flows"] for node in (flow["source"], flow["destination"])}
    links = [link | {"jitter": jitter} if link["from"] in hosts else link for link in spec["links"]]
    return spec | {"links": links}


def key_of(spec: dict[str, Any]) -> str:
    """Return the name under which a run is kept: a digest of its specification, seed and all.

    But for `tso_autosizing`: the kernel always does it, also in runs from before that key.
    """
    flows = [
        flow | {"transport": {key: value for key, value in flow["transport"].items() if key != "tso_autosizing"}}
        for flow in spec["flows"]
    ]
    spec = spec | {"flows": flows}
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
