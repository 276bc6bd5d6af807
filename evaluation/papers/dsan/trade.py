"""The trade: what every congestion control carries over a long lossy line, and what that costs itself and a Reno
neighbour.

One figure in four parts with a row per congestion control and a column per path: find the column of one's own line,
read down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elephan.papers.evaluation import Evaluation, Figure, PaperResults, megabytes_per_s, part, round_trip_s
from elephan.record import Record
from elephan.report.draw import Ink

STANDARD = "reno"
"""The standard, as the paper calls it."""

_MODIFIED = {
    (125_000, 1, 0): "1/8 reduction",
    (500_000, 0, 0): "congestion avoidance off",
    (125_000, 0, 0): "both",
}
"""`reduction` in millionths, `congestion_avoidance`, `cap`: the paper's modifications."""

QUANTITIES = {STANDARD: "standard", "1/8 reduction": "eighth", "both": "both"}
"""Rows that claims.toml names."""


@dataclass(frozen=True)
class Cell:
    """One congestion control on one path; means over the seeds."""

    goodput: float
    """MB/s of the copy."""
    sent_again: float
    """Retransmitted segments of the copy over all that it sent, %."""
    wait_ms: float
    """Mean round trip of the copy less propagation, ms: the queue, and delayed ACKs of small windows."""
    neighbour: float
    """MB/s of the Reno flow beside it."""


Path = tuple[int, float]
"""Round-trip time in ms, and loss rate."""

Grid = dict[str, dict[Path, Cell]]
"""By congestion control and path."""


def name_of(record: Record) -> str:
    """Return what a record's copy is called in the figure."""
    transport = record.spec["flows"][0]["transport"]
    if transport["congestion_control"] != "storage_friendly":
        return str(transport["congestion_control"])
    values = transport["parameters"]
    key = (values.get("reduction", 125_000), values.get("congestion_avoidance", 1), values.get("cap", 0))
    return _MODIFIED.get(key) or f"{_MODIFIED[key[0], key[1], 0]}, cap {key[2]}"


def path_of(record: Record) -> Path:
    """Return round trip and loss of a record's line."""
    losses = [
        link["loss"]["probability_e12"] / 1e12
        for link in (record.spec["links"][index] for index in record.spec["flows"][0]["route"])
        if link["loss"]["kind"] == "independent"
    ]
    return round(round_trip_s(record) * 1000), sum(losses)


def cell_of(records: Sequence[Record]) -> Cell:
    """Return the means over repetitions."""

    def mean(value: Callable[[Record], float]) -> float:
        return sum(value(record) for record in records) / len(records)

    return Cell(
        goodput=mean(lambda record: megabytes_per_s(record.flows[0]["goodput_bps"])),
        sent_again=mean(
            lambda record: 100 * record.flows[0]["retransmitted_segments"] / max(1, record.flows[0]["sent_segments"])
        ),
        wait_ms=mean(lambda record: 1000 * (record.flows[0]["rtt_mean_s"] - round_trip_s(record))),
        neighbour=mean(lambda record: megabytes_per_s(record.flows[1]["goodput_bps"])),
    )


def grid_of(records: Sequence[Record]) -> Grid:
    """Return all cells; congestion controls in the order of what they carry, the most first."""
    groups: dict[str, dict[Path, list[Record]]] = {}
    for record in records:
        groups.setdefault(name_of(record), {}).setdefault(path_of(record), []).append(record)
    grid = {name: {path: cell_of(found) for path, found in sorted(paths.items())} for name, paths in groups.items()}

    def carried(name: str) -> float:
        cells = grid[name].values()
        return sum(math.log(max(cell.goodput, 1e-3)) for cell in cells) / len(cells)

    return {name: grid[name] for name in sorted(grid, key=carried, reverse=True)}


@part("trade.toml")
def trade(results: PaperResults) -> Evaluation:
    """Goodput of the paper's congestion controls by path, and the figure."""
    records = results.of("trade.toml")
    measured: dict[str, list[float]] = {}
    for record in records:
        if quantity := QUANTITIES.get(name_of(record)):
            rtt, loss = path_of(record)
            key = f"{quantity}_{rtt}ms_{loss:.0e}".replace("e-0", "e-")
            measured.setdefault(key, []).append(megabytes_per_s(record.flows[0]["goodput_bps"]))
    return Evaluation({"dsan.trade": measured}, [figure(grid_of(records))], [])


def figure(grid: Grid) -> Figure:
    """Return the figure."""
    return Figure(
        "trade",
        "dsan.trade",
        "The trade: what a congestion control carries over a long lossy line, and what it costs",
        "A copy and a Reno neighbour on 1 Gbit/s (120.7 MB/s), a queue of one bandwidth-delay product, 60 s less the "
        "first 15. Find the column of your line and read down; rows by what they carry over all columns, the paper's "
        "modifications in bold. Dark is more. The wait is the queue's; below a tenth of the round trip it is mostly "
        "the receiver's delayed ACKs. In the last part, orange is less than the same neighbour gets beside "
        "another Reno, and the darker the less.",
        lambda drawing, ink: _draw(drawing, ink, grid),
        (12.6, 1.9 + 0.42 * len(grid)),
    )


@dataclass(frozen=True)
class _Panel:
    """One of the four parts."""

    title: str
    value: Callable[[Cell], float]
    shade: Callable[[Cell, Cell, int], tuple[int, float]]
    """Colour and its strength, 0 to 1, from the cell, that of Reno on the same path, and the round trip in ms."""


def _log_share(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, math.log(max(value, 1e-9) / low) / math.log(high / low)))


def _neighbour(cell: Cell, beside_reno: Cell, _: int) -> tuple[int, float]:
    share = cell.neighbour / max(beside_reno.neighbour, 1e-9)
    # Within a fifth two neighbours fare alike: that much is chance.
    return (1, _log_share(1 / max(share, 1e-3), 1.25, 20)) if share < 1 else (2, _log_share(share, 1.25, 5))


PANELS = (
    _Panel("carries, MB/s", lambda cell: cell.goodput, lambda cell, _, __: (0, _log_share(cell.goodput, 0.5, 120))),
    _Panel(
        "sent again, % of its segments",
        lambda cell: cell.sent_again,
        lambda cell, _, __: (1, _log_share(cell.sent_again, 0.3, 30)),
    ),
    # Delayed ACKs alone come to a tenth of the round trip at most; a full queue to all of it.
    _Panel(
        "mean wait beyond propagation, ms",
        lambda cell: cell.wait_ms,
        lambda cell, _, rtt_ms: (4, _log_share(cell.wait_ms / rtt_ms, 0.1, 1)),
    ),
    _Panel("a Reno neighbour gets, MB/s", lambda cell: cell.neighbour, _neighbour),
)


def _draw(drawing: Any, ink: Ink, grid: Grid) -> None:
    names = list(grid)
    paths = list(next(iter(grid.values())))
    axes = drawing.subplots(2, 2, sharex=True, sharey=True).flatten()
    for panel, place in zip(PANELS, axes, strict=True):
        _panel(place, ink, panel, grid, names, paths)
    for place in (axes[0], axes[2]):
        place.set_yticks(range(len(names)))
        for label, name in zip(place.set_yticklabels(names, fontsize=8), names, strict=True):
            label.set_color(ink.text)
            label.set_fontweight("bold" if name.startswith(tuple(_MODIFIED.values())) else "normal")


def _panel(axes: Any, ink: Ink, panel: _Panel, grid: Mapping[str, Mapping[Path, Cell]], names: Any, paths: Any) -> None:
    from matplotlib.patches import Rectangle

    axes.set_title(panel.title, loc="left", color=ink.text, fontsize=9.5, fontweight="bold", pad=22)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, colors=ink.muted)
    places = _columns(paths)
    for row, name in enumerate(names):
        for path, x in zip(paths, places, strict=True):
            cell = grid[name][path]
            colour, strength = panel.shade(cell, grid[STANDARD][path], path[0])
            axes.add_patch(
                Rectangle((x - 0.5, row - 0.5), 1, 1, color=ink.curve(colour), alpha=0.72 * strength, linewidth=0)
            )
            axes.text(
                x, row, _short(panel.value(cell)), ha="center", va="center", fontsize=6.6, color=ink.text
            )  # fmt: skip
    axes.set_xlim(places[0] - 0.5, places[-1] + 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xticks(places)
    axes.set_xticklabels([f"{loss:.0e}".replace("e-0", "e-") for _, loss in paths], fontsize=6.8)
    axes.xaxis.set_tick_params(labelbottom=True)
    for rtt in dict.fromkeys(rtt for rtt, _ in paths):
        own = [x for (other, _), x in zip(paths, places, strict=True) if other == rtt]
        axes.text((own[0] + own[-1]) / 2, -0.7, f"RTT {rtt} ms", ha="center", va="bottom", color=ink.muted, fontsize=8)
    axes.text(places[0] - 0.6, len(names) - 0.2, "loss", ha="right", va="top", color=ink.muted, fontsize=7)


def _columns(paths: Sequence[Path]) -> list[float]:
    """Return where each path's column is: losses side by side, a gap between round trips."""
    order = list(dict.fromkeys(rtt for rtt, _ in paths))
    return [index + 0.5 * order.index(rtt) for index, (rtt, _) in enumerate(paths)]


def _short(value: float) -> str:
    """Return a number in at most four characters."""
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.095 else f"{value:.2f}"
