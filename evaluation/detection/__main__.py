"""`make detection`: runs every trial, writes docs/results/detection.md, its picture; fails when the exact case errs."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from elephan.core import version
from evaluation.detection import cells, page
from evaluation.requirements import exit_code
from evaluation.runner import Runner


def main() -> int:
    """Run, write, judge."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.detection", description=__doc__)
    parser.parse_args()
    reference = cells.load()
    found = cells.table(Runner(None), reference)
    page.write(reference, found, version(), datetime.now(UTC).strftime("%Y-%m-%d"))
    wrong = [cell for cell in found["sampling"] if cell.sampling_rate == 1 and (cell.missed > 0 or cell.false > 0)]
    for cell in wrong:
        print(f"{cell.mix}: every packet counted, room for all, and yet {cell.found}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.detection", main))
