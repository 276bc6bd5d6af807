"""The move at ten phases of CUBIC's sawtooth, and at the paper's state, as phases.csv.

    python -m evaluation.papers.hybrid.phases                # resumable: what is in the table is not run again
    python -m evaluation.papers.hybrid.phases --case D-10G-10ms

A first run without a move finds the sawtooth: the time between the flow's first loss and its second. The flow moves at
ten equally spaced phases of it, and at the paper's state: 343 packets in the queue on the second approach. Where the
queues hold every window there is no loss and no sawtooth; there the phases are ten round trips, from 343 packets on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import elephan
from elephan.report.timeline import link_line

from .controls import CUBIC, FOLDER, cell_of, read_table, write_table

TABLE = FOLDER / "phases.csv"

PHASES = 10
STATE_PACKETS = 343
"""Packets in r3's queue when the paper's flow moves (section 3.4)."""

LOSSES_APART_S = 1.0
"""Losses closer than that are one event."""

AFTER_S = 12.0
"""Time that a flow is followed: the wake is 10 s."""

KINDS = ("era", "never", "repeatedly")
QUEUES = {"deep": "4GB", "500": "500 packets"}


@dataclass(frozen=True)
class Case:
    """A cell, its packets and queues."""

    scenario: str
    rate_mbps: int
    rtt_ms: int
    mtu_bytes: int
    queues: str
    """"deep": every queue but r3's holds a window; "500": 500 packets at every router and at the sender."""
    look_s: int
    """Time in which the first run finds the sawtooth."""

    @property
    def cell(self) -> str:
        """Name of the cell."""
        rate = f"{self.rate_mbps // 1000}G" if self.rate_mbps >= 1000 else f"{self.rate_mbps}M"
        return f"{self.scenario.upper()}-{rate}-{self.rtt_ms}ms"

    def changes(self, kind: str, at_s: float, duration_s: float) -> dict[str, str]:
        """Return the changes of controls.toml."""
        low, high = f"{self.rate_mbps}Mbit/s", {1_000: "2488Mbit/s", 10_000: "39813Mbit/s"}[self.rate_mbps]
        limit = {"b": "sender-r1", "d": "r3-receiver"}[self.scenario]
        links = ("sender-r1", "r1-r2", "r2-r3", "light", "r3-receiver")
        first = low if self.scenario == "b" else high
        return {
            **{f"link.{link}.bandwidth": low if link == limit else high for link in links},
            **{f"link.{link}.queue": QUEUES[self.queues] for link in links[:-1]},
            "link.r1-r2.delay": f"{self.rtt_ms / 4}ms",
            "link.r2-r3.delay": f"{self.rtt_ms / 4}ms",
            "link.light.delay": f"{self.rtt_ms / 10}ms",
            "flow.congestion_control": CUBIC,
            "flow.initial_cwnd": "10",
            "flow.initial_ssthresh": "100",
            "flow.mtu": f"{self.mtu_bytes}B",
            "flow.lost_retransmissions": kind,
            "event.0.at": f"{at_s:.3f}s",
            "event.1.at": f"{at_s:.3f}s",
            "event.1.bandwidth": first,
            "run.duration": f"{duration_s:.3f}s",
            "measure.series": f"{self.series_ms}ms",
        }

    @property
    def series_ms(self) -> int:
        """Interval of the series: half a round trip at 10 ms."""
        return 5 if self.rtt_ms == 10 else 50

    def moves_s(self) -> dict[str, float]:
        """Return the times of moves by phase, in parts of the sawtooth, and "state"."""
        changes = self.changes("never", self.look_s - 0.1, self.look_s)
        results = elephan.run(FOLDER / "controls.toml", changes, workers=1)
        record, series = results[0], results.series_of(results[0])
        if series is None:
            raise ValueError(f"run {record.id} has no series")
        names = [link["name"] for link in record.spec["links"]]
        limit = names.index({"b": "sender-r1.forward", "d": "r3-receiver.forward"}[self.scenario])
        dropped = link_line(series, limit, "dropped_packets")
        queued = link_line(series, limit, "queue_packets")
        lost_s = dropped.time_s[np.diff(dropped.values, prepend=0.0) > 0]
        ends = lost_s[np.flatnonzero(np.diff(lost_s, append=np.inf) > LOSSES_APART_S)]
        parts = [(k + 0.5) / PHASES for k in range(PHASES)]
        if len(ends) < 2:
            begin = float(queued.time_s[queued.values >= STATE_PACKETS][0])
            return {f"{part:.2f}": begin + 10 * part * self.rtt_ms / 1e3 for part in parts}
        begins = lost_s[np.flatnonzero(np.diff(lost_s, prepend=-np.inf) > LOSSES_APART_S)]
        begin, end = ends[0], begins[1]
        moves = {f"{part:.2f}": _grid(begin + part * (end - begin)) for part in parts}
        settled = begin + 10 * self.rtt_ms / 1e3
        full = (queued.time_s > settled) & (queued.time_s < end) & (queued.values >= STATE_PACKETS)
        if full.any():
            moves["state"] = float(queued.time_s[full][0])
        return moves


def _grid(time_s: float) -> float:
    """Return a time of the series before."""
    return float(np.floor(time_s * 10) / 10)


def cases() -> Iterator[Case]:
    """Yield the cells: the paper's of figures 4, 6 and 7, and D at 100 ms."""
    for mtu in (1500, 1040):
        for queues in QUEUES:
            yield Case("d", 10_000, 10, mtu, queues, 16)
            yield Case("b", 1_000, 100, mtu, queues, 60)
            yield Case("d", 1_000, 100, mtu, queues, 60)


HEADS = (
    "cell",
    "packet_bytes",
    "queues",
    "lost_retransmissions",
    "phase",
    "at_s",
    "queued_packets",
    "before_mbps",
    "first_100ms_mbps",
    "least_second_mbps",
    "dip_percent",
    "duplicate_acks",
    "dropped_200ms",
    "resent_200ms",
    "dropped_wake",
    "resent_wake",
    "timeouts",
)


def measure(case: Case, kind: str, phase: str, at_s: float) -> list[str]:
    """Run one move and return its line."""
    results = elephan.run(FOLDER / "controls.toml", case.changes(kind, at_s, at_s + AFTER_S), workers=1)
    record, series = results[0], results.series_of(results[0])
    cell = cell_of(record, series)
    move = cell.known
    assert series is not None
    names = [link["name"] for link in record.spec["links"]]
    limit = names.index({"b": "sender-r1.forward", "d": "r3-receiver.forward"}[case.scenario])
    queued = link_line(series, limit, "queue_packets")
    at = int(np.searchsorted(queued.time_s, move.time_s - 1e-9))
    return [
        case.cell,
        str(case.mtu_bytes),
        case.queues,
        kind,
        phase,
        f"{at_s:.3f}",
        f"{queued.values[at]:.0f}",
        f"{move.before_bps / 1e6:.0f}",
        f"{cell.load()[0] / 1e6:.0f}",
        f"{move.least_bps / 1e6:.0f}",
        f"{100 * move.dip:.1f}",
        str(move.duplicate_acks),
        str(move.dropped_early),
        str(move.course.counted("retransmitted_segments", 0.2)),
        str(move.dropped),
        str(move.retransmitted_segments),
        str(record.metrics.get("timeouts", "")),
    ]


def main() -> None:
    """Run the cases and write the table, a line per run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", help="the name of one cell, such as D-10G-10ms")
    parser.add_argument("--kind", choices=KINDS, help="one answer to a lost retransmission")
    options = parser.parse_args()
    rows = read_table(TABLE)
    known = {tuple(line[:5]) for line in rows}
    for case in cases():
        if options.case not in (None, case.cell):
            continue
        for phase, at_s in case.moves_s().items():
            for kind in KINDS:
                name = (case.cell, str(case.mtu_bytes), case.queues, kind, phase)
                if options.kind in (None, kind) and name not in known:
                    rows.append(measure(case, kind, phase, at_s))
                    print(",".join(rows[-1]), flush=True)
                    write_table(TABLE, HEADS, rows)


if __name__ == "__main__":
    main()
