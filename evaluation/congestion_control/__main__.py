"""`make cc`: runs every congestion control, writes docs/results/congestion-control.md and its picture.

The exit code is 1 when a response is out of bounds.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from datetime import UTC, datetime
from typing import Any

from elephan.core import version
from evaluation.congestion_control import cases, judge, measuring, models, page, sheet
from evaluation.fidelity.formulas import OTT_FACTOR
from evaluation.markdown import table as markdown_table
from evaluation.performance.dumbbell import LARGEST_WINDOW_BYTES, PACKET_BYTES, PAYLOAD_BYTES
from evaluation.requirements import exit_code
from evaluation.runner import Runner, add_options


def main() -> int:
    """Run, write, judge."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.congestion_control", description=__doc__)
    parser.add_argument("--check", action="store_true", help="judge only; leave the page as it is")
    add_options(parser)
    parser.add_argument(
        "--only", action="append", metavar="CC", help="judge this congestion control alone; implies --check"
    )
    options = parser.parse_args()
    runner = Runner.of(options)
    reference = cases.load()
    congestion_controls = [
        cc for cc in reference["congestion_control"] if not options.only or cc["name"] in options.only
    ]
    # The longest first, so that no core is left with one of them at the end.
    cells = {
        cc["name"]: [*cases.response_cells(reference, cc), *cases.sharing_cells(reference, cc)]
        for cc in congestion_controls
    }
    todo = [(name, cell) for name, part in cells.items() for cell in part]
    todo.sort(key=lambda item: -item[1].weight)
    ended = measuring.measured(runner, [cell for _, cell in todo])
    by_cell = {(name, cell.kind, cell.key): result for (name, cell), result in zip(todo, ended, strict=True)}
    numbers = {
        name: [by_cell[name, cell.kind, cell.key] for cell in part] for name, part in cells.items()
    }  # fmt: skip

    points = {
        cc["name"]: judge.points(reference, cc, cells[cc["name"]], numbers[cc["name"]]) for cc in congestion_controls
    }
    independent = {name: judge.independent(cells[name], numbers[name]) for name in cells}
    rows = [judge.sharing(cc, cells[cc["name"]], numbers[cc["name"]]) for cc in congestion_controls]
    flat = [point for part in points.values() for point in part]
    if not options.check and not options.only:
        write(runner, reference, congestion_controls, points, independent, rows)
    print(page.verdict(flat))
    return 0 if all(point.holds for point in flat) else 1


def write(
    runner: Runner,
    reference: dict[str, Any],
    congestion_controls: list[cases.CongestionControl],
    points: dict[str, list[judge.Point]],
    independent: dict[str, dict[float, list[float]]],
    rows: list[judge.Sharing],
) -> None:
    """Write page and picture."""
    response, sharing, convergence = reference["response"], reference["sharing"], reference["convergence"]
    rtt_s = response["rtt_ms"] / 1000

    def published(cc: cases.CongestionControl, loss: float) -> float | None:
        cycle = models.cycle_of(cc, loss, rtt_s)
        return None if cycle is None else cycle.mean

    curves = []
    for cc in congestion_controls:
        losses = [10 ** -(2 + index / 10) for index in range(51)] if models.is_published(cc) else []
        line = [(loss, published(cc, loss) or math.nan) for loss in losses]
        curves.append(sheet.Curve(cc["name"], points[cc["name"]], independent[cc["name"]], line))
    page.write_independent(
        {
            cc["name"]: {
                loss: (statistics.median(windows), published(cc, loss))
                for loss, windows in independent[cc["name"]].items()
            }
            for cc in congestion_controls
        }
    )
    page.write_sharing(sharing["rtt_ratios"], sharing["flows"], convergence["jain"], rows)
    page.write(
        {
            "version": version(),
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "verdict": page.verdict([point for part in points.values() for point in part]),
            "rtt_ms": response["rtt_ms"],
            "line_gbps": response["line_bps"] // 10**9,
            "counted": f"{response['counted'][-1]} to {response['counted'][0]}",
            "warmup": f"{response['warmup'][-1]} to {response['warmup'][0]}",
            "tolerance": between(response["tolerance"]),
            "small_tolerance": between(response["small_tolerance"]),
            "small_window": response["small_window"],
            "response": page.response_table(response["loss"], points),
            "independent_seeds": response["independent_seeds"],
            "independent_counted": f"{response['independent_counted'][-1]} to {response['independent_counted'][0]}",
            "ott": OTT_FACTOR,
            "published": page.published_list(congestion_controls),
            "small": small_windows(runner, reference),
            "controls": controls(runner, reference, points),
            "rate_mbps": sharing["rate_mbps"],
            "share_rtt_ms": sharing["rtt_ms"],
            "queue": cases.product_packets(sharing),
            "seeds": sharing["seeds"],
            "warmup_s": sharing["warmup_s"],
            "seconds": sharing["seconds"],
            "jain": convergence["jain"],
            "join_s": convergence["join_s"],
            "window_s": convergence["window_s"],
            "hold_s": convergence["hold_s"],
            "most": 100 * PAYLOAD_BYTES / PACKET_BYTES,
            "sharing": page.sharing_table(sharing["rtt_ratios"], sharing["flows"], convergence["jain"], rows),
            "sharing_controls": sharing_controls(runner, reference, rows),
            "sharing_notes": page.bullets(reference["sharing"]["notes"]),
        },
        sheet.png(curves, LARGEST_WINDOW_BYTES // PAYLOAD_BYTES),
    )


def small_windows(runner: Runner, reference: dict[str, Any]) -> str:
    """Return what takes Reno below its formula at the highest loss, one thing after the other."""
    table = reference["response"]
    loss, warmup, counted = table["loss"][0], table["warmup"][0], table["counted"][0]
    reno = next(cc for cc in reference["congestion_control"] if cc["name"] == "reno")
    period = round(1 / loss)
    cells = [cases.periodic_cell(table, reno, loss, warmup, counted) for _ in range(2)]
    cells[1].spec["flows"][0]["transport"]["delayed_ack"] = False
    delayed, prompt = (numbers["mean"] for numbers in measuring.measured(runner, cells))
    cycle = models.cycle_of(reno, loss, table["rtt_ms"] / 1000)
    assert cycle is not None, "Reno has a formula"
    return markdown_table(
        ["Reno, loss 1e-2", "mean window"],
        [
            ["the formula", f"{cycle.mean:.1f}"],
            ["in whole segments", f"{models.reno_in_segments(period, 0):.1f}"],
            ["no growth in the round trip of the recovery", f"{models.reno_in_segments(period, 1):.1f}"],
            ["measured, an ACK per segment", f"{prompt:.1f}"],
            ["measured, delayed ACKs: an odd last segment waits for its ACK", f"{delayed:.1f}"],
        ],
    )


def controls(runner: Runner, reference: dict[str, Any], points: dict[str, list[judge.Point]]) -> str:
    """Return what a point becomes when the thing that is said to explain its difference is changed."""
    table = reference["response"]
    rows = []
    for control in reference["control"]:
        cc = next(cc for cc in reference["congestion_control"] if cc["name"] == control["congestion_control"])
        at = table["loss"].index(control["loss"])
        changed = cc | {"parameters": cc.get("parameters", {}) | control.get("parameters", {})}
        cell = cases.periodic_cell(table, changed, control["loss"], table["warmup"][at], table["counted"][at])
        cell.spec["flows"][0]["transport"] |= control.get("transport", {})
        (result,) = measuring.measured(runner, [cell])
        before = points[cc["name"]][at]
        assert before.published is not None, f"{cc['name']}: a control is held against what is published"
        rows.append(
            [
                f"{cc['name']}, {control['change']}",
                f"{control['loss']:g}",
                f"{before.ratio:.2f}",
                f"{result['mean'] / before.published:.2f}",
            ]
        )
    return markdown_table(["congestion control and change", "loss", "as it is", "changed"], rows)


def sharing_controls(runner: Runner, reference: dict[str, Any], rows: list[judge.Sharing]) -> str:
    """Return what Jain's index of many flows becomes when something is changed in the congestion control."""
    table, lines = reference["sharing"], []
    for control in reference["sharing_control"]:
        cc = next(cc for cc in reference["congestion_control"] if cc["name"] == control["congestion_control"])
        changed = cc | {"parameters": cc.get("parameters", {}) | control["parameters"]}
        count = control["flows"]
        flows = [(changed, table["rtt_ms"] * cases.NS_PER_MS)] * count
        cells = [
            cases.sharing_cell(table, ("flows", count, seed), flows, seed) for seed in range(1, table["seeds"] + 1)
        ]
        found = statistics.median(
            measuring.jain_of(result["goodput_bps"]) for result in measuring.measured(runner, cells)
        )
        before = next(row.jain[count] for row in rows if row.cc == cc["name"])
        lines.append([f"{cc['name']}, {control['change']}", str(count), f"{before:.2f}", f"{found:.2f}"])
    return markdown_table(["congestion control and change", "flows", "Jain as it is", "changed"], lines)


def between(tolerance: list[float]) -> str:
    """Return a tolerance as text."""
    return f"{tolerance[0]:g} to {tolerance[1]:g}"


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.congestion_control", main))
