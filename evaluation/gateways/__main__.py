"""`make gateways`: runs what is not stored and writes docs/results/gateways.md with its pictures."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from elephan.core import version
from evaluation.gateways import distance, head_of_line, neighbours, page, pairs
from evaluation.requirements import exit_code
from evaluation.runner import Runner, add_options


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.gateways", description=__doc__)
    add_options(parser)
    options = parser.parse_args()
    runner = Runner.of(options)
    sections = [
        head_of_line.section(head_of_line.measure(runner)),
        distance.section(distance.measure(runner)),
        pairs.section(pairs.measure(runner)),
        neighbours.section(neighbours.measure(again=options.again)),
    ]
    page.write(sections, version(), datetime.now(UTC).strftime("%Y-%m-%d"))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.gateways", main))
