"""`make fidelity`: runs all comparisons of reference.toml, writes docs/results/fidelity.md.

The exit code is 1 when a comparison is out of bounds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from elephan.core import version
from evaluation.fidelity import cases, formulas, judge, page
from evaluation.fidelity.backend import judge as backend_judge
from evaluation.fidelity.backend import measured, picture, script
from evaluation.fidelity.backend.page import section, write_cells, write_windows
from evaluation.performance.engines import Unavailable, ns2_version
from evaluation.requirements import exit_code
from evaluation.runner import Runner, add_options

Rows = TypeVar("Rows")


def step(name: str, run: Callable[[], Rows]) -> Rows:
    """Run one table and print its duration."""
    began_s = time.monotonic()
    rows = run()
    print(f"{name}: {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
    return rows


def main() -> int:
    """Run, write, judge."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.fidelity", description=__doc__)
    parser.add_argument("--check", action="store_true", help="judge only; leave docs/results/fidelity.md as it is")
    add_options(parser)
    options = parser.parse_args()
    runner = Runner.of(options)
    reference = cases.load()
    kernel = reference["kernel"]
    formula_rows = step("formulas", lambda: judge.formula_rows(runner, list(cases.formula_cases(reference))))
    window_rows = step("window", lambda: judge.window_rows(runner, reference, list(cases.window_cases(reference))))
    sawtooth = list(cases.sawtooth_cases(reference))
    sawtooth_rows = step("sawtooth", lambda: judge.sawtooth_rows(runner, reference, sawtooth))
    kernel_rows = step("kernel", lambda: judge.kernel_rows(runner, reference, list(cases.kernel_cases(reference))))
    prices = step("price", lambda: judge.prices(runner, list(cases.price_cases(reference))))
    runs = measured.load()
    backend_rows = step("kernel backend", lambda: backend_judge.rows(runner, reference, runs))
    scripts = step("windows", lambda: script.differences(runner, reference, runs))
    try:
        ns2_name = ns2_version()
        ns2_rows = step("ns-2", lambda: judge.ns2_rows(runner, list(cases.ns2_cases(reference))))
        table = reference["ns2"]
        ns2 = (
            f"{ns2_name}, Agent/TCP/Linux on the same dumbbell, queue of one bandwidth-delay product: "
            + "; ".join(page.grid_text(grid) for grid in table["grid"])
            + f". Medians over the seeds. Allowed: {page.between(table['tolerance'])}, but where a control has its own "
            "bounds, below: elephan (over ns-2); [both, with the scatter](fidelity-ns2.csv).\n\n"
            + page.ns2_table(ns2_rows)
            + "\n\n"
            + page.reasons(table["congestion_control"])
        )
    except Unavailable as missing:
        ns2_rows, ns2 = [], f"Not compared in this run: {missing}."

    rows = [row for pair in formula_rows for row in pair]
    rows += window_rows + sawtooth_rows + kernel_rows + ns2_rows
    rows += [price.row for price in prices if price.row is not None]
    rows += [beside.row for beside in backend_rows]
    if not options.check:
        if scripts:
            picture.write(scripts, reference["backend"]["script"]["series_ms"])
            write_windows(scripts)
        page.write_kernel(kernel_rows)
        if ns2_rows:
            page.write_ns2(ns2_rows)
        if backend_rows:
            write_cells(backend_rows)
        page.write_page(
            {
                "version": version(),
                "date": datetime.now(UTC).strftime("%Y-%m-%d"),
                "verdict": page.verdict(rows),
                "ott": formulas.OTT_FACTOR,
                "mathis_tolerance": page.between(reference["formulas"]["mathis_tolerance"]),
                "padhye_tolerance": page.between(reference["formulas"]["padhye_tolerance"]),
                "scatter_tolerance": page.between(reference["formulas"]["scatter_tolerance"]),
                "formulas": page.formula_table(formula_rows),
                "window_bytes": reference["window"]["window_bytes"],
                "window_tolerance": page.between(reference["window"]["tolerance"]),
                "window": page.window_table(window_rows),
                "sawtooth_tolerance": page.between(reference["sawtooth"]["tolerance"]),
                "sawtooth": page.period_table(sawtooth_rows),
                "kernel_source": kernel["source"],
                "kernel_path": f"{kernel['rate_mbps']} Mbit/s, RTT {kernel['rtt_ms']} ms, queue of one product",
                "kernel_seeds": kernel["seeds"],
                "kernel_seconds": kernel["seconds"],
                "kernel_tolerance": page.between(kernel["tolerance"]),
                "kernel": page.kernel_table(kernel_rows),
                "price_source": kernel["price"]["source"],
                "price_late": kernel["price"]["late"],
                "price_goodput": page.price_goodput(prices),
                "price_tolerance": page.between(kernel["price"]["reno_tolerance"]),
                "price": page.price_table(prices),
                "backend": section(reference, runs, backend_rows, scripts),
                "ns2": ns2,
            }
        )
    print(page.verdict(rows))
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.fidelity", main))
