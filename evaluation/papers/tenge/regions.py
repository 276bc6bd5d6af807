"""Set-ups in which the paper's sentences about figures 8 and 10 hold: all that it leaves open, finer than on its page.

    python -m evaluation.papers.tenge.regions fig8
    python -m evaluation.papers.tenge.regions fig10

writes regions.json beside this file, a set-up per line. One that is there is not run again: a call that was stopped
goes on where it was.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import elephan
from elephan.record import Record

from .recovery import Line, cc_of

FOLDER = Path(__file__).parent
FILE = FOLDER / "regions.json"

SEEDS = 5
"""Repetitions of each set-up."""

LINE_BPS = 9.58464e9 * 64 / 66
"""Rate of the WAN PHY for frames with their preamble and gap, bit/s."""

EMPTY = 0.001
"""Background of an empty line, %: eight packets per second, since a rate has to be above 0."""

LENGTHS = (2.0, 0.5, 1.0, 5.0)
"""Bursts of figure 10 that were run at every share, s: the paper's first."""

WINDOW = "window"
"""Burst of figure 8's sender whose window, not its host, is the limit."""

HOST_UDP = 4.13e9 * 9038 / 9000 / LINE_BPS
"""The paper's second host (figure 4) as a share of the line, frames included."""


def lost_of(record: Record) -> float:
    """Return the segments that the stream had to send again, per second."""
    return float(record.metrics["retransmitted_segments"] or 0) / float(record.metrics["simulated_s"] or 1)


@dataclass(frozen=True)
class Fig8:
    """A set-up of figure 8."""

    burst: str
    """Bytes that leave the sender at once; `WINDOW`: the whole window."""
    queue: str

    def largest(self) -> list[int | None]:
        """Return the largest background that costs the stream nothing, % of the line, for each seed; None: it loses
        packets on the empty line."""
        found: list[int | None] = []
        for seed in range(1, SEEDS + 1):
            low, high = 0, 100  # Nothing is lost at low, something at high.
            last = found[-1] if found else None
            if last:  # Most seeds agree.
                if self.loses(last, seed):
                    high = last
                else:
                    low = last
                    if self.loses(low + 1, seed):
                        high = low + 1
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if self.loses(middle, seed) else (middle, high)
            found.append(None if low == 0 and self.loses(EMPTY, seed) else low)
        return found

    def loses(self, load: float, seed: int) -> bool:
        """Return True if the stream loses a packet at this background, % of the line."""
        changes: dict[str, Any] = {
            "run.repetitions": 1,
            "run.seed": seed,
            "sweep.link.line.queue": json.dumps([self.queue]),
            "sweep.background.load.rate": json.dumps([f"{load}%"]),
        }
        if self.burst != WINDOW:
            changes["sweep.node.sender.send.tso"] = json.dumps([self.burst])
        file = "fig8-window.toml" if self.burst == WINDOW else "fig8.toml"
        (record,) = elephan.run(FOLDER / file, changes, store="none", workers=1)
        return lost_of(record) > 0

    def measured(self) -> dict[str, Any]:
        """Return what is kept of it."""
        return {"largest": self.largest()}


@dataclass(frozen=True)
class Fig10:
    """A set-up of figure 10."""

    hosts: bool
    """The paper's sender of 5.447 Gbit/s, in place of one that fills the line."""
    packet: int
    """IP packets of TCP and of the burst, B."""
    burst_s: float
    share: float
    """Burst, of the line."""
    queue: float
    """Of rate x RTT."""
    lost: str = "era"
    """`lost_retransmissions` of the flow: the sender's way to notice that a retransmission was lost."""

    @property
    def window(self) -> int:
        """Return the window that fills the line, packets, and three for the time that they take to be sent."""
        return round(LINE_BPS * 0.017 / 8 / (self.packet + 38)) + 3

    def measured(self) -> dict[str, Any]:
        """Return the recovery times of both controls for each seed, s; None: not within the longest run."""
        # Reno's way back is as long as its window in round trips, and HSTCP's much shorter.
        longest = {"reno": 50 * 9000 / self.packet, "highspeed": 40.0}
        seconds: dict[str, list[float | None]] = {}
        for control, most_s in longest.items():
            found: list[float | None] = []
            run_s = most_s if control == "reno" else 8.0
            for seed in range(1, SEEDS + 1):
                last = self.recovery_s(control, seed, run_s)
                if last is None and run_s < most_s:
                    last = self.recovery_s(control, seed, most_s)
                found.append(last)
                # A run that ends earlier is the same run: what the seeds before it took is long enough for most.
                run_s = most_s if None in found else min(most_s, 1.3 * max(item or 0.0 for item in found) + 2)
            seconds[control] = found
        return seconds

    def recovery_s(self, control: str, seed: int, run_s: float) -> float | None:
        """Return one run's recovery time, s; None: not within `run_s` of the burst's end."""
        changes: dict[str, Any] = {
            "run.repetitions": 1,
            "run.seed": seed,
            "run.duration": f"{2 + self.burst_s + run_s:.1f}s",
            "flow.lost_retransmissions": self.lost,
            "background.burst.stop": f"{2 + self.burst_s}s",
            "sweep.link.line.queue": json.dumps([f"{self.queue}bdp"]),
            "sweep.background.burst.rate": json.dumps([f"{100 * self.share:.6g}%"]),
            "sweep.flow.congestion_control": json.dumps([control]),
        }
        if not self.hosts:
            changes |= {"flow.mtu": f"{self.packet}B", "background.burst.packet": f"{self.packet}B"}
            changes |= {"flow.cwnd_clamp": self.window, "flow.initial_ssthresh": self.window}
        file = "fig10-hosts.toml" if self.hosts else "fig10.toml"
        results = elephan.run(FOLDER / file, changes, store="none", workers=1)
        (record,) = results
        series = results.series_of(record)
        assert series is not None and cc_of(record) == control
        found = Line.of(record, series).recovery_s()
        return None if found is None else round(found, 3)


Setup = Fig8 | Fig10


def fig8() -> Iterator[Setup]:
    """Bursts by queues, the coarse grid first."""
    coarse, fine = ("64kB", "512kB", "4MB"), ("128kB", "256kB", "1MB", "2MB", "16MB")
    bursts = ("8000B", "64kB", "512kB", WINDOW, "256kB", "128kB", "32kB")
    for queues in (coarse, fine):
        for burst in bursts:
            yield from (Fig8(burst, queue) for queue in queues)


def fig10() -> Iterator[Setup]:
    """Shares by queues for the paper's two seconds, shorter and longer bursts, finer queues, larger windows last."""
    lines = ((False, 9000, (0.2, 0.4, 0.6, 0.8, 1.0)), (True, 9216, (round(HOST_UDP, 4), 0.6, 0.8)))
    for hosts, packet, shares in lines:
        for share in shares:
            yield from (Fig10(hosts, packet, 2.0, share, queue) for queue in (0.1, 0.01, 1.0))
    for burst_s in LENGTHS[1:]:
        for hosts, packet, shares in lines:
            yield from (Fig10(hosts, packet, burst_s, share, 0.1) for share in shares)
    for hosts, packet, shares in lines:
        for share in shares:
            yield from (Fig10(hosts, packet, 2.0, share, queue) for queue in (0.03, 0.3))
    # HSTCP is back so soon after the paper's hosts that its window at the burst's end decides.
    for queue in (0.1, 0.03):
        for burst_s in (1.7, 1.8, 1.9, 2.1, 2.2, 2.3):
            yield Fig10(True, 9216, burst_s, round(HOST_UDP, 4), queue)
    for queue in (0.1, 0.01, 1.0):
        yield from (Fig10(False, 4000, 2.0, share, queue) for share in (0.4, 1.0))
    yield from (Fig10(False, 1500, 2.0, share, 0.1) for share in (0.4, 1.0))


def fig10_setups(lost: str = "era") -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return figure 10's set-ups in regions.json with one `lost_retransmissions`, by all that they share otherwise."""
    keys = ("hosts", "packet", "burst_s", "share", "queue")
    return {tuple(item[key] for key in keys): item for item in read()["fig10"]["setups"] if item["lost"] == lost}


FIGURES = {"fig8": fig8, "fig10": fig10}


def read() -> dict[str, Any]:
    """Return what regions.json has: by figure the command, the date and the set-ups."""
    return dict(json.loads(FILE.read_text())) if FILE.exists() else {}


def write(kept: dict[str, Any]) -> None:
    """Write regions.json, a set-up per line."""
    parts = []
    for name, figure in kept.items():
        lines = ",\n  ".join(json.dumps(setup) for setup in figure["setups"])
        head = f'"command": {json.dumps(figure["command"])}, "date": {json.dumps(figure["date"])}'
        parts.append(f'"{name}": {{{head}, "setups": [\n  {lines}\n]}}')
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main() -> None:
    """Run the set-ups of a figure that are not there yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("figure", choices=FIGURES)
    name = parser.parse_args().figure
    for setup in FIGURES[name]():
        if any(asdict(setup).items() <= other.items() for other in read().get(name, {}).get("setups", [])):
            continue
        found = asdict(setup) | setup.measured()
        kept = read()  # After the runs: another call may have written meanwhile.
        figure = kept.setdefault(name, {"command": f"python -m evaluation.papers.tenge.regions {name}", "setups": []})
        figure["setups"].append(found)
        figure["date"] = datetime.date.today().isoformat()
        write(kept)
        print(figure["setups"][-1], flush=True)


if __name__ == "__main__":
    main()
