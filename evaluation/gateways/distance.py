"""Credits and window by distance: the closed form beside the measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from elephan.record import Record
from elephan.report.draw import Ink, frame
from evaluation.gateways.section import Picture, Section, jobs, payload
from evaluation.markdown import table
from evaluation.runner import Runner

PORT_BPS = 850_000_000
"""1GFC without its line code."""

PAYLOAD_BYTES = 2112
LINE_BYTES = PAYLOAD_BYTES + 24 + 4 + 8 + 24
"""A frame's time on the line: header, CRC, delimiters, six fill words (FC-FS-2)."""
STREAM_BYTES = PAYLOAD_BYTES + 24 + 4 + 8 + 28
"""A frame in TCP: header, CRC, delimiters, encapsulation header (RFC 3643)."""

US_PER_KM = 5
"""Propagation in fibre, one way."""

PORT_MB_PER_S = PORT_BPS / 8e6 * PAYLOAD_BYTES / LINE_BYTES
"""Payload of a port that never waits."""

FRAME_US = LINE_BYTES * 8e6 / PORT_BPS


def by_credits(km: float, credits: int) -> float:
    """Return the payload of a port, MB/s: a credit comes back one frame and one round trip after it is spent."""
    return PORT_MB_PER_S * min(1.0, credits * FRAME_US / (FRAME_US + 2 * US_PER_KM * km))


def by_window(km: float, window_bytes: int) -> float:
    """Return the payload of a port whose frames cross a TCP connection, MB/s: window / RTT less encapsulation."""
    return min(PORT_MB_PER_S, window_bytes / (2 * US_PER_KM * km) * PAYLOAD_BYTES / STREAM_BYTES)


def credits_wanted(km: float) -> int:
    """Return the credits with which a port never waits."""
    return math.ceil((FRAME_US + 2 * US_PER_KM * km) / FRAME_US)


def window_wanted(km: float) -> float:
    """Return the window with which a port never waits, bytes."""
    return PORT_MB_PER_S * 2 * US_PER_KM * km * STREAM_BYTES / PAYLOAD_BYTES


Points = dict[tuple[int, int], float]
"""Payload, MB/s, by km and by credits or window in bytes."""


def credit_point(record: Record) -> tuple[int, int]:
    """Return the kilometres between port and gateway, and the port's credits."""
    near = record.spec["gateways"][0]
    return round(near["delay_ns"] / 1000 / US_PER_KM), near["credits"]


def window_point(record: Record) -> tuple[int, int]:
    """Return the kilometres between the gateways, and the window."""
    delay_ns, window = record.spec["links"][0]["delay_ns"], record.spec["flows"][0]["transport"]["window_bytes"]
    return round(delay_ns / 1000 / US_PER_KM), window


def measure(runner: Runner, changes: Sequence[dict[str, Any] | None] = (None, None)) -> tuple[Points, Points]:
    """Run all distances with all credits, and with all windows."""
    credits = {credit_point(record): payload(record) for record in runner.run(jobs("credits.toml", changes[0]))}
    windows = {window_point(record): payload(record) for record in runner.run(jobs("window.toml", changes[1]))}
    return credits, windows


def _size(size_bytes: float) -> str:
    return f"{size_bytes / 2**20:.0f} MiB" if size_bytes >= 2**20 else f"{size_bytes / 2**10:.0f} KiB"


def section(found: tuple[Points, Points]) -> Section:
    """Return the part of the page."""
    credits, windows = found

    def rows(points: Points, model: Any) -> list[list[str]]:
        columns = sorted({column for _, column in points})
        return [
            [
                f"{km:,} km",
                *(f"{points[km, column]:.1f} ({model(km, column):.1f})" for column in columns),
                f"{credits_wanted(km):,}" if model is by_credits else f"{window_wanted(km) / 1e6:.2g} MB",
            ]
            for km in sorted({km for km, _ in points})
        ]

    credit_heads = ["port to gateway", *(str(n) for n in sorted({n for _, n in credits})), "credits wanted"]
    window_heads = ["gateway to gateway", *(_size(n) for n in sorted({n for _, n in windows})), "window wanted"]
    differences = {point: abs(value / by_window(*point) - 1) for point, value in windows.items()}
    km, window = max(differences, key=lambda point: differences[point])
    text = f"""A 1GFC port under full load carries {PORT_MB_PER_S:.1f} MB/s of payload in frames of 2112 B, one every
{FRAME_US:.2f} us. Over Fibre Channel alone a frame's credit comes back after the frame and a round trip of 10 us per
km, so that a port with c credits has min(1, c T / (T + RTT)) of its rate: 1GFC wants a credit for every 2 km, faster
ports as many times more, and frames of half the size twice as many. Over gateways the port's credits span only its own
cable, and TCP's window has the distance: window / RTT, of which the payload is 97 %.

MB/s of payload, measured (and the closed form). The largest difference is
{100 * differences[km, window]:.1f} %, of a window of {_size(window)} over {km:,} km: a round trip is longer than the
propagation by the time that packets and delayed ACKs take.

{table(credit_heads, rows(credits, by_credits))}

{table(window_heads, rows(windows, by_window))}
"""
    return Section("How many credits, and how much window, does a distance want?", text, _picture(credits, windows))


def _picture(credits: Points, windows: Points) -> Picture:
    def draw(drawing: Any, ink: Ink) -> None:
        left, right = drawing.subplots(1, 2, sharey=True)
        for axes, points, model, title in (
            (left, credits, by_credits, "Fibre Channel alone, by credits"),
            (right, windows, by_window, "over gateways, by TCP window"),
        ):
            frame(axes, ink)
            axes.set_title(title, loc="left", color=ink.text, fontsize=9)
            kms = sorted({km for km, _ in points})
            fine = [kms[0] * (kms[-1] / kms[0]) ** (step / 60) for step in range(61)]
            for index, column in enumerate(sorted({column for _, column in points})):
                name = _size(column) if points is windows else f"{column}"
                axes.plot(fine, [model(km, column) for km in fine], color=ink.curve(index), linewidth=1.0)
                own = [points[km, column] for km in kms]
                axes.plot(kms, own, "o", color=ink.curve(index), markersize=4, label=name)
            axes.set_xscale("log")
            axes.set_xlabel("km", color=ink.muted, loc="right", labelpad=2)
            axes.set_ylim(0, 140)
            axes.set_xticks(kms)
            axes.set_xticklabels([f"{km:,}" for km in kms])
            axes.minorticks_off()
            axes.legend(frameon=False, labelcolor=ink.text, fontsize=7.5, loc="upper left", ncols=3)
        left.set_ylabel("payload, MB/s", color=ink.muted)

    return Picture("gateways-distance", "Payload by distance: points measured, lines the closed form", draw)
