"""`python -m evaluation.mitigation`: runs the missing cells of the table of mitigations and writes
docs/results/mitigation.md.
"""

from __future__ import annotations

import argparse
import sys

from evaluation.mitigation import measuring, page
from evaluation.mitigation.cells import FLOWS, RATES, RTTS_MS, SCENARIOS, Cell, cells
from evaluation.requirements import exit_code
from evaluation.runner import Runner, add_options


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.mitigation", description=__doc__)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="only these; repeat for several")
    parser.add_argument("--rate", action="append", choices=RATES, help="only these")
    parser.add_argument("--rtt", action="append", type=int, choices=RTTS_MS, help="only these, ms")
    parser.add_argument("--flows", action="append", type=int, choices=FLOWS, help="only these numbers of flows")
    parser.add_argument("--write-only", action="store_true", help="run nothing; write what is stored")
    add_options(parser)
    options = parser.parse_args()

    def wanted(cell: Cell) -> bool:
        chosen = (options.scenario, options.rate, options.rtt, options.flows)
        return all(not some or value in some for some, value in zip(chosen, _place(cell), strict=True))

    runner = Runner.of(options)
    if not options.write_only:
        runner.run(cell.job() for cell in cells() if wanted(cell))
    ran = {cell: page.row(cell, *found) for cell, found in measuring.stored(runner, cells()).items()}
    page.write(page.committed() | ran)
    return 0


def _place(cell: Cell) -> tuple[str, str, int, int]:
    return cell.scenario, cell.rate, cell.rtt_ms, cell.flows


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.mitigation", main))
