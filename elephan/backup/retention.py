"""Choice of the versions that may go. Without a clock and without files: the receiving host removes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from elephan.backup.spec import Keep

NAME = re.compile(r"version-[0-9]{8}T[0-9]{6}Z")
"""As crates/copy-net/src/versions.rs has it."""


@dataclass(frozen=True)
class Version:
    """A version at the destination."""

    name: str
    state: str
    """`begun`, `complete` or `removing`."""
    exists: bool = True
    """True if its folder is there."""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """True if all of it is there."""
        return self.state == "complete" and self.exists

    @property
    def began_s(self) -> float:
        """Return when its copy began, Unix s: the time of its data."""
        return time_of(self.name)


def name_of(at_s: float) -> str:
    """Return the name of a version that begins then."""
    return datetime.fromtimestamp(int(at_s), UTC).strftime("version-%Y%m%dT%H%M%SZ")


def time_of(name: str) -> float:
    """Return the time of a version's name, Unix s."""
    return datetime.strptime(name, "version-%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


def new_name(now_s: float, versions: Sequence[Version]) -> str:
    """Return the name of a new version: after all that are there, also where the clock was put back."""
    newest_s = max((one.began_s for one in versions), default=0.0)
    return name_of(max(now_s, newest_s + 1))


def newest_complete(versions: Sequence[Version], at_s: float | None = None) -> Version | None:
    """Return the newest complete version, or the newest of those up to a time."""
    fit = [one for one in versions if one.is_complete and (at_s is None or one.began_s <= at_s)]
    return max(fit, key=lambda one: one.name, default=None)


def to_remove(versions: Sequence[Version], keep: Keep, now_s: float, current: str | None = None) -> list[str]:
    """Return the names of versions that may go, oldest first.

    A version goes by age once the complete one after it is older than that: so the state of each moment since then can
    be restored. One that was never completed goes once a newer one is complete, unless it is `current`, and so does one
    whose removal was cut short. The newest complete version stays.
    """
    complete = sorted((one for one in versions if one.is_complete), key=lambda one: one.name)
    if not complete:
        return []
    newest = complete[-1]
    gone = {one.name for one in versions if one.state == "removing" and one.name < newest.name}
    gone |= {one.name for one in versions if one.state == "begun" and one.name < newest.name}
    if keep.versions is not None:
        gone |= {one.name for one in complete[: -keep.versions]}
    if keep.age_s is not None:
        gone |= {
            one.name for one, after in zip(complete, complete[1:], strict=False) if after.began_s < now_s - keep.age_s
        }
    return sorted(gone - {newest.name, current or ""})
