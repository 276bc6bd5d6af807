"""docs/img/backend-windows.png: cwnd over time of every congestion control of the script, in the kernel and here."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from elephan.report.draw import Ink, frame, rendered
from elephan.store.files import write_atomically
from evaluation.fidelity.backend.script import Difference

IMAGE = Path(__file__).resolve().parents[3] / "docs" / "img" / "backend-windows.png"
COLUMNS = 4
KERNEL, OURS = 1, 0
"""Numbers of their colours."""

COLOURS = 48
"""Of the picture in all."""


def write(scripts: Sequence[Difference], series_ms: int, image: Path = IMAGE) -> None:
    """Draw one small plot per congestion control."""
    rows = -(-len(scripts) // COLUMNS)
    ink = Ink(themed=False)
    size = (9.0, 1.6 * rows)
    drawn = rendered(lambda drawing: _draw(drawing, scripts, series_ms, rows, ink), ink, "png", size)
    write_atomically(image, small(drawn))


def small(png: bytes) -> bytes:
    """Return a PNG with as few colours as lines and their edges need: a third of the bytes."""
    buffer = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def _draw(drawing: Any, scripts: Sequence[Difference], series_ms: int, rows: int, ink: Ink) -> None:
    for index, one in enumerate(scripts):
        axes = drawing.add_subplot(rows, COLUMNS, index + 1)
        frame(axes, ink)
        for colour, width, windows, label in (
            (KERNEL, 2.4, one.kernel, "Linux"),
            (OURS, 1.0, one.ours, "simulator"),
        ):
            times = [sample * series_ms / 1000 for sample in range(1, len(windows.cwnd) + 1)]
            axes.plot(times, windows.cwnd, color=ink.curve(colour), linewidth=width, label=label)
        axes.set_title(one.cc, loc="left", color=ink.text, fontsize=9)
        axes.set_ylim(bottom=0)
        if index == 0:
            axes.legend(frameon=False, labelcolor=ink.text, fontsize=7)
        if index // COLUMNS == rows - 1:
            axes.set_xlabel("time, s", color=ink.muted, loc="right", labelpad=1, fontsize=8)
        if index % COLUMNS == 0:
            axes.set_ylabel("cwnd, segments", color=ink.muted, fontsize=8)
