"""End of a run: which faults leave an entry out, the run's state, and the summary stored with the receipt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elephan.backup.retention import Carried, Version, time_of
from elephan.printable import one_line
from elephan.units import pluralize

WHOLE = ("done", "attributes")
"""States of runs after which each file of the sources is at the destination."""
COPIED = (*WHOLE, "faults")
"""States of runs that were made to their end."""
NAMED = 3
"""Entries that a run's line names; the receipt has all."""


def is_lost(fault: Mapping[str, Any]) -> bool:
    """Return True if an entry was not copied; of others some metadata could not be set."""
    return fault.get("kind") != "metadata"


def state_of(faults: Sequence[Mapping[str, Any]], more: int) -> str:
    """Return the state of a run with these faults; `more`: those that are not listed."""
    if more or any(map(is_lost, faults)):
        return "faults"
    return "attributes" if faults else "done"


def summary(carried: Carried | None, versions: Sequence[Version], own: str) -> dict[str, Any]:
    """Return what a run's row keeps of the entries that its version `own` did not get.

    `since_s`: time of the oldest data that stands for an entry, Unix s.
    """
    if carried is None:
        return {"older": 0, "missing": 0, "failed": 0, "oldest": None, "since_s": None}
    began = {one.name: one.began_s for one in versions}
    since_s = None if carried.oldest is None or carried.oldest == own else began.get(
        carried.oldest, time_of(carried.oldest)
    )  # fmt: skip
    return {
        "older": carried.older,
        "missing": carried.missing,
        "failed": carried.failed,
        "oldest": carried.oldest,
        "since_s": since_s,
    }


def faults_text(faults: Sequence[Mapping[str, Any]], more: int, kept: Mapping[str, Any]) -> str | None:
    """Return the faults of a run in one line."""
    lost, rest = [one for one in faults if is_lost(one)], [one for one in faults if not is_lost(one)]
    texts = []
    if lost or more:
        named = "; ".join(f"{one.get('path')}: {one.get('reason')}" for one in lost[:NAMED])
        texts.append(f"{pluralize(len(lost) + more, 'entry')} not copied: {named}")
        if kept.get("older"):
            texts.append(f"{kept['older']} carried over, the oldest from {kept['oldest']}")
        if lacks := int(kept.get("missing") or 0) + int(kept.get("failed") or 0):
            texts.append(f"{lacks} missing from the version")
    if rest:
        named = "; ".join(f"{one.get('path')}: {one.get('reason')}" for one in rest[:NAMED])
        texts.append(f"{pluralize(len(rest), 'entry')} copied without some attributes: {named}")
    return one_line("; ".join(texts)) if texts else None
