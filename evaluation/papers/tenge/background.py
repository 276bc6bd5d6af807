"""Figure 8: a bursty stream of a fifth of the line against constant background."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elephan.papers.drawing import framed, label_line, legend
from elephan.papers.evaluation import Evaluation, Figure, PaperResults, Table, all_over_repetitions, part
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
    """Return True if a set-up loses nothing, in any repetition, up to the background that fills the line."""
    return all(lost_of(record) == 0 for record in records if load_of(record) <= FILLED)


def quantities(records: Sequence[Record]) -> Mapping[str, float]:
    """Return the quantities of one repetition, over the set-ups that lose nothing up to `FILLED`."""
    lost: dict[float, list[float]] = {}
    for record in records:
        lost.setdefault(load_of(record), []).append(lost_of(record))
    borne = [record for record in records if load_of(record) <= FILLED]
    return {
        "largest": 100 * max(load for load, found in lost.items() if not any(found)),
        "goodput": min(gigabits_of(record) for record in borne),
        "lost_borne": max(lost_of(record) for record in borne),
        "lost_82": min(lost[0.82]),
        "lost_90": min(lost[0.90]),
    }


@part("fig8.toml", "fig8-window.toml")
def figure8(results: PaperResults) -> Evaluation:
    """Losses and goodput of the stream by background load, by burst and by queue."""
    by_host, by_window = by_setup(results.of("fig8.toml")), by_setup(results.of("fig8-window.toml"))
    setups = by_host | by_window
    held = [records for records in by_host.values() if is_lossless(records)]
    measured = all_over_repetitions([record for records in held for record in records], quantities)
    lossless = sum(map(is_lossless, setups.values())) / len(setups)
    kept = regions.read()["fig8"]
    return Evaluation({CLAIM: measured | {"lossless": lossless}}, [_largest(kept), _goodput(setups)], [_table(kept)])


def largest_by_rule(burst_bytes: float, queue_bytes: float) -> float:
    """Return the largest background whose queue takes a burst, % of the line: what a port of 10 Gbit/s brings beyond
    what the background leaves; no more than the stream leaves."""
    left_bps = PORT_BPS * (1 - queue_bytes / burst_bytes)
    most = 1 - 1.9e9 * 8038 / 7948 / regions.LINE_BPS
    return 100 * max(0.0, min(most, 1 - left_bps / regions.LINE_BPS))


def _bytes(text: str) -> float:
    for unit, factor in (("MB", 1e6), ("kB", 1e3), ("B", 1.0)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    return 4.04e6


def _sorted(setups: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for setup in sorted(setups, key=lambda item: (_bytes(item["burst"]), _bytes(item["queue"]))):
        found.setdefault(setup["burst"], []).append(setup)
    return found


def _title(burst: str) -> str:
    return {"window": "4.04 MB, the window", "8000B": "a packet"}.get(burst, burst.replace("kB", " kB"))


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
        fine = [16 * 1.04**step for step in range(178)]
        for number, (burst, found) in enumerate(_sorted(kept["setups"]).items()):
            queues = [_bytes(item["queue"]) / 1e3 for item in found]
            medians = [sorted(item["largest"])[len(item["largest"]) // 2] for item in found]
            colour = ink.curve(number)
            axes.plot(queues, medians, "o", color=colour, markersize=5, label=f"burst of {_title(burst)}")
            rule = [largest_by_rule(_bytes(burst), 1e3 * queue) for queue in fine]
            axes.plot(fine, rule, color=colour, linewidth=1.2)
        axes.axhline(80, color=ink.text, linewidth=0.9, linestyle=(0, (1, 2)))
        label_line(axes, 17, 83, "the paper: 80 %", ink.text)
        axes.set_xscale("log")
        axes.set_xlim(14, 1e4)
        axes.set_ylim(-3, 96)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        legend(drawing, ink, axes)

    return Figure(
        "fig8",
        CLAIM,
        "Figure 8: the background that a bursty stream bears, by burst and queue",
        f"Points are runs, medians of five seeds ({kept['command']}, {kept['date']}); lines the rule that the queue "
        "takes what a burst brings at 10 Gbit/s beyond what the background leaves. The stream leaves 79.3 %.",
        draw,
        (7.4, 3.4),
    )


def _table(kept: Mapping[str, Any]) -> Table:
    found = _sorted(kept["setups"])
    queues = sorted({item["queue"] for item in kept["setups"]}, key=_bytes)
    rows = []
    for burst, setups in found.items():
        by_queue = {item["queue"]: item["largest"] for item in setups}
        rows.append((_title(burst), *(_range(by_queue.get(queue)) for queue in queues)))
    caption = f"Median of five seeds, and the range where seeds differ; {kept['command']}, {kept['date']}."
    heads = ("burst", *(queue.replace("kB", " kB").replace("MB", " MB") for queue in queues))
    return Table(CLAIM, "Largest background without loss, % of the line", heads, tuple(rows), caption)


def _range(found: Sequence[int] | None) -> str:
    if not found:
        return ""
    median = f"{sorted(found)[len(found) // 2]}"
    return median if min(found) == max(found) else f"{median} ({min(found)} to {max(found)})"
