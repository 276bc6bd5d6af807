"""The parts of docs/results/advice.md that are measured, and the table of all cells beside it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from elephan.units import pluralize
from evaluation.advice.cells import DEAR
from evaluation.markdown import fill, table
from evaluation.parts import RESULTS, write_parts

PAGE = "advice.md"
COMMAND = "python -m evaluation.advice --page"
BROKEN = 0.05
"""Harm beyond the limit from which on it is broken, if chance does not explain it."""
SIGMAS = 2.0
WITHIN = 0.9

Cells = Sequence[dict[str, Any]]


def ratio(cell: dict[str, Any], choice: str = "advice") -> float:
    """Return a choice's goodput as a share of the best's."""
    return float(cell["choices"][choice]["goodput_bps"] / max(1.0, cell["best"]["goodput_bps"]))


def breaks(cell: dict[str, Any], choice: str = "advice") -> bool:
    """Return True if a choice breaks the harm limit: by more than 5 points and two standard errors."""
    one = cell["choices"][choice]
    return bool(one["excess"] > BROKEN and one["excess"] > SIGMAS * one["error"])


def covered(cell: dict[str, Any]) -> bool:
    """Return True if the advice's goodput is in its forecast's band."""
    low, _, high = cell["advice"]["goodput_bps"]
    return bool(low <= cell["choices"]["advice"]["goodput_bps"] <= high)


def usable(found: Cells) -> list[dict[str, Any]]:
    """Return the cells that have an answer."""
    return [one for one in found if "failed" not in one and one["best"] is not None]


def _counts(cells: Cells, choice: str) -> list[str]:
    ratios = sorted(ratio(one, choice) for one in cells)
    broken = sum(breaks(one, choice) for one in cells)
    both = sum(ratio(one, choice) >= WITHIN and not breaks(one, choice) for one in cells)
    within = sum(one >= WITHIN for one in ratios)
    return [
        f"{within}/{len(cells)} ({within / len(cells):.0%})",
        f"{broken} ({broken / len(cells):.1%})",
        f"{both} ({both / len(cells):.0%})",
        f"{ratios[len(ratios) // 2]:.2f}",
        f"{ratios[len(ratios) // 10]:.2f}",
    ]


HEADS = ["within 10 %", "limit broken", "both", "median", "lowest tenth"]


def summary(found: Cells) -> str:
    """Return the result in some lines."""
    cells = usable(found)
    lines = [f"{len(found)} cells, {len(found) - len(cells)} without an answer"]
    for choice in cells[0]["choices"] if cells else ():
        words = [f"{head} {count}" for head, count in zip(HEADS, _counts(cells, choice), strict=True)]
        lines.append(f"{choice}: {', '.join(words)}")
    if cells:
        lines.append(f"in the forecast's band: {sum(map(covered, cells))}/{len(cells)}")
    return "\n".join(lines)


def _totals(training: Cells, fresh: Cells) -> str:
    parts = []
    for name, found in (("drawn at test time", fresh), ("on which constants were found", training)):
        cells = usable(found)
        if not cells:
            continue
        seeds = sorted({one["draw"] for one in cells})
        cheap = sum(one["packets"] <= DEAR for one in cells)
        sentence = (
            f"Paths {name}: {len(found)} of seed {', '.join(map(str, seeds))}, {len(found) - len(cells)} without an "
            f"answer, {cheap} of up to {DEAR / 1e3:.0f},000 packets a run and {len(cells) - cheap} of more. Goodput "
            f"within the forecast's band of 90 %: {sum(map(covered, cells))} of {len(cells)}."
        )
        rows = [[choice, *_counts(cells, choice)] for choice in cells[0]["choices"]]
        parts.append(f"{fill(sentence)}\n\n{table(['choice', *HEADS], rows)}")
    return "\n\n".join(parts)


CLASSES: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "up to 100 Mbit/s": lambda one: one["path"]["rate_bps"] <= 1e8,
    "100 to 1000 Mbit/s": lambda one: 1e8 < one["path"]["rate_bps"] <= 1e9,
    "more than 1 Gbit/s": lambda one: one["path"]["rate_bps"] > 1e9,
    "RTT up to 20 ms": lambda one: one["path"]["rtt_s"] <= 0.02,
    "RTT 20 to 60 ms": lambda one: 0.02 < one["path"]["rtt_s"] <= 0.06,
    "RTT over 60 ms": lambda one: one["path"]["rtt_s"] > 0.06,
    "no loss": lambda one: one["path"]["loss"] == 0,
    "loss up to 1e-4": lambda one: 0 < one["path"]["loss"] <= 1e-4,
    "loss over 1e-4": lambda one: one["path"]["loss"] > 1e-4,
    "loss in bursts": lambda one: one["path"]["loss_burst"] > 1,
    "nobody else": lambda one: not one["path"]["competitors"],
    "1 or 2 others": lambda one: 1 <= len(one["path"]["competitors"]) <= 2,
    "3 to 5 others": lambda one: len(one["path"]["competitors"]) >= 3,
    "policed": lambda one: one["path"]["policer_rate_bps"] is not None,
}


def _classes(cells: Cells) -> str:
    rows = []
    for name, has in CLASSES.items():
        of = [one for one in cells if has(one)]
        if of:
            four = sum(ratio(one, "cubic x4") >= WITHIN and not breaks(one, "cubic x4") for one in of)
            climber = sum(ratio(one, "hill climber") >= WITHIN and not breaks(one, "hill climber") for one in of)
            within, broken, both, median, _ = _counts(of, "advice")
            rows.append([name, within, broken, both, median, f"{four / len(of):.0%}", f"{climber / len(of):.0%}"])
    return table(["paths", *HEADS[:4], "both: cubic x4", "both: hill climber"], rows)


def _missed(cells: Cells) -> str:
    rows = []
    for one in sorted(cells, key=ratio):
        if ratio(one) >= WITHIN and not breaks(one):
            continue
        path, facts, chosen = one["path"], one["facts"], one["choices"]["advice"]
        policer = "" if path["policer_rate_bps"] is None else f", policer {path['policer_rate_bps'] / 1e6:.0f}"
        found = "" if facts["policer_rate_bps"] is None else f", policer {facts['policer_rate_bps'] / 1e6:.0f}"
        rows.append(
            [
                f"{path['rate_bps'] / 1e6:.0f} Mbit/s, {path['rtt_s'] * 1e3:.0f} ms, {len(path['competitors'])} "
                f"others, loss {path['loss']:.1e} x {path['loss_burst']:.0f}{policer}",
                f"{facts['competing_flows']:.1f} others, loss {facts['loss']:.1e} x {facts['loss_burst']:.0f}{found}",
                chosen["candidate"],
                one["best"]["candidate"],
                f"{ratio(one):.2f}",
                f"{chosen['excess']:+.2f}" + (", broken" if breaks(one) else ""),
            ]
        )
    return table(["path", "found", "proposed", "best", "share", "harm beyond limit"], rows) if rows else "None."


def _cost(cells: Cells) -> str:
    seconds = sorted(one["measured"]["seconds"] for one in cells)
    shares = sorted(one["measured"]["bytes"] / (one["path"]["rate_bps"] / 8 * 600) for one in cells)
    advise = sorted(one["cpu_s"]["advise"] for one in cells)
    runs = sorted(one["advice"]["simulated"]["runs"] for one in cells)
    middle, most = len(cells) // 2, len(cells) - 1
    shown = [f"{value:.1f} s" for value in (advise[middle], advise[most])]
    return fill(
        f"Measuring takes {seconds[middle]:.1f} s in the median and {seconds[most]:.1f} s at most, "
        f"{shares[middle]:.2%} and at most {shares[most]:.2%} of a copy of 600 s at the line's rate. The simulation of "
        f"an advice: {runs[middle]} runs, {shown[0]} of one core in the median, {shown[1]} at most."
    )


def _kernel(found: Cells) -> str:
    cells = [one for one in found if "skipped" not in one]
    if not cells:
        return "None was run."
    honoured = sum(not any(note.startswith("EMULATOR") for note in one["notes"]) for one in cells)
    got = [(one["forecast_bps"], one["choices"]["advice"]["goodput_bps"]) for one in cells]
    banded = sum(low <= value <= high for (low, _, high), value in got)
    sentence = (
        f"{pluralize(len(cells), 'path')} of seed 3, up to 200 Mbit/s; the emulator honoured {honoured} of them in "
        f"every run. Goodput of the advice within its forecast's band: {banded}. Share: the advice's goodput, of the "
        f"choice's."
    )
    rows = []
    for name in ("next 1", "next 2", "next 3", "cubic x1", "cubic x4", "cubic x8", "cubic x16", "bbr x1"):
        of = [one["choices"] for one in cells if name in one["choices"]]
        if of:
            shares = [one["advice"]["goodput_bps"] / max(1.0, one[name]["goodput_bps"]) for one in of]
            rows.append([name, str(len(of)), ", ".join(f"{one:.2f}" for one in sorted(shares))])
    return f"{fill(sentence)}\n\n{table(['choice', 'paths', 'shares'], rows)}"


def write(
    seed: int, fresh: int | None, read: Callable[[int], list[dict[str, Any]]], kernel: Sequence[dict[str, Any]]
) -> None:
    """Write the parts of the page, and every cell beside it."""
    training = [{**one, "draw": seed} for one in read(seed)]
    drawn = [] if fresh is None else [{**one, "draw": fresh} for one in read(fresh)]
    judged = usable(drawn) or usable(training)
    texts = {
        "totals": _totals(training, drawn),
        "classes": _classes(judged),
        "cost": _cost(judged),
        "kernel": _kernel(kernel),
        "missed": _missed(judged),
    }
    write_parts(PAGE, COMMAND, texts)
    _write_csv((RESULTS / PAGE).with_suffix(".csv"), [*usable(drawn), *usable(training)])


def _write_csv(file: Path, cells: Cells) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        names = list(cells[0]["choices"]) if cells else []
        heads = ["draw", "index", "rate_bps", "rtt_s", "loss", "loss_burst", "queue_bytes", "policer_rate_bps"]
        heads += ["policer_is_shared", "others", "found_loss", "found_others", "found_policer_bps", "packets"]
        heads += ["best", "best_bps", "proposed", "low_bps", "high_bps"]
        writer.writerow([*heads, *(f"{name}: {what}" for name in names for what in ("bps", "excess", "error"))])
        for one in cells:
            path, facts = one["path"], one["facts"]
            row = [one["draw"], one["index"], round(path["rate_bps"]), f"{path['rtt_s']:.4f}", f"{path['loss']:.3g}"]
            row += [f"{path['loss_burst']:.2f}", round(path["queue_bytes"]), round(path["policer_rate_bps"] or 0)]
            row += [path["policer_is_shared"], len(path["competitors"]), f"{facts['loss']:.3g}"]
            row += [f"{facts['competing_flows']:.1f}", round(facts["policer_rate_bps"] or 0), round(one["packets"])]
            row += [one["best"]["candidate"], round(one["best"]["goodput_bps"])]
            low, _, high = one["advice"]["goodput_bps"]
            row += [one["choices"]["advice"]["candidate"], round(low), round(high)]
            for name in names:
                choice = one["choices"][name]
                row += [round(choice["goodput_bps"]), f"{choice['excess']:.3f}", f"{choice['error']:.3f}"]
            writer.writerow(row)
