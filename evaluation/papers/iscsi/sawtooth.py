"""The equations of the introduction, and a simulated window held against them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from elephan.papers.evaluation import line_bps, path_packets, round_trip_s
from elephan.papers.losses import loss_samples
from elephan.record import Record
from elephan.store.series import Series

Floats = npt.NDArray[np.float64]

PACKET_BYTES = 1500
"""The paper's packet."""

MATHIS = 1.2
"""Constant of the paper's relation, window = 1.2 / sqrt(p); exactly sqrt(3 / 2) for one segment per round trip."""


def rounds_to_recover(window: float, per_round: float) -> float:
    """Return the round trips from half a window to all of it, at so many segments per round trip."""
    return window / 2 / per_round


def loss_for_window(window: float) -> float:
    """Return the loss rate at which Reno's mean window is `window`, by the paper's relation."""
    return (MATHIS / window) ** 2


def constant(per_round: float) -> float:
    """Return mean window times sqrt(loss rate) of a sawtooth that halves and grows by `per_round` segments.

    From W to 2 W in W / r round trips it sends 1.5 W^2 / r packets, one of which is lost, at 1.5 W in the mean.
    """
    return math.sqrt(1.5 * per_round)


def bottom_for_loss(loss: float, per_round: float) -> float:
    """Return the lowest window of that sawtooth."""
    return constant(per_round) / 1.5 / math.sqrt(loss)


@dataclass(frozen=True)
class Window:
    """cwnd of one flow, sampled."""

    time_s: Floats
    cwnd: Floats
    srtt_s: Floats
    goodput_bps: Floats
    losses: tuple[int, ...]
    """Samples of losses."""

    @classmethod
    def of(cls, series: Series) -> Window:
        """Read it off the series of a run with one flow."""
        table = series.flow
        column = {
            name: table.column(name).to_numpy().astype(np.float64)
            for name in ("time_s", "cwnd_packets", "srtt_s", "goodput_bps")
        }
        return cls(
            column["time_s"], column["cwnd_packets"], column["srtt_s"], column["goodput_bps"], loss_samples(series)
        )

    def rounds(self, start: int, end: int) -> float:
        """Return the round trips between two samples."""
        steps = np.diff(self.time_s[start : end + 1])
        return float(np.sum(steps / self.srtt_s[start + 1 : end + 1]))

    def mean(self, start: int, end: int) -> float:
        """Return the mean window over round trips, not over time: a queue makes the rounds at the top longer."""
        weights = np.diff(self.time_s[start : end + 1]) / self.srtt_s[start + 1 : end + 1]
        return float(np.average(self.cwnd[start + 1 : end + 1], weights=weights))

    def goodput(self, start: int, end: int) -> float:
        """Return the mean goodput between two samples, bit/s."""
        weights = np.diff(self.time_s[start : end + 1])
        return float(np.average(self.goodput_bps[start + 1 : end + 1], weights=weights))

    def regained(self) -> tuple[int, int]:
        """Return the samples of the first loss and of the next full window. Raises ValueError when there is none."""
        lost = self.losses[0]
        full = self.cwnd[max(lost - 2, 0)]
        # One less than before: the clamp of the scenario is a segment above the product.
        back = np.flatnonzero(self.cwnd[lost + 1 :] >= full - 1)
        if not len(back):
            raise ValueError("the window did not come back within the run")
        return lost, lost + 1 + int(back[0])

    def periods(self, bottom: float) -> tuple[int, int]:
        """Return the samples between which there are whole periods; the first begins where slow start ends."""
        begin = int(np.argmax(self.cwnd >= bottom))
        return begin, self.losses[-1]


def line_window(record: Record) -> float:
    """Return the bandwidth-delay product of a record's path, packets."""
    return path_packets(line_bps(record), round_trip_s(record), PACKET_BYTES)
