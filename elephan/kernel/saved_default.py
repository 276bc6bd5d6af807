"""Remember a namespace's default from before it became one of elephan's: a small file for each, until the machine
restarts.

**Invariant: an entry counts only as long as the default is what elephan made it.** Whoever has set another one since
then is right, and an entry that is left of a namespace that has gone says nothing of the next one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from elephan.errors import InputError
from elephan.kernel import namespaces

FOLDER = Path("/run/elephan-defaults")
"""Beside /run/elephan, where a file is a run's lock."""

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Another after each start: for machines whose /run outlives it, as a container's may."""


def note(before: str, now: str) -> None:
    """Write down that the default of this namespace was `before` and is going to be `now`. Raises `InputError`."""
    place = _place()
    try:
        FOLDER.mkdir(mode=0o755, exist_ok=True)
        new = place.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps({"boot": _boot(), "before": before, "now": now}) + "\n")
        new.replace(place)
    except OSError as error:
        raise InputError(f"cannot write down in {place} what the default was: {error.strerror}") from error


def noted(now: str) -> str | None:
    """Return the default before it was `now`; None if nothing is known, or it is no longer true."""
    try:
        entry = json.loads(_place().read_text())
        known = entry["boot"] == _boot() and entry["now"] == now
        return str(entry["before"]) if known else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def forget() -> None:
    """Forget what this namespace's was."""
    try:
        _place().unlink(missing_ok=True)
        FOLDER.rmdir()
    except OSError:
        # There are others, or there is no folder.
        pass


def _place() -> Path:
    return FOLDER / namespaces.identity()


def _boot() -> str:
    return BOOT.read_text().strip()
