"""The trials of trials.toml, run and added up."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.core import native

FILE = Path(__file__).parent / "trials.toml"


@dataclass(frozen=True)
class Cell:
    """One way of looking at one mix, over all seeds."""

    mix: str
    one_in: int
    memory: int
    standard_errors: float
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


def run(reference: dict[str, Any], mix: dict[str, Any], one_in: int, memory: int, standard_errors: float) -> Cell:
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
            "one_in": one_in,
            "memory": memory,
            "rate_bps": reference["rate_bps"],
            "volume_bytes": reference["volume_bytes"],
            "standard_errors_e3": round(1000 * standard_errors),
        }
        for name, value in native().detection_trial(json.dumps(spec)).items():
            total[name] = max(total.get(name, 0), value) if name == "active_max" else total.get(name, 0) + value
    return Cell(mix["name"], one_in, memory, standard_errors, total)


def rate_error(reference: dict[str, Any], one_in: int) -> float:
    """Return the relative standard error of an estimate of the threshold's rate from one interval's samples."""
    packets = reference["rate_bps"] * reference["interval_ms"] / 1000 / 8 / reference["packet_bytes"]
    return math.sqrt((one_in - 1) / packets)
