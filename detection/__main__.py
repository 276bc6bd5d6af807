"""`make detection`: runs every trial, writes docs/results/detection.md, its picture; fails when the exact case errs."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from detection import cells, page
from elephan.core import version


def main() -> int:
    """Run, write, judge."""
    parser = argparse.ArgumentParser(prog="python -m detection", description=__doc__)
    parser.parse_args()
    reference = cells.load()
    default, mixes = reference["default"], reference["mix"]
    errors = default["standard_errors"]
    found = {
        "sampling": [
            cells.run(reference, mix, n, default["memory"], errors) for mix in mixes for n in reference["one_in"]
        ],
        "memory": [
            cells.run(reference, mix, default["one_in"], m, errors) for mix in mixes for m in reference["memory"]
        ],
        "caution": [
            cells.run(reference, mix, 100, default["memory"], e) for mix in mixes for e in reference["standard_errors"]
        ],
    }
    page.write(reference, found, version(), datetime.now(UTC).strftime("%Y-%m-%d"))
    wrong = [cell for cell in found["sampling"] if cell.one_in == 1 and (cell.missed > 0 or cell.false > 0)]
    for cell in wrong:
        print(f"{cell.mix}: every packet counted, room for all, and yet {cell.found}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
