"""A failing sequence is made as short as it can be: steps, then options, are left out while it still fails."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

from tests.copy.model.changes import Step
from tests.copy.model.sequence import Failed

Fails = Callable[[list[Step]], Failed | None]
TRIES = 2
"""Threads are not repeatable: a run that does not fail is tried again."""


def shrunk(steps: list[Step], failure: Failed, fails: Fails, limit_s: float = 60.0) -> tuple[list[Step], Failed]:
    """Return fewer steps that fail, and how. `fails` makes steps."""
    end_s = time.monotonic() + limit_s
    kind = kind_of(failure)

    def still(shorter: list[Step]) -> Failed | None:
        for _ in range(TRIES):
            found = fails(shorter)
            if found is not None and kind_of(found) == kind:
                return found
        return None

    best, how = steps[: failure.step + 1], failure
    if (found := still(best)) is None:
        return best, how
    # Copies within one machine take a tenth of the time.
    here = copy.deepcopy(best)
    for step in here:
        if step[0] == "copy":
            step[1].pop("ends", None)
    if here != best and (found := still(here)) is not None:
        best, how = here[: found.step + 1], found
    # Copies take the time: those before the last are left out first, all or one by one.
    copies = [at for at, step in enumerate(best[:-1]) if step[0] == "copy"]
    for gone in [copies, copies[: len(copies) // 2], copies[len(copies) // 2 :], *([at] for at in reversed(copies))]:
        shorter = [step for at, step in enumerate(best) if at not in gone or step[0] != "copy"]
        if len(shorter) == len(best) or time.monotonic() > end_s:
            continue
        if (found := still(shorter)) is not None:
            best, how = shorter[: found.step + 1], found
            if gone is copies:
                break
            copies = [at for at, step in enumerate(best[:-1]) if step[0] == "copy"]
    size = len(best) // 2
    while size >= 1 and time.monotonic() < end_s:
        at, removed = 0, False
        while at < len(best) - 1 and time.monotonic() < end_s:
            shorter = best[:at] + best[min(at + size, len(best) - 1) :]
            if (found := still(shorter)) is not None:
                best, how, removed = shorter[: found.step + 1], found, True
            else:
                at += size
        if not removed or size > 1:
            size = size // 2 if size > 1 else (1 if removed else 0)
    return simpler(best, how, still, end_s)


def simpler(steps: list[Step], failure: Failed, still: Fails, end_s: float) -> tuple[list[Step], Failed]:
    """Leave out options and disturbances of copies."""
    for number, step in enumerate(steps):
        if step[0] != "copy":
            continue
        for key in ("switches", "exclude", "link_to", "max_removals", "carried", "ends"):
            values = step[1].get(key)
            for value in list(values) if isinstance(values, list) else [values]:
                if values is None or time.monotonic() > end_s:
                    continue
                shorter = copy.deepcopy(steps)
                request: dict[str, Any] = shorter[number][1]
                if isinstance(values, list):
                    request[key] = [other for other in request[key] if other != value]
                else:
                    del request[key]
                if (found := still(shorter)) is not None:
                    steps, failure = shorter[: found.step + 1], found
        if step[2] and time.monotonic() < end_s:
            shorter = copy.deepcopy(steps)
            shorter[number][2] = {}
            if (found := still(shorter)) is not None:
                steps, failure = shorter[: found.step + 1], found
    return steps, failure


def kind_of(failure: Failed) -> str:
    """Return what kind of fault it is: the first line without paths and numbers."""
    line = failure.lines[0]
    for mark in (
        "traceback", "exit code", "verify", "rsync", "torn", "half of", "synced", "is missing", "names of", "mode",
        "uid", "gid", "modified_ns", "xattrs", "content", "hole", "receipt", "left in", "nothing should be", "is a ",
    ):  # fmt: skip
        if mark in line:
            return mark
    return line
