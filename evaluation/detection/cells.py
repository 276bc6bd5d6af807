"""The trials of trials.toml, run and added up."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.core import native
from evaluation.runner import Runner

FILE = Path(__file__).parent / "trials.toml"


@dataclass(frozen=True)
class Cell:
    """One way of looking at one mix, over all seeds."""

    mix: str
    sampling_rate: int
    flow_table_size: int
    confidence_sigmas: float
    found: dict[str, float]
    """Sums over the seeds, but for `active_max`."""

    @property
    def missed(self) -> float:
        """Elephants that were never found, of all."""
        return self.found["misses"] / self.found["elephants"]

    @property
    def false(self) -> float:
        """Of the flows that were taken for elephants, those that were none."""
        taken = self.found["elephants"] - self.found["misses"] + self.found["false_positives"]
        return self.found["false_positives"] / taken if taken else 0.0

    @property
    def unfound(self) -> float:
        """Of the elephants' bytes, those that passed after they had become one and before they were found."""
        return self.found["unfound_bytes"] / self.found["elephant_bytes"]

    @property
    def delay_s(self) -> float:
        """Mean time from being an elephant to being found, of those that were."""
        return self.found["delay_sum_s"] / max(1.0, self.found["elephants"] - self.found["misses"])


def load() -> dict[str, Any]:
    """Return trials.toml."""
    with FILE.open("rb") as file:
        return tomllib.load(file)


def run(
    reference: dict[str, Any], mix: dict[str, Any], sampling_rate: int, flow_table_size: int, confidence_sigmas: float
) -> Cell:
    """Run one cell, all seeds."""
    total: dict[str, float] = {}
    for seed in reference["seeds"]:
        spec = {
            "seed": seed,
            "duration_ns": reference["duration_s"] * 10**9,
            "arrivals_per_s": float(reference["arrivals_per_s"]),
            "sizes_bytes": mix["sizes_bytes"],
            "rates_bps": reference["rates_bps"],
            "packet_bytes": reference["packet_bytes"],
            "interval_ns": reference["interval_ms"] * 10**6,
            "sampling_rate": sampling_rate,
            "flow_table_size": flow_table_size,
            "rate_bps": reference["rate_bps"],
            "volume_bytes": reference["volume_bytes"],
            "confidence_sigmas_e3": round(1000 * confidence_sigmas),
        }
        for name, value in native.detection_trial(json.dumps(spec)).items():
            assert isinstance(value, int | float), f"{name} is a number"
            total[name] = max(total.get(name, 0), value) if name == "active_max" else total.get(name, 0) + value
    return Cell(mix["name"], sampling_rate, flow_table_size, confidence_sigmas, total)


def table(runner: Runner, reference: dict[str, Any]) -> dict[str, list[Cell]]:
    """Run every cell of the page, by its table. A trial is no run of a network: no record of it is kept."""
    default, mixes = reference["default"], reference["mix"]
    room, sigmas = default["flow_table_size"], default["confidence_sigmas"]
    looks = {
        "sampling": [(mix, n, room, sigmas) for mix in mixes for n in reference["sampling_rate"]],
        "flow_table_size": [
            (mix, default["sampling_rate"], size, sigmas) for mix in mixes for size in reference["flow_table_size"]
        ],
        "caution": [(mix, 100, room, one) for mix in mixes for one in reference["confidence_sigmas"]],
    }
    return {name: runner.in_parallel(lambda look: run(reference, *look), part) for name, part in looks.items()}


def rate_error(reference: dict[str, Any], sampling_rate: int) -> float:
    """Return the relative standard error of an estimate of the threshold's rate from one interval's samples."""
    packets = reference["rate_bps"] * reference["interval_ms"] / 1000 / 8 / reference["packet_bytes"]
    return math.sqrt((sampling_rate - 1) / packets)
