"""Losses, as the series of a run shows them."""

from __future__ import annotations

import numpy as np

from elephan.store.series import Series, values_of

QUIET_S = 1.0
"""Segments sent again within this time of the last belong to the same loss."""


def loss_samples(series: Series) -> tuple[int, ...]:
    """Return the samples, of a run with one flow, at which something was sent again after a quiet second: a loss."""
    time_s = values_of(series.flow, "time_s")
    retransmitted = values_of(series.flow, "retransmitted_segments")
    again = np.flatnonzero(np.diff(retransmitted, prepend=0) > 0)
    return tuple(int(i) for n, i in enumerate(again) if n == 0 or time_s[i] - time_s[again[n - 1]] > QUIET_S)
