"""The command of a program of this folder: it measures everything, then writes its parts of docs/results/moves.md."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from evaluation.parts import write_parts
from evaluation.requirements import exit_code
from evaluation.runner import Runner, add_options

PAGE = "moves.md"


def main(command: str, description: str | None, measure: Callable[[Runner], Mapping[str, str]]) -> int:
    """Write what `measure` returns, the text of each part by its name. Return the exit code."""
    parser = argparse.ArgumentParser(prog=command, description=description)
    add_options(parser)
    options = parser.parse_args()
    return exit_code(command, lambda: write_parts(PAGE, command, measure(Runner.of(options))))
