"""Options that the searches of models have in common."""

from __future__ import annotations

import argparse
from pathlib import Path


def search_parser(description: str | None, length: int) -> argparse.ArgumentParser:
    """Return a parser for seeds, time and steps; `length`: steps of a sequence where none is given."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="how long (default: 10)")
    parser.add_argument("--first", type=int, metavar="N", help="the first seed (default: the time of day)")
    parser.add_argument("--seed", type=int, metavar="N", help="only this one")
    parser.add_argument("--sequences", type=int, metavar="N", help="so many sequences, whatever time they take")
    parser.add_argument("--length", type=int, default=length, metavar="N", help=f"steps of each (default: {length})")
    parser.add_argument("--shrink-for", type=float, default=60, metavar="S", help="time to shrink a failure, s")
    parser.add_argument("--steps", type=Path, metavar="FILE", help="the steps of a file, as a failure leaves it")
    return parser
