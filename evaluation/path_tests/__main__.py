"""`python -m evaluation.path_tests`: judges the path tests in the simulator; `--measure` writes docs/results."""

from __future__ import annotations

import argparse
import sys
import time
from typing import get_args

from evaluation.path_tests import cells, page
from evaluation.path_tests.cells import Judged, Test
from evaluation.requirements import exit_code
from evaluation.runner import Runner, add_options

SEED = 20
"""Of the cells of the page; estimators were made on cells of other seeds."""


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.path_tests", description=__doc__)
    add_options(parser)
    parser.add_argument("--measure", action="store_true", help="write docs/results/path-tests.md and its table")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"seed of the cells ({SEED})")
    parser.add_argument("--repetitions", type=int, default=1, metavar="N", help="draws of each cell (1)")
    parser.add_argument("--only", action="append", choices=get_args(Test), help="one test; may be given again")
    parser.add_argument("--part", type=int, default=1, metavar="N", help="every Nth cell alone (1: all)")
    options = parser.parse_args()
    runner = Runner(None, workers=options.workers)
    found: dict[Test, list[Judged]] = {}
    for test in options.only or get_args(Test):
        begun = time.monotonic()
        drawn = list(cells.draw(test, options.seed, options.repetitions))[:: options.part]
        found[test] = runner.in_parallel(cells.simulated, drawn)
        print(page.summary(test, found[test]), f"[{time.monotonic() - begun:.0f} s]", flush=True)
        for judged in found[test]:
            if not judged.right:
                print("  " + page.line(judged), file=sys.stderr)
    if options.measure:
        page.write(found)
    return 0


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.path_tests", main))
