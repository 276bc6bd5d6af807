"""Sending rate, window and goodput over time, of libudt and of simulated UDT4, on one sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402  (after the choice of a backend)
import numpy as np  # noqa: E402

from elephan.store import Series  # noqa: E402

PACKET_BITS = 1500 * 8
RATES = 2
"""Rates of the line that the drawing has room for: in slow start both send a packet each microsecond."""


def draw(path: Path, measured: dict[str, Any], series: Series) -> None:
    """Draw a measured run, a row of udt.jsonl, beside the series of a simulated one."""
    flow = series.flow
    time_s = flow.column("time_s").to_numpy()
    sent = measured["sent"]
    sent_s = [row["time_s"] for row in sent]
    received = np.array(measured["received"])
    # The last interval is the part of one in which the receiver was ended.
    received = received[:-1]
    live_goodput = np.diff(received[:, 1]) * 8e-6 / np.diff(received[:, 0])
    figure, (rate, window, goodput) = plt.subplots(3, 1, figsize=(8, 7), sharex=True, layout="constrained")
    rate.plot(sent_s, [PACKET_BITS / row["period_us"] for row in sent], label="libudt 4.11")
    rate.plot(time_s, flow.column("sending_rate_bps").to_numpy() / 1e6, label="simulated udt4")
    rate.set_ylim(0, RATES * measured["point"]["rate_mbps"])
    rate.set_ylabel("sending rate, Mbit/s")
    rate.legend(frameon=False)
    window.plot(sent_s, [row["window_packets"] for row in sent])
    window.plot(time_s, flow.column("cwnd_packets").to_numpy())
    window.set_ylabel("window, packets")
    goodput.plot(received[1:, 0], live_goodput)
    goodput.plot(time_s, flow.column("goodput_bps").to_numpy() / 1e6)
    goodput.set_ylabel("goodput, Mbit/s")
    goodput.set_xlabel("time, s")
    figure.savefig(path, dpi=100)
    plt.close(figure)
