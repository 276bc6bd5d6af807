"""Patterns of a job's `exclude`, for a restore of one of its sources alone."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from elephan.errors import InputError


def below(patterns: Sequence[str], name: str) -> list[str]:
    """Return patterns that name below the folder `name` of a copy what `patterns` name in the complete copy.

    Raises `InputError` for one that cannot be told apart so: with "**" beside a slash.
    """
    found: list[str] = []
    for pattern in patterns:
        parts = pattern.strip("/").split("/")
        if len(parts) == 1 and not pattern.startswith("/"):
            found.append(pattern)
            continue
        if "**" in pattern:
            raise InputError(
                f'exclude "{pattern}": which entries of {name} it names cannot be told: restore without --exact, or '
                "elsewhere with --to"
            )
        if not pattern.startswith("/"):
            found.append(pattern)
        rest = "/".join(parts[1:])
        # The first component of a path in the copy is the name itself.
        if rest and fnmatch.fnmatchcase(name, parts[0].replace("[^", "[!")):
            found.append(f"/{rest}" + ("/" if pattern.endswith("/") else ""))
    return found
