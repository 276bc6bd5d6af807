"""`python -m evaluation.mitigation`: runs what is missing of the table of mitigations and writes
docs/results/mitigation.md."""

from __future__ import annotations

import argparse
import sys

from evaluation.mitigation import page, running
from evaluation.mitigation.cells import FLOWS, RATES, RTTS_MS, SCENARIOS, Cell, cells


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.mitigation", description=__doc__)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="only these; repeat for several")
    parser.add_argument("--rate", action="append", choices=RATES, help="only these")
    parser.add_argument("--rtt", action="append", type=int, choices=RTTS_MS, help="only these, ms")
    parser.add_argument("--flows", action="append", type=int, choices=FLOWS, help="only these numbers of flows")
    parser.add_argument("--workers", type=int, metavar="N", help="runs at once (all cores)")
    parser.add_argument("--write-only", action="store_true", help="run nothing; write what is kept")
    options = parser.parse_args()

    def wanted(cell: Cell) -> bool:
        chosen = (options.scenario, options.rate, options.rtt, options.flows)
        return all(not some or value in some for some, value in zip(chosen, _place(cell), strict=True))

    some = [cell for cell in cells() if wanted(cell)]
    done = 0

    def ended(cell: Cell) -> None:
        nonlocal done
        done += 1
        print(f"{done} of {len(some)}: {cell}", file=sys.stderr, flush=True)

    if not options.write_only:
        running.run(some, ended, options.workers)
    page.write()
    return 0


def _place(cell: Cell) -> tuple[str, str, int, int]:
    return cell.scenario, cell.rate, cell.rtt_ms, cell.flows


if __name__ == "__main__":
    sys.exit(main())
