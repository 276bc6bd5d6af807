"""Measures first paint and accessibility of the web pages, and writes them into docs/results/web.md."""

from __future__ import annotations

import argparse
import sys

from evaluation.parts import write_parts
from evaluation.requirements import exit_code
from evaluation.web import accessibility, paint, site


def main() -> int:
    """Fill a store, measure, write; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.web", description=__doc__)
    parser.parse_args()
    run, size = site.filled()
    accessible, is_accessible = accessibility.measure(run)
    painted, is_fast = paint.measure(run, size)
    write_parts("web.md", "python -m evaluation.web", {"first paint": painted, "accessibility": accessible})
    for good, what in ((is_fast, "a first paint is late"), (is_accessible, "a violation is serious")):
        if not good:
            print(what, file=sys.stderr)
    return 0 if is_fast and is_accessible else 1


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.web", main))
