"""Where the command writes: results to stdout, everything else to stderr."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 200
"""Columns where stdout is no terminal: a table in a file is not folded to 80."""


@cache
def console() -> Console:
    """Return the console for results."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, soft_wrap=False)


def say(text: str) -> None:
    """Say something about a run that is no result: to stderr, so that --json stays clean."""
    print(text, file=sys.stderr)


def emit(text: str) -> None:
    """Write a result as it is."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()
