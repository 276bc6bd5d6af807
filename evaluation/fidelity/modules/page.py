"""The parts of docs/results/modules.md that come from the virtual machine, and its picture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from elephan.report.draw import Ink, frame, rendered
from elephan.store.files import write_atomically
from elephan.units import count, pluralize
from evaluation.fidelity.backend.picture import small
from evaluation.markdown import fill, spread, table
from evaluation.parts import write_parts

PAGE = "modules.md"
IMAGE = Path(__file__).resolve().parents[3] / "docs" / "img" / "modules-windows.png"
DRAWN = ((10, 20, 0.001), (10, 20, 0.0), (10, 20, 0.01), (10, 100, 0.001), (10, 100, 0.01))
"""Paths to draw: the first of which there are runs of all controls."""
WITHIN = 0.05
RUNS_LEAST = 4
"""Repetitions for a verdict: ranges of two are apart by chance in a third of all cases, of four in 3 %."""
BUSY = 0.9
"""Of the guest's processor: beyond it a run counts as limited by it."""
SAMPLE_S = 0.1
COLUMNS = 3
KERNEL, OURS = 1, 0
"""Numbers of their colours."""

Run = Mapping[str, Any]
Path3 = tuple[float, float, float]


def path_of(run: Run) -> Path3:
    """Return rate, RTT and loss of a run."""
    return run["rate_mbps"], run["rtt_ms"], run["loss"]


def pairs_of(runs: Iterable[Run]) -> dict[tuple[str, Path3], list[tuple[Run, Run]]]:
    """Return ours and Linux's runs that were carried together, by control and path; only whole pairs that the guest's
    processor did not limit.
    """
    sides: dict[tuple[str, Path3, int], dict[str, Run]] = defaultdict(dict)
    for run in runs:
        sides[run["control"], path_of(run), run["repetition"]][run["side"]] = run
    pairs: dict[tuple[str, Path3], list[tuple[Run, Run]]] = defaultdict(list)
    for (control, path, _), both in sorted(sides.items()):
        if len(both) == 2 and both["ours"]["busy"] < BUSY:
            pairs[control, path].append((both["ours"], both["linux"]))
    return pairs


def verdict(pairs: Sequence[tuple[Run, Run]]) -> str:
    """Return what the repetitions say: within 5 % in all of them, of both ranges, apart, or not decided; of fewer than
    four they say nothing.
    """
    ours = [one["mbps"] for one, _ in pairs]
    theirs = [one["mbps"] for _, one in pairs]
    least, most = min(ours) / max(theirs), max(ours) / min(theirs)
    if len(pairs) < RUNS_LEAST:
        return "too few runs"
    if 1 - WITHIN <= least and most <= 1 + WITHIN:
        return "within 5 %"
    if min(ours) > max(theirs) or max(ours) < min(theirs):
        return "apart"
    return "not decided"


def goodput(pairs: Mapping[tuple[str, Path3], Sequence[tuple[Run, Run]]]) -> str:
    """Return the table of goodput."""
    rows = []
    for (control, (rate, rtt, loss)), some in sorted(pairs.items(), key=lambda item: (item[0][1], item[0][0])):
        cells = []
        for side in (0, 1):
            values = [pair[side]["mbps"] for pair in some]
            cells.append(f"{median(values):.2f} ({spread(values, '.2f')})" if len(values) > 1 else f"{values[0]:.2f}")
        ratio = median(pair[0]["mbps"] for pair in some) / median(pair[1]["mbps"] for pair in some)
        path = f"{rate:g} Mbit/s, {rtt:g} ms, {loss:g}"
        rows.append([control, path, str(len(some)), *cells, f"{ratio:.2f}", verdict(some)])
    return table(["control", "path", "runs", "ours, Mbit/s", "Linux's", "ratio", "verdict"], rows)


def drawn_path(pairs: Mapping[tuple[str, Path3], Sequence[tuple[Run, Run]]]) -> Path3 | None:
    """Return the first path to draw that most controls have runs of."""
    numbers = {path: sum(one == path for _, one in pairs) for path in DRAWN}
    most = max(numbers.values(), default=0)
    return next((path for path in DRAWN if most and numbers[path] == most), None)


def draw(pairs: Mapping[tuple[str, Path3], Sequence[tuple[Run, Run]]], path: Path3, image: Path = IMAGE) -> None:
    """Draw one small plot per control: the first pair's windows over time."""
    some = [(control, both[0]) for (control, one), both in sorted(pairs.items()) if one == path]
    rows = -(-len(some) // COLUMNS)
    ink = Ink(themed=False)

    def fill_in(drawing: Any) -> None:
        for index, (control, both) in enumerate(some):
            axes = drawing.add_subplot(rows, COLUMNS, index + 1)
            frame(axes, ink)
            for colour, width, run, label in ((KERNEL, 2.2, both[1], "Linux's module"), (OURS, 1.0, both[0], "ours")):
                times = [SAMPLE_S * sample for sample in range(len(run["windows"]))]
                axes.plot(times, run["windows"], color=ink.curve(colour), linewidth=width, label=label)
            axes.set_title(control, loc="left", color=ink.text, fontsize=9)
            axes.set_ylim(bottom=0)
            if index == 0:
                axes.legend(frameon=False, labelcolor=ink.text, fontsize=7)
            if index // COLUMNS == rows - 1:
                axes.set_xlabel("time, s", color=ink.muted, loc="right", labelpad=1, fontsize=8)
            if index % COLUMNS == 0:
                axes.set_ylabel("cwnd, segments", color=ink.muted, fontsize=8)

    write_atomically(image, small(rendered(fill_in, ink, "png", (9.0, 1.8 * rows))))


def spread_of(dates: Sequence[str]) -> str:
    """Return the first and the last day."""
    return " to ".join(dict.fromkeys((min(dates), max(dates))))


def text(runs: Sequence[Run], kernel: str) -> str:
    """Return the part of the page, and draw."""
    pairs = pairs_of(runs)
    path = drawn_path(pairs)
    whole = [pair for some in pairs.values() for pair in some]
    limited = len({(run["control"], path_of(run), run["repetition"]) for run in runs if run["busy"] >= BUSY})
    busiest = max(pair[0]["busy"] for pair in whole)
    verdicts = [verdict(some) for some in pairs.values()]
    said = (
        f"{kernel} in QEMU; {pluralize(len(whole), 'pair')} of connections at the same time, each over a line of its "
        f"own (netem; queue of one product), measured {spread_of([run['date'] for run in runs])}. "
        "Goodput from the 5th to the 30th second: median, least and most. The "
        f"guest's processor was busy for at most {100 * busiest:.0f} % of a run; "
        f"{'no run' if not limited else pluralize(limited, 'pair')} left out because it was the limit. "
        f"Verdicts are of at least {RUNS_LEAST} runs. \"Within 5 %\": all ours are, of all of Linux's; \"apart\": "
        f"ranges do not overlap. {count(verdicts.count('within 5 %'))} of {count(len(verdicts))} cells are within 5 %, "
        f"{count(verdicts.count('apart'))} apart, {count(verdicts.count('not decided'))} not decided, "
        f"{count(verdicts.count('too few runs'))} have too few runs."
    )
    parts = [fill(said), goodput(pairs)]
    if path:
        draw(pairs, path)
        rate, rtt, loss = path
        parts.append(fill(f"Windows of the first pair over {rate:g} Mbit/s, {rtt:g} ms, loss {loss:g}:"))
        parts.append(f"![cwnd over time, Linux's module and ours, one plot per control](../img/{IMAGE.name})")
    return "\n\n".join(parts)


def write(runs: Sequence[Run], command: str, kernel: str) -> None:
    """Write the part of the page."""
    write_parts(PAGE, command, {"goodput": text(runs, kernel)})
