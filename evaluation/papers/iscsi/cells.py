"""Set-ups that are held against the paper's statements: that of the figures with one thing changed, and crossed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Change = Mapping[str, Any]
"""Keys of the scenarios and their values, as `elephan run --set` takes them."""


@dataclass(frozen=True)
class Cell:
    """A set-up that is held against the statements."""

    name: str
    set: Change = field(default_factory=dict)
    """Changes of all scenarios."""
    controls: Mapping[str, str] = field(default_factory=dict)
    """Congestion controls with other parameters: name, TOML."""
    depth_each: int | None = None
    """Requests under way per connection; None: as the scenarios, of the session."""
    figures: tuple[str, ...] = ("fig7.toml", "fig10.toml", "fig11-13.toml")
    seconds: int = 300
    """Length of the runs of figures 7 to 10."""

    def control(self, cc: str) -> str:
        """Return a congestion control in TOML."""
        more = self.controls.get(cc)
        return f'{{ name = "{cc}", {more} }}' if more else f'"{cc}"'

    def key(self) -> dict[str, Any]:
        """Return what tells it from others, as JSON has it."""
        return {
            # Of a trace its name: where it lies changes nothing.
            "set": {key: re.sub(r'trace = "[^"]*/', 'trace = "', str(value)) for key, value in self.set.items()},
            "controls": dict(self.controls),
            "depth_each": self.depth_each,
            "figures": list(self.figures),
            "seconds": self.seconds,
        }


SACK = {"defaults.recovery": "sack"}
RENO = {"defaults.recovery": "reno"}
NEWRENO = {"defaults.recovery": "newreno"}
READS = "flow.session.workload.source.reads"
SIZE = "flow.session.workload.source.size"
DEPTH = "flow.session.workload.queue_depth"

BASE = "the set-up of the figures"

DEMANDS: Mapping[str, Change] = {
    "2 requests of 256 KiB": {DEPTH: 2},
    "8 requests of 256 KiB": {DEPTH: 8},
    "4 requests of 1 MiB": {SIZE: "1MiB", DEPTH: 4},
    "32 requests of 1 MiB": {SIZE: "1MiB", DEPTH: 32},
    "32 requests of 64 KiB": {SIZE: "64KiB", DEPTH: 32},
    "32 requests of 256 KiB": {DEPTH: 32},
}
"""Demands with as much under way whatever the connections."""

EACH = 8
"""Requests under way per connection, where each connection has its own."""

EACH_DEMANDS: Mapping[str, Change] = {
    f"{EACH} requests per connection, {reads} reads": {READS: reads} for reads in ("50%", "80%")
}
"""Demands whose requests grow with the connections."""

LINUX_26 = {
    "bic": 'variant = "linux-2.6.22"',
    "scalable": 'variant = "linux-2.6"',
    "highspeed": 'variant = "linux"',
}
"""Linux 2.6's controls, as ns-2's TCP-Linux has them."""


def one_at_a_time() -> Iterator[Cell]:
    """Yield the set-ups of the table, in the issue's order."""
    yield Cell(BASE)
    # 1 and 2, crossed: windows, recovery, the least time-out.
    for recovery, rto in itertools.product((SACK, NEWRENO, RENO), ("1s", "200ms")):
        for validated in (True, False):
            found = {**recovery, "defaults.cwnd_validation": validated, "defaults.rto_min": rto}
            if found != {**RENO, "defaults.cwnd_validation": False, "defaults.rto_min": "1s"}:
                yield Cell(_tcp(found), found)
    # 3: demand.
    yield from (Cell(name, change, depth_each=EACH) for name, change in EACH_DEMANDS.items())
    yield from (Cell(name, change) for name, change in DEMANDS.items())
    # 4: the congestion controls of 2004.
    yield Cell("Linux 2.6's BIC, Scalable and HSTCP", controls=LINUX_26)
    yield Cell("Linux 2.6's, with SACK", SACK, LINUX_26)
    yield Cell("BIC of Linux 2.6 alone", controls={"bic": LINUX_26["bic"]})
    yield Cell("Scalable without legacy window", controls={"scalable": "legacy_window = 0"})
    yield Cell("H-TCP without throughput switch", controls={"htcp": "throughput_switch = 0"})
    # 5: directions.
    yield Cell("FTP from the target's side", {"flow.ftp.direction": "reverse"}, figures=("fig11-13.toml",))
    yield Cell("one way: writes alone", {READS: 0})
    yield Cell("one way: reads alone", {READS: 1})
    # 6: access links.
    yield Cell("access links of 100 Mbit/s", {"path.access": "100Mbit/s"})
    yield Cell("no access links", {"path.access": "none"})
    # 7: Nagle, R2Ts.
    yield Cell("without Nagle's algorithm", {"defaults.nagle": False})
    yield Cell("8 unanswered R2Ts", {"flow.session.workload.max_outstanding_r2t": 8})
    yield Cell("64 KiB of a write sent unasked", {"flow.session.workload.initial_r2t": False})
    # Further values that the paper leaves open.
    for size in ("64KiB", "128KiB", "256KiB"):
        yield Cell(f"windows of {size.replace('KiB', ' KiB')} per connection", {"defaults.window": size})
    yield Cell("delayed ACKs", {"defaults.delayed_ack": True})
    yield Cell("window kept over idle times", {"defaults.slow_start_after_idle": False})
    yield Cell("a medium that takes no time", {"flow.session.workload.disk": "none", "flow.session.workload.disks": 1})
    yield Cell("queue of rate x RTT", {"path.queue": "1bdp"})
    yield Cell("SACK that resends again and again", {**SACK, "defaults.lost_retransmissions": "repeatedly"})
    yield Cell("today: all that Linux has", TODAY)
    yield Cell(
        "SACK, validated windows, RTO from 0.2 s, BIC of 16 segments per RTT, 4 requests of 1 MiB",
        {**SACK, "defaults.cwnd_validation": True, "defaults.rto_min": "200ms", **DEMANDS["4 requests of 1 MiB"]},
        {"bic": 'variant = "linux", delayed_ack = false'},
    )


TODAY: Change = {
    "defaults.recovery": "rack",
    "defaults.cwnd_validation": True,
    "defaults.count": "segments",
    "defaults.nagle": False,
    "defaults.rto_min": "200ms",
    "defaults.initial_cwnd": 10,
    "defaults.timestamps": True,
    "defaults.delayed_ack": True,
    "defaults.frto": True,
}


def crossed() -> Iterator[Cell]:
    """Yield windows x recovery x least time-out x demand x congestion controls, for figures 7 and 8."""
    demands: dict[str, tuple[Change, int | None]] = {"4 requests of 256 KiB": ({}, None)}
    demands |= {name: (DEMANDS[name], None) for name in ("4 requests of 1 MiB", "32 requests of 1 MiB")}
    demands["8 requests of 256 KiB per connection"] = ({}, EACH)
    recoveries = [(SACK, "200ms"), (NEWRENO, "1s"), (RENO, "1s"), (RENO, "200ms")]
    for validated, (recovery, rto), (demand, (change, each)), controls in itertools.product(
        (True, False), recoveries, demands.items(), ({}, LINUX_26)
    ):
        tcp = {**recovery, "defaults.cwnd_validation": validated, "defaults.rto_min": rto}
        words = (_tcp(tcp), demand, "Linux 2.6's controls" if controls else "published controls")
        yield Cell("; ".join(words), {**tcp, **change}, controls, each, ("fig7.toml",), 150)


RECOVERIES = {"sack": "SACK", "newreno": "NewReno", "reno": "Reno"}


def _tcp(change: Change) -> str:
    windows = "validated" if change["defaults.cwnd_validation"] else "unvalidated"
    seconds = {"1s": "1 s", "200ms": "0.2 s"}[change["defaults.rto_min"]]
    return f"{RECOVERIES[change['defaults.recovery']]}, {windows} windows, RTO from {seconds}"


def traced(trace: Path) -> Iterator[Cell]:
    """Yield the set-ups that replay a block trace."""
    for pace in ("timed", "closed"):
        source = f'{{ kind = "trace", trace = "{trace}", pace = "{pace}", out_of_range = "wrap", loop = true }}'
        change = {"flow.session.workload.source": source}
        yield Cell(f"HP's trace, {pace}", change, figures=("fig7.toml", "fig11-13.toml"))
