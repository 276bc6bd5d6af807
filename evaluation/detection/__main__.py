"""`make detection`: runs every trial, writes docs/results/detection.md, its picture; fails when the exact case errs."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from elephan.core import version
from evaluation.detection import cells, page


def main() -> int:
    """Run, write, judge."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.detection", description=__doc__)
    parser.parse_args()
    reference = cells.load()
    default, mixes = reference["default"], reference["mix"]
    errors = default["standard_errors"]
    found = {
        "sampling": [
            cells.run(reference, mix, n, default["flow_table_size"], errors)
            for mix in mixes
            for n in reference["sampling_rate"]
        ],
        "flow_table_size": [
            cells.run(reference, mix, default["sampling_rate"], m, errors)
            for mix in mixes
            for m in reference["flow_table_size"]
        ],
        "caution": [
            cells.run(reference, mix, 100, default["flow_table_size"], e)
            for mix in mixes
            for e in reference["standard_errors"]
        ],
    }
    page.write(reference, found, version(), datetime.now(UTC).strftime("%Y-%m-%d"))
    wrong = [cell for cell in found["sampling"] if cell.one_in == 1 and (cell.missed > 0 or cell.false > 0)]
    for cell in wrong:
        print(f"{cell.mix}: every packet counted, room for all, and yet {cell.found}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
