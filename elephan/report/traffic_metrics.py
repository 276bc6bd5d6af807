"""Metrics of other traffic and of a kernel's senders, as the catalogue of `elephan.report.metrics` takes them."""

from __future__ import annotations

from elephan import units
from elephan.report.copy_metrics import Item


def _rating(value: float | None) -> str:
    return units.NOTHING if value is None else f"{value:.1f}"


def _score(value: float | None) -> str:
    return units.NOTHING if value is None else f"{value:.2f}"


OTHER_TRAFFIC: tuple[Item, ...] = (
    ("sent_packets", "sent", "packets", units.count, "neither", "Packets sent."),
    ("received_packets", "received", "packets", units.count, "higher", "Those that arrived."),
    ("dropped_packets", "dropped", "packets", units.count, "lower", "Those that were lost."),
    ("loss_share", "loss", "1", units.share, "lower", "`dropped_packets` over these and those received."),
    ("delay_mean_s", "mean delay", "s", units.duration, "lower", "One-way delay of the packets that arrived."),
    ("delay_p50_s", "delay p50", "s", units.duration, "lower", "Its median."),
    ("delay_p99_s", "delay p99", "s", units.duration, "lower", "What 99 of 100 packets stay within."),
    ("delay_max_s", "delay max", "s", units.duration, "lower", "The longest."),
    (
        "jitter_s",
        "jitter",
        "s",
        units.duration,
        "lower",
        "Mean difference between the delays of packets that arrive one after the other: what RFC 3550, 6.4.1 averages.",
    ),
    (
        "voice_r",
        "R",
        "",
        _rating,
        "higher",
        "Rating of a call over the source's `codec` by the E-model of ITU-T G.107 (06/2015): 93.2 at best; above 80 "
        "users are satisfied, below 60 nearly all are not (G.109). Ie and Bpl are those of G.113 (G.711 with loss "
        "concealment: 0 and 25.1), losses are random, the playout buffer is the one that suits the call best, and all "
        "else has G.107's default.",
    ),
    ("voice_mos", "MOS", "", _score, "higher", "Mean opinion score of that rating (G.107, annex B): 1 to 4.5."),
    (
        "voice_delay_s",
        "mouth to ear",
        "s",
        units.duration,
        "lower",
        "Delay of that call: a packet's speech, the codec's look-ahead, the network and the playout buffer.",
    ),
)
"""Under `background`, for each source."""

SENDING: tuple[Item, ...] = (
    (
        "busy_s",
        "busy",
        "s",
        units.duration,
        "neither",
        "Backend `kernel`, of a flow: time that its sender had data (TCP_INFO).",
    ),
    (
        "limited_by_receive_window_s",
        "waited for window",
        "s",
        units.duration,
        "lower",
        "Likewise: part of `busy_s` in which the receiver's window kept data back.",
    ),
    (
        "limited_by_send_buffer_s",
        "waited for buffer",
        "s",
        units.duration,
        "lower",
        "Likewise: part of `busy_s` in which the send buffer kept the application back.",
    ),
)
"""Under `flows`."""
