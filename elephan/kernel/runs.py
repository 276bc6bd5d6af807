"""Controls that runs of the backend kernel have loaded: which run, and whether it goes on."""

from __future__ import annotations

import re

from elephan.kernel.names import DIGITS
from elephan.run_lock import living

NAME = re.compile(r"elephan_k([0-9a-f]{4})[0-9a-z]{2}")
"""A `k`, the first four digits of the run's id, and a number of two places."""

MOST = len(DIGITS) ** 2
"""Controls of one run."""


def name_of(run: str, number: int) -> str:
    """Return the name of control `number` of a run."""
    return f"elephan_k{run[:4]}{DIGITS[number // len(DIGITS)]}{DIGITS[number % len(DIGITS)]}"


def is_of_run(name: str) -> bool:
    """Return True if it is the name of a run's control."""
    return NAME.fullmatch(name) is not None


def lives(name: str) -> bool:
    """Return True if it is the name of a control of a run that goes on."""
    match = NAME.fullmatch(name)
    return match is not None and any(run.startswith(match[1]) for run in living())
