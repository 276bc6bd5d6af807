"""The cells: controls, pacing, rates and bursts of a policer on one path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCENARIO = Path(__file__).with_name("policed.toml")
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Cell:
    """A flow behind a policer."""

    control: str
    pacing: bool
    """fq's or TCP's own pacing; BBR always has it."""
    rate_mbps: int
    burst_kib: int

    def __str__(self) -> str:
        """Name the cell as the page does."""
        return f"{self.sender}, {self.rate_mbps} Mbit/s, {self.burst_kib} KiB"

    @property
    def sender(self) -> str:
        """The control, and whether it is paced where that is a choice."""
        return f"paced {self.control}" if self.pacing else self.control

    def settings(self) -> dict[str, str]:
        """Keys of the scenario and their values, as `--set` takes them."""
        return {
            "path.policer.rate": f"{self.rate_mbps}Mbit/s",
            "path.policer.burst": f"{self.burst_kib}KiB",
            "flow.a.congestion_control": self.control,
            "flow.a.pacing": "true" if self.pacing else "false",
        }


CELLS = [
    Cell(control, pacing, rate_mbps, burst_kib)
    for control, pacing, bursts in (("cubic", True, (16, 64)), ("bbr", False, (16, 64)), ("cubic", False, (16,)))
    for rate_mbps in (50, 100, 200, 400)
    for burst_kib in bursts
]
