"""`python -m evaluation.moves.simulated`: today's cubic moved in scenario D, with each mitigation; some 20 s."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elephan.api import jobs_of, load
from elephan.report.draw import Ink, frame, rendered
from elephan.report.moves import moves_of
from elephan.report.timeline import averaged, flow_line
from elephan.store.files import write_atomically
from evaluation.fidelity.backend.picture import small
from evaluation.markdown import fill, spread, table
from evaluation.moves import command
from evaluation.moves.both_backends import Run, simulated
from evaluation.moves.effect import Effect, mitigation
from evaluation.runner import ROOT, Runner

COMMAND = "python -m evaluation.moves.simulated"
FILE = ROOT / "examples" / "hybrid-hold.toml"
PICTURE = ROOT / "docs" / "img" / "hybrid-hold.png"
SIZE_INCHES = (7.4, 3.2)


def row(run: Run, effect: Effect) -> list[str]:
    """Return a run's row of the table."""
    (move,) = moves_of(run.record, run.series)
    since = run.series.flow.column("time_s").to_numpy() > effect.moved_at_s
    rtt_s = float(np.nanmean(run.series.flow.column("srtt_s").to_numpy()[since]))
    first = "-" if effect.first_drop_s is None else f"{effect.first_drop_s:.1f} s"
    rates = [f"{effect.rate_bps / 1e6:.0f}", f"{move.least_bps / 1e6:.0f}"]
    held = int(run.record.metrics.get("held_dropped_packets") or 0)
    counts = [f"{number:,}" for number in (move.retransmitted_segments, effect.dropped_packets, held)]
    return [mitigation(run), *rates, *counts, first, f"{rtt_s * 1e3:.0f} ms"]


def text(runs: Sequence[Run]) -> str:
    """Return the part of the page."""
    effects = [Effect.of(run) for run in runs]
    moved = spread([effect.moved_at_s for effect in effects], ".1f")
    rest = spread([float(run.record.metrics["simulated_s"] or 0) for run in runs], ".0f")
    said = fill(
        f"The flow reaches the line's rate and moves after {moved} s; the run ends after {rest} s. Rates in Mbit/s of "
        "payload: from the move to the end, and of the least second within 10 s of it. Segments sent again: within 10 "
        "s. Dropped packets and RTT, the mean of the smoothed one: from the move to the end."
    )
    heads = ["mitigation", "rate", "least second", "sent again", "dropped", "in the hold buffer", "first after", "RTT"]
    return f"{said}\n\n{table(heads, [row(*pair) for pair in zip(runs, effects, strict=True)])}"


def draw(runs: Sequence[Run]) -> bytes:
    """Return the picture: goodput of each run over time."""
    ink = Ink(themed=False)

    def curves(drawing: Any) -> None:
        axes = drawing.subplots(1, 1)
        frame(axes, ink)
        for index, run in enumerate(runs):
            line = averaged(flow_line(run.series, [0], "goodput_bps", "sum"))
            name = mitigation(run).strip("`")
            axes.plot(line.time_s, line.values / 1e6, color=ink.curve(index), linewidth=1.2, label=name)
        axes.axvline(Effect.of(runs[0]).moved_at_s, color=ink.muted, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("s", color=ink.muted, loc="right", labelpad=2)
        axes.set_title("goodput, Mbit/s; dashed: the move", loc="left", color=ink.muted, fontsize=8.5, pad=6)
        drawing.legend(loc="outside lower left", ncols=2, frameon=False, labelcolor=ink.text, fontsize=7.5)

    return small(rendered(curves, ink, "png", SIZE_INCHES))


def measure(runner: Runner) -> Mapping[str, str]:
    """Run the example, also without a mitigation; draw the picture and return the part."""
    without = jobs_of(load(FILE, {"sweep": {"event.0.mitigation": [[]]}}))
    runs = simulated(runner, [*without, *jobs_of(load(FILE))])
    parts = {"simulated": text(runs)}
    write_atomically(PICTURE, draw(runs))
    return parts


if __name__ == "__main__":
    sys.exit(command.main(COMMAND, __doc__, measure))
