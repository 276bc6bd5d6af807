"""Figure 8: a bursty stream of a fifth of the line against constant background."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elephan.papers.drawing import framed, label_line, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, part
from elephan.papers.spread import Spread, shown_with_range
from elephan.record import Record
from elephan.report.draw import Ink
from elephan.run_spec.quantities import limit_bytes
from elephan.units import size

from . import regions
from .burst import burst_share
from .regions import lost_of

CLAIM = "tenge.fig8"

FILLED = 0.79
"""Background with which the stream fills the line, as a part of the line to 1 %: 1.9 Gbit/s of payload are 20.7 %."""

BEYOND = 0.82
"""Background beyond the paper's 80 %, by the 2 % that count as the same."""

RATE_GBPS = 1.9
"""Payload of the paper's stream, Gbit/s."""

NEAR = 0.02
"""Relative deviation up to which a goodput counts as the paper's."""

PORT_BPS = 10e9
"""Rate at which a burst comes into the switch, bit/s."""


def load_of(record: Record) -> float:
    """Return the background as a part of the line, frames included."""
    return round(burst_share(record), 3)


def gigabits_of(record: Record) -> float:
    """Return the stream's goodput, Gbit/s."""
    return float(record.metrics["goodput_bps"] or 0) / 1e9


def setup_of(record: Record) -> tuple[bool, int, int]:
    """Return True where the window is the limit, the bytes of a burst (0: the window) and those of the queue."""
    flow = record.spec["flows"][0]
    host = record.spec["links"][flow["route"][0]]
    batching = host.get("batching")
    queue = limit_bytes(record.spec["links"][flow["route"][-1]]["queue"])
    return batching is None, int(batching["max_bytes"]) if batching else 0, queue


def by_setup(records: Sequence[Record]) -> dict[tuple[bool, int, int], list[Record]]:
    """Return the records of each set-up."""
    found: dict[tuple[bool, int, int], list[Record]] = {}
    for record in records:
        found.setdefault(setup_of(record), []).append(record)
    return found


def is_lossless(records: Sequence[Record]) -> bool:
    """Return True if a set-up loses nothing, in any repetition, with the background that fills the line."""
    return all(lost_of(record) == 0 for record in records if load_of(record) <= FILLED)


def keeps_its_rate(records: Sequence[Record]) -> bool:
    """Return True if every repetition carries the paper's 1.9 Gbit/s with that background, to `NEAR`."""
    return all(gigabits_of(record) >= RATE_GBPS * (1 - NEAR) for record in records if load_of(record) <= FILLED)


def loses_beyond(records: Sequence[Record]) -> bool:
    """Return True if every repetition loses something with `BEYOND` of background."""
    return all(lost_of(record) > 0 for record in records if load_of(record) >= BEYOND)


@part("fig8.toml", "fig8-window.toml")
def figure8(results: PaperResults) -> Evaluation:
    """Losses and goodput of the stream by background load, by burst and by queue."""
    setups = by_setup([*results.of("fig8.toml"), *results.of("fig8-window.toml")])
    statements = {"lossless": is_lossless, "kept": keeps_its_rate, "lost_beyond": loses_beyond}
    measured = {name: [float(holds(found)) for found in setups.values()] for name, holds in statements.items()}
    kept = regions.read()["fig8"]
    return Evaluation({CLAIM: measured}, [_largest(kept), _goodput(setups)], [_here(setups), _table(kept)])


def largest_by_rule(burst_bytes: float, queue_bytes: float) -> float:
    """Return the largest background whose queue takes a burst, % of the line: what a port of 10 Gbit/s brings beyond
    what the background leaves; no more than the stream leaves."""
    left_bps = PORT_BPS * (1 - queue_bytes / burst_bytes)
    most = 1 - RATE_GBPS * 1e9 * 8038 / 7948 / regions.LINE_BPS
    return 100 * max(0.0, min(most, 1 - left_bps / regions.LINE_BPS))


def size_of(text: str) -> float:
    """Return a burst or a queue of regions.json, bytes."""
    for unit, factor in (("MB", 1e6), ("kB", 1e3), ("B", 1.0)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    return 4.04e6


def by_burst(setups: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the set-ups of regions.json by their bursts, both from small to large."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for setup in sorted(setups, key=lambda item: (size_of(item["burst"]), size_of(item["queue"]))):
        found.setdefault(setup["burst"], []).append(setup)
    return found


def title_of(size: str) -> str:
    """Return a burst or a queue of regions.json in words."""
    titles = {"window": "4.04 MB, the window", "8000B": "a packet"}
    return titles.get(size, size.replace("kB", " kB").replace("MB", " MB"))


def _goodput(setups: dict[tuple[bool, int, int], list[Record]]) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.subplots()
        framed(axes, ink, "background, % of the line", "goodput of the stream, Gbit/s")
        drawn = [key for key in setups if key[1] in (0, 512_000) and key[2] in (512_000, 4_000_000)]
        for number, key in enumerate(drawn):
            loads = sorted({load_of(record) for record in setups[key]})
            rates = [[gigabits_of(record) for record in setups[key] if load_of(record) == load] for load in loads]
            label = f"{'window' if key[0] else '512 kB'}, queue {size(key[2])}"
            xs = [100 * load for load in loads]
            colour = ink.curve(number)
            axes.fill_between(xs, [min(r) for r in rates], [max(r) for r in rates], color=colour, alpha=0.15, lw=0)
            axes.plot(xs, [sorted(r)[len(r) // 2] for r in rates], "o-", color=colour, markersize=3.5, label=label)
        axes.set_ylim(0, 2.1)
        legend(drawing, ink, axes)

    caption = "Bursts of 512 kB and of the window; median and range of five seeds."
    title = "Figure 8: goodput of a bursty stream against background"
    return Figure("fig8-goodput", CLAIM, title, caption, draw, (7.4, 3.0))


def _largest(kept: Mapping[str, Any]) -> Figure:
    def draw(drawing: Any, ink: Ink) -> None:
        axes = drawing.subplots()
        framed(axes, ink, "queue of the switch, kB", "largest background without loss, % of the line")
        fine = [16 * 1.04**step for step in range(184)]
        for number, (burst, found) in enumerate(by_burst(kept["setups"]).items()):
            queues = [size_of(item["queue"]) / 1e3 for item in found]
            medians = [median_of(item["largest"]) for item in found]
            colour = ink.curve(number)
            axes.plot(queues, [item or 0 for item in medians], "o", color=colour, markersize=5, label=title_of(burst))
            none = [queue for queue, median in zip(queues, medians, strict=True) if median is None]
            axes.plot(none, [0] * len(none), "x", color=ink.text, markersize=7)
            rule = [largest_by_rule(size_of(burst), 1e3 * queue) for queue in fine]
            axes.plot(fine, rule, color=colour, linewidth=1.2)
        axes.axhline(80, color=ink.text, linewidth=0.9, linestyle=(0, (1, 2)))
        label_line(axes, 17, 83, "the paper: 80 %", ink.text)
        axes.set_xscale("log")
        axes.set_xlim(14, 2e4)
        axes.set_ylim(-3, 96)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        legend(drawing, ink, axes)

    return Figure(
        "fig8",
        CLAIM,
        "Figure 8: the background that a bursty stream bears, by burst and queue",
        f"Points are runs, medians of five seeds ({kept['command']}, {kept['date']}), crossed where the stream loses "
        "packets on the empty line; lines the rule that the queue takes what a burst brings at 10 Gbit/s beyond what "
        "the background leaves. The stream leaves 79.3 %.",
        draw,
        (7.4, 3.4),
    )


def largest_table(setups: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return titles and rows of the largest background without loss, by burst and queue, of set-ups in regions.json."""
    queues = sorted({item["queue"] for item in setups}, key=size_of)
    rows = []
    for burst, found in by_burst(setups).items():
        by_queue = {item["queue"]: item["largest"] for item in found}
        rows.append((title_of(burst), *(with_range(by_queue.get(queue)) for queue in queues)))
    return ("burst", *map(title_of, queues)), rows


def _table(kept: Mapping[str, Any]) -> Table:
    heads, rows = largest_table(kept["setups"])
    caption = (
        "Median of five seeds, and the range where seeds differ; none: it loses packets on the empty line. "
        f"{kept['command']}, {kept['date']}."
    )
    return Table(CLAIM, "Largest background without loss, % of the line", heads, tuple(rows), caption)


def _here(setups: dict[tuple[bool, int, int], list[Record]]) -> Table:
    rows = []
    for (by_window, burst, queue), records in setups.items():
        loads = sorted({load_of(record) for record in records})
        cells = []
        for load in loads:
            found = [record for record in records if load_of(record) == load]
            lost, carried = Spread.of([*map(lost_of, found)]), Spread.of([*map(gigabits_of, found)])
            cells.append(f"{shown_with_range(lost)}; {carried}")
        name = "the window" if by_window else "a packet" if burst <= 8000 else size(burst)
        rows.append((f"{name}; {size(queue)}", *cells))
    heads = ("burst; queue", *(f"{100 * load:g} %" for load in loads))
    caption = "Medians of five seeds and their ranges; a mean over the last four of six seconds."
    return Table(CLAIM, "Segments sent again per s; goodput, Gbit/s; by background", heads, tuple(rows), caption)


def median_of(largest: Sequence[int | None]) -> int | None:
    """Return the middle one of the largest backgrounds by seed; None, "loses on the empty line", is the least."""
    return sorted(largest, key=lambda item: -1 if item is None else item)[len(largest) // 2]


def with_range(found: Sequence[int | None] | None) -> str:
    """Return the median of the largest backgrounds by seed, with their range; nothing without any."""
    if not found:
        return ""
    low, *_, high = sorted(found, key=lambda item: -1 if item is None else item)
    shown = ["none" if item is None else str(item) for item in (median_of(found), low, high)]
    return shown[0] if low == high else "{} ({} to {})".format(*shown)
