"""A cell of the paper's grid: one flow that moves, and what the move cost it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elephan.papers.evaluation import PaperResults, Table
from elephan.record import Record
from elephan.report.moves import BACK_RTTS, PEAK_S, SECOND_S, WAKE_RTTS, WAKE_S, Move, moves_of
from elephan.report.timeline import link_line
from elephan.store.series import Series

BACK = 0.95
"""Part of the new limit at which a flow counts as back."""

RFC_7323_BYTES = 65_535 << 14
"""Largest window that TCP can express."""

HEADERS_BYTES = 40
TIMESTAMPS_BYTES = 12


@dataclass(frozen=True)
class Cell:
    """A run of the grid and its move; None when the flow never reached the rate at which it moves."""

    record: Record
    series: Series
    move: Move | None

    @classmethod
    def of(cls, results: PaperResults, record: Record) -> Cell:
        """Read it off a record."""
        series = results.series(record)
        moves = moves_of(record, series)
        return cls(record, series, moves[0] if moves else None)

    @property
    def known(self) -> Move:
        """The move. Raises ValueError where there was none: a claim must not rest on it."""
        if self.move is None:
            raise ValueError(f"run {self.record.id} did not move, or ended within a second of it")
        return self.move

    @property
    def rtt_s(self) -> float:
        """Propagation round-trip time before the move."""
        flow = self.record.spec["flows"][0]
        links = self.record.spec["links"]
        return sum(int(links[link]["delay_ns"]) for link in (*flow["route"], *flow["return_route"])) / 1e9

    @property
    def payload_share(self) -> float:
        """Part of a full packet that is payload."""
        transport = self.record.spec["flows"][0]["transport"]
        headers = HEADERS_BYTES + (TIMESTAMPS_BYTES if transport["timestamps"] else 0)
        return 1 - headers / int(transport["mtu_bytes"])

    def slowest_bps(self, route: Sequence[int]) -> int:
        """Rate of the slowest link of a way."""
        return min(int(self.record.spec["links"][link]["rate_bps"]) for link in route)

    @property
    def limiting_bps(self) -> int:
        """The paper's limiting rate: that of the slowest link before the move, or of the window where that is less."""
        flow = self.record.spec["flows"][0]
        line = self.slowest_bps(flow["route"])
        window = int(flow["transport"]["window_bytes"]) * 8 / self.rtt_s
        return min((100_000_000, 1_000_000_000, 10_000_000_000), key=lambda rate: abs(rate - min(line, window)))

    @property
    def new_limit_bps(self) -> float:
        """Most payload per second after the move: the slowest link's, or a window per round trip."""
        move = self.known
        line = self.slowest_bps(move.route_after) * self.payload_share
        return min(line, int(self.record.spec["flows"][0]["transport"]["window_bytes"]) * 8 / move.rtt_after_s)

    @property
    def bound_decides(self) -> bool:
        """Return True if RFC 7323's window would be the limit, before the move or after it."""
        flow = self.record.spec["flows"][0]
        window = int(flow["transport"]["window_bytes"])
        if window <= RFC_7323_BYTES:
            return False
        before = self.slowest_bps(flow["route"]) * self.payload_share * self.rtt_s
        after = self.new_limit_bps * self.known.rtt_after_s
        return max(before, after) > RFC_7323_BYTES * 8

    def load(self) -> tuple[float, float]:
        """Return what r3's link to the receiver carried, as payload, bit/s: in the first 0.1 s, in the least second.

        That is throughput as a trace of arriving packets shows it: what came twice counts twice.
        """
        last = self.known.route_after[-1]
        line = link_line(self.series, last, "delivered_bytes")
        first = int(np.searchsorted(line.time_s, self.known.time_s - 1e-9))
        since_s = line.time_s[first:] - line.time_s[first]
        bits = (line.values[first:] - line.values[first]) * 8 * self.payload_share
        ends = np.searchsorted(since_s, since_s + SECOND_S - 1e-9)
        begins = np.flatnonzero((ends < len(since_s)) & (since_s <= max(WAKE_S, WAKE_RTTS * self.rtt_s)))
        seconds = (bits[ends[begins]] - bits[begins]) / SECOND_S
        peak = int(np.searchsorted(since_s, PEAK_S - 1e-9))
        return float(bits[peak] / since_s[peak]), float(seconds.min())

    @property
    def back_s(self) -> float | None:
        """Time at which the flow was back at `BACK` of the new limit, since the move; None: not in the run.

        As `Move.back_s`, but no sample counts for more than the line carries: data that waited for a lost segment is
        delivered all at once, and is no rate.
        """
        move = self.known
        wanted_bps = BACK * self.new_limit_bps
        if move.least_bps >= wanted_bps:
            return 0.0
        since_s = move.since_s
        most_bits = np.diff(since_s) * self.slowest_bps(move.route_after)
        bits = np.append(0.0, np.cumsum(np.minimum(np.diff(move.course.delivered_bits), most_bits)))
        ends = np.searchsorted(since_s, since_s + max(SECOND_S, BACK_RTTS * self.rtt_s) - 1e-9)
        begins = np.flatnonzero((ends < len(since_s)) & (since_s >= move.least_at_s - 1e-9))
        means = (bits[ends[begins]] - bits[begins]) / (since_s[ends[begins]] - since_s[begins])
        back = begins[means >= wanted_bps]
        return float(since_s[back[0]]) if len(back) else None

    @property
    def name(self) -> str:
        """Its place in the grid."""
        return f"{rate_text(self.limiting_bps)}, {self.rtt_s * 1e3:g} ms"


def rate_text(rate_bps: float) -> str:
    """Return a rate as the paper writes it."""
    return f"{rate_bps / 1e9:g} Gbit/s" if rate_bps >= 1e9 else f"{rate_bps / 1e6:g} Mbit/s"


def cells_of(results: PaperResults, file: str) -> list[Cell]:
    """Return the cells of a scenario file, in order."""
    return [Cell.of(results, record) for record in results.of(file)]


def cell_at(cells: Sequence[Cell], rate_bps: int, rtt_ms: float) -> Cell:
    """Return one cell. Raises KeyError."""
    for cell in cells:
        if cell.limiting_bps == rate_bps and abs(cell.rtt_s * 1e3 - rtt_ms) < 1e-6:
            return cell
    raise KeyError(f"no cell of {rate_text(rate_bps)} and {rtt_ms:g} ms")


HEADS = (
    "before",
    "least second",
    "dip",
    "on the line",
    "first 100 ms",
    "duplicate ACKs",
    "drops, 200 ms",
    "drops in all",
    "back after",
    "round trips",
)


def row(name: str, cell: Cell) -> tuple[str, ...]:
    """Return a row of the table over the grid."""
    if cell.move is None:
        return (name, *("-",) * (len(HEADS) - 1), "not moved")
    move = cell.move
    back = cell.back_s
    peak, least = cell.load()
    ended = float(move.since_s[-1])
    return (
        name,
        f"{move.before_bps / 1e6:,.0f}",
        f"{move.least_bps / 1e6:,.0f}",
        f"{100 * move.dip:.1f} %" if move.dip > 0 else "none",
        f"{least / 1e6:,.0f}",
        f"{peak / 1e6:,.0f}",
        "-" if move.duplicate_acks is None else f"{move.duplicate_acks:,}",
        f"{move.dropped_early:,}",
        f"{move.dropped:,}",
        f"not in {ended:.0f} s" if back is None else f"{back:.1f} s",
        f"over {ended / move.rtt_after_s:,.0f}" if back is None else f"{back / move.rtt_after_s:,.0f}",
    )


def table_of(claim: str, title: str, rows: Sequence[tuple[str, Cell]], first: str = "cell", caption: str = "") -> Table:
    """Return the table of a scenario's cells."""
    return Table(claim, title, (first, *HEADS), tuple(row(name, cell) for name, cell in rows), caption or CAPTION)


CAPTION = (
    "Rates are payload, Mbit/s. Before: the round trip before. Dip: what the least of all seconds in the wake (20 "
    "round trips, at least 10 s) lacks of it. On the line, first 100 ms: least second and first 100 ms of r3's link to "
    "the receiver, where what comes twice counts twice. Drops: on all links, within 200 ms and in the wake. Back: from "
    "when on 95 % of the new limit were kept for ten round trips, at least a second; in seconds and in round trips of "
    "the new way."
)
