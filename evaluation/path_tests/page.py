"""The parts of docs/results/path-tests.md that are measured, and the table of all cells beside it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from evaluation.markdown import table
from evaluation.parts import RESULTS, write_parts
from evaluation.path_tests.cells import LOADS, PATHS, RATES, TARGETS, TRAFFICS, Judged, Test

PAGE = "path-tests.md"
COMMAND = "python -m evaluation.path_tests --measure --part 3"


def summary(test: Test, found: Sequence[Judged]) -> str:
    """Return a line about one test."""
    refused = sum(judged.outcome["refused"] is not None for judged in found)
    errors = sorted(abs(judged.error) for judged in found if judged.error is not None)
    covered = [judged.covered for judged in found if judged.covered is not None]
    median = f"{100 * errors[len(errors) // 2]:.2f} %" if errors else "-"
    return (
        f"{test}: {sum(judged.right for judged in found)} of {len(found)} cells within the target, {refused} refused, "
        f"median error {median}, interval right in {sum(covered)} of {len(covered)}, "
        f"most bytes {100 * max((judged.share for judged in found), default=0):.2f} % of the line's"
    )


def line(judged: Judged) -> str:
    """Return a line about one cell."""
    cell = judged.cell
    place = f"{cell.rate / 1e6:.1f} Mbit/s {cell.load:.0%} {cell.traffic}, {cell.path}, queue {cell.queue:.2f}"
    if judged.outcome["refused"]:
        return f"{place}: refused: {judged.outcome['refused']}"
    if judged.value is None:
        return f"{place}: none; {judged.outcome['notes']}"
    error = "" if judged.error is None else f" ({100 * judged.error:+.1f} %)"
    true = "none" if judged.true is None else f"{judged.true:.5g}"
    return f"{place}: {judged.value:.5g} of {true}{error}; {judged.outcome['notes']}"


def _share(found: Sequence[Judged]) -> str:
    return f"{sum(judged.right for judged in found)}/{len(found)}" if found else ""


def _rows(found: Mapping[Test, list[Judged]], labels: Mapping[str, Callable[[Judged], bool]]) -> list[list[str]]:
    return [
        [label, *(_share([judged for judged in of if right(judged)]) for of in found.values())]
        for label, right in labels.items()
    ]


def _totals(found: Mapping[Test, list[Judged]]) -> str:
    rows = []
    for test, of in found.items():
        errors = sorted(abs(judged.error) for judged in of if judged.error is not None)
        covered = [judged.covered for judged in of if judged.covered is not None]
        rows.append(
            [
                test,
                f"{100 * TARGETS[test]:g} %" if test in TARGETS else "5 % of the rate",
                f"{_share(of)} ({100 * sum(judged.right for judged in of) / len(of):.0f} %)",
                str(sum(judged.outcome["refused"] is not None for judged in of)),
                f"{100 * errors[len(errors) // 2]:.2f} %",
                f"{100 * errors[int(0.9 * (len(errors) - 1))]:.1f} %",
                f"{sum(covered)}/{len(covered)}",
                f"{sum(judged.outcome['cost']['bytes'] for judged in of) / len(of) / 1e6:.1f} MB",
                f"{100 * max(judged.share for judged in of):.2f} %",
            ]
        )
    heads = ["test", "target", "within it", "refused", "median error", "90 % below", "interval right", "bytes", "most"]
    return table(heads, rows)


def _missed(found: Mapping[Test, list[Judged]]) -> str:
    """Return a table of the cells that miss their target; the CSV file has the reasons of refusals."""
    rows = []
    for test, of in found.items():
        for judged in of:
            cell = judged.cell
            if judged.right:
                continue
            value = (
                "refused" if judged.outcome["refused"] else "none" if judged.value is None else f"{judged.value:.4g}"
            )
            rows.append(
                [
                    test,
                    f"{cell.rate / 1e6:.1f} Mbit/s",
                    f"{cell.load:.0%} {cell.traffic}",
                    cell.path,
                    f"{cell.queue:.2f}",
                ]
                + [value, "none" if judged.true is None else f"{judged.true:.4g}"]
                + ["" if judged.error is None else f"{100 * judged.error:+.1f} %"]
            )
    heads = ["test", "narrow link", "cross traffic", "path", "queue, BDP", "estimate", "true", "error"]
    return table(heads, rows) if rows else "None."


def _has_rate(rate: float, judged: Judged) -> bool:
    return 0.8 * rate <= judged.cell.rate <= rate


def _has_load(load: float, judged: Judged) -> bool:
    return judged.cell.load == load


def _has_traffic(traffic: str, judged: Judged) -> bool:
    return judged.cell.traffic == traffic and judged.cell.load > 0


def _has_path(path: str, judged: Judged) -> bool:
    return judged.cell.path == path


def texts(found: Mapping[Test, list[Judged]]) -> dict[str, str]:
    """Return the measured parts by name."""
    labels: dict[str, Callable[[Judged], bool]] = {}
    labels |= {f"up to {rate / 1e6:g} Mbit/s": partial(_has_rate, rate) for rate in RATES}
    labels |= {f"{load:.0%} load": partial(_has_load, load) for load in LOADS}
    labels |= {traffic: partial(_has_traffic, traffic) for traffic in TRAFFICS}
    labels |= {path: partial(_has_path, path) for path in PATHS}
    return {
        "totals": _totals(found),
        "cells": table(["cells", *found], _rows(found, labels)),
        "missed": _missed(found),
    }


def write(found: Mapping[Test, list[Judged]]) -> None:
    """Write the parts of the page, and every cell beside it."""
    write_parts(PAGE, COMMAND, texts(found))
    with (RESULTS / PAGE).with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        heads = ["test", "rate_bps", "load", "traffic", "path", "rtt_s", "queue_bdp", "seed"]
        writer.writerow([*heads, "true", "estimate", "low", "high", "error", "refused", "bytes", "seconds"])
        for test, of in found.items():
            for judged in of:
                cell, cost = judged.cell, judged.outcome["cost"]
                first = judged.outcome["estimates"][0] if judged.outcome["estimates"] else {}
                numbers = [judged.true, judged.value, first.get("low"), first.get("high"), judged.error]
                writer.writerow(
                    [test, round(cell.rate), cell.load, cell.traffic, cell.path]
                    + [f"{cell.rtt:.4f}", f"{cell.queue:.2f}", cell.seed]
                    + ["" if number is None else f"{number:.5g}" for number in numbers]
                    + [judged.outcome["refused"] or "", cost["bytes"], f"{cost['seconds']:.2f}"]
                )
