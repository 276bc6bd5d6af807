"""The cells: scenarios A to D of the hybrid paper at its rates and round trips, by number of flows and mitigation.

A run begins where the paper's move finds the flow: with the window that fills the line. So it takes seconds and not the
minutes in which the paper's flow grows to it (evaluation/papers/hybrid does that).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elephan.api import jobs_of
from elephan.backends import Job
from elephan.scenario import Scenario

SCENARIOS = ("A", "B", "C1", "C2", "D")
RATES = {"100M": 100e6, "1G": 1e9, "10G": 10e9}
"""Limiting rates of the paper's table 1, bit/s."""
LINES = {"100M": "622.08Mbit/s", "1G": "2.488Gbit/s", "10G": "39.813Gbit/s"}
"""All other links there."""
RTTS_MS = (10, 100, 1000)
FLOWS = (1, 4, 16)

MITIGATIONS = {
    "none": "",
    "hold_buffer": '"hold_buffer"',
    "paced hold": '{ kind = "hold_buffer", release = "bottleneck" }',
    "delay_equalization": '{ kind = "delay_equalization", share = "5%" }',
    "cwnd_reduction": '"cwnd_reduction"',
    "reordering_tolerance": '"reordering_tolerance"',
    "hold+reduction": '["hold_buffer", "cwnd_reduction"]',
    "hold+tolerance": '["hold_buffer", "reordering_tolerance"]',
    "equalization+reduction": '[{ kind = "delay_equalization", share = "20%" }, "cwnd_reduction"]',
}
WRONG = {
    f"{name} {error}": text
    for error in ("-10%", "+10%")
    for name, text in (
        ("hold_buffer", f'{{ kind = "hold_buffer", error = "{error.lstrip("+")}" }}'),
        ("paced hold", f'{{ kind = "hold_buffer", release = "bottleneck", error = "{error.lstrip("+")}" }}'),
        (
            "hold+reduction",
            f'[{{ kind = "hold_buffer", error = "{error.lstrip("+")}" }}, '
            f'{{ kind = "cwnd_reduction", error = "{error.lstrip("+")}" }}]',
        ),
    )
}
"""The difference of the delays known to a tenth. A paced hold releases at the rate of the slowest line of the new path.
"""

PACKET_BYTES = 1500
PAYLOAD_BYTES = 1460
FIRST_WINDOW = 65_535
"""Largest `initial_cwnd`."""
D_QUEUE_PACKETS = 250
"""Packets that wait at r3 before the move in D: half of its queue, as CUBIC's probing leaves it on average (figure 7:
343)."""


@dataclass(frozen=True, order=True)
class Cell:
    """One run."""

    scenario: str
    rate: str
    rtt_ms: int
    flows: int
    mitigation: str
    """A key of `MITIGATIONS` or `WRONG`; "stay": no move."""

    @property
    def bdp_packets(self) -> int:
        """Return the capacity of the old path, packets."""
        return int(RATES[self.rate] * self.rtt_ms / 1000 / 8 / PACKET_BYTES)

    @property
    def window_packets(self) -> int:
        """Return the packets in flight before the move, all flows together."""
        return self.bdp_packets + (D_QUEUE_PACKETS if self.scenario == "D" else 0)

    @property
    def move_s(self) -> float:
        """Return when the flow moves: a second to measure and two round trips at least after the line is full."""
        rtt = self.rtt_ms / 1000
        return self.full_s + max(1.2, 2 * rtt)

    @property
    def window_each(self) -> int:
        """Return a flow's window before the move, packets."""
        return max(2, round(self.window_packets / self.flows))

    @property
    def full_s(self) -> float:
        """Return when the line is full: handshake, two round trips, and those in which slow start doubles."""
        doublings = max(0, math.ceil(math.log2(self.window_each / FIRST_WINDOW)))
        return (3 + doublings) * self.rtt_ms / 1000

    @property
    def duration_s(self) -> float:
        """Return when the run ends: three seconds and three round trips after the move."""
        return self.move_s + 3 + 3 * self.rtt_ms / 1000

    def job(self) -> Job:
        """Return the run for the runner."""
        (job,) = jobs_of(Scenario(Path("mitigation.toml"), self.scenario_text(), ()))
        return job

    def scenario_text(self) -> str:
        """Return the scenario file."""
        line, slow = LINES[self.rate], f"{RATES[self.rate] / 1e6:g}Mbit/s"
        access = slow if self.scenario == "B" else line
        core = slow if self.scenario in ("C1", "C2") else line
        light = slow if self.scenario == "C1" else line
        exit_ = slow if self.scenario == "D" else line
        # In one RTT at this rate the first window fills the path, and the part of r3's queue that is to wait there,
        # evenly.
        first = min(RATES[self.rate] * self.window_packets / self.bdp_packets, _bits(access))
        window = "1.16GB"
        if self.scenario == "A":
            window = f"{int(self.bdp_packets * PAYLOAD_BYTES / self.flows)}B"
        elif self.scenario == "D":
            # A flow that does not probe at that moment: what r3 drops is the move's doing.
            window = f"{self.window_each * PAYLOAD_BYTES}B"
        each = self.window_each
        delay = self.rtt_ms / 4
        ending = f'''
[[event]]
at = "{self.move_s * 1e3:g}ms"
move = "elephant"
route = ["sender", "r1", "r3", "receiver"]
{f"mitigation = {(MITIGATIONS | WRONG)[self.mitigation]}" if self.mitigation not in ("none", "stay") else ""}
'''
        return f'''name = "mitigation"
[run]
duration = "{self.duration_s * 1e3:g}ms"
[[node]]
name = "sender"
[[node]]
name = "r1"
[[node]]
name = "r2"
[[node]]
name = "r3"
[[node]]
name = "receiver"
[[link]]
name = "access"
from = "sender"
to = "r1"
bandwidth = "{int(first)}bit/s"
queue = "4GB"
reverse = {{ bandwidth = "{line}" }}
[[link]]
name = "r1-r2"
from = "r1"
to = "r2"
bandwidth = "{core}"
delay = "{delay:g}ms"
queue = "4GB"
reverse = {{ bandwidth = "{line}" }}
[[link]]
name = "r2-r3"
from = "r2"
to = "r3"
bandwidth = "{core}"
delay = "{delay:g}ms"
queue = "4GB"
reverse = {{ bandwidth = "{line}" }}
[[link]]
name = "light"
from = "r1"
to = "r3"
bandwidth = "{light}"
delay = "{self.rtt_ms / 10:g}ms"
queue = "4GB"
[[link]]
name = "exit"
from = "r3"
to = "receiver"
bandwidth = "{exit_}"
queue = "500 packets"
reverse = {{ bandwidth = "{line}", queue = "4GB" }}
[[flow]]
name = "elephant"
connections = {self.flows}
from = "sender"
to = "receiver"
route = ["sender", "r1", "r2", "r3", "receiver"]
return_route = ["receiver", "r3", "r2", "r1", "sender"]
congestion_control = {{ name = "cubic", variant = "2.1", beta = "819/1024", hystart = "off" }}
window = "{window}"
window_bound = "none"
recovery = "sack"
lost_retransmissions = "never"
delayed_ack = false
timestamps = false
max_reordering = 3
undo = false
initial_cwnd = {min(each, FIRST_WINDOW)}
initial_ssthresh = {each}
[measure]
series = "{10 if self.rtt_ms < 1000 else 50}ms"
[[event]]
at = "{self.full_s * 1e3:g}ms"
link = "access.forward"
bandwidth = "{access}"
{ending if self.mitigation != "stay" else ""}'''


def _bits(text: str) -> float:
    number, unit = text[: text.index("bit/s") - 1], text[text.index("bit/s") - 1]
    return float(number) * {"M": 1e6, "G": 1e9}[unit]


def cells(flows: tuple[int, ...] = FLOWS) -> Iterator[Cell]:
    """Yield all, the quick ones first."""
    for rate in RATES:
        for rtt_ms in RTTS_MS:
            for count in flows:
                for scenario in SCENARIOS:
                    names = ["stay", *MITIGATIONS, *(WRONG if count == 1 else ())]
                    for mitigation in names:
                        yield Cell(scenario, rate, rtt_ms, count, mitigation)
