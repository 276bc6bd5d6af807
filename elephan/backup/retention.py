"""Choice of the versions that may go. Without a clock and without files: the receiving host removes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from elephan.backup.ages import AHEAD_S, Ages
from elephan.backup.spec import Keep

NAME = re.compile(r"version-[0-9]{8}T[0-9]{6}Z")
"""As crates/copy-net/src/versions.rs has it."""


@dataclass(frozen=True)
class Carried:
    """Entries of a version that could not be copied."""

    older: int
    """Carried over from older versions, by hard links."""
    missing: int
    """In no older version."""
    failed: int
    """Missing, while an older version has them, or may have them."""
    oldest: str | None
    """Oldest version whose run copied an entry that was carried over."""
    list: tuple[dict[str, str], ...] = ()
    """The first of them: `path`, `from` where it was carried over, `failed` with a reason."""

    @classmethod
    def of(cls, told: dict[str, Any] | None) -> Carried | None:
        """Return it from the receiving host's answer."""
        if told is None:
            return None
        return cls(told["older"], told["missing"], told["failed"], told["oldest"], tuple(told["list"]))

    @property
    def lacks(self) -> int:
        """Return the number of entries that the version does not have at all."""
        return self.missing + self.failed


@dataclass(frozen=True)
class Version:
    """A version at the destination."""

    name: str
    state: str
    """`begun`, `complete`, `partial` or `removing`."""
    exists: bool = True
    """True if its folder is there."""
    facts: dict[str, Any] = field(default_factory=dict)
    carried: Carried | None = None
    """Of a partial version."""
    is_own: bool = True
    """True if it is of the job that asks."""
    owner: dict[str, str | None] | None = None

    @property
    def is_complete(self) -> bool:
        """True if it has all entries of the sources, of the time of its run."""
        return self.state == "complete" and self.exists

    @property
    def has_ended(self) -> bool:
        """True if its run has ended: it is complete, or partial since some entries could not be copied."""
        return self.state in ("complete", "partial") and self.exists

    @property
    def covers_older(self) -> bool:
        """True if no older version holds the newest copy of any entry."""
        return self.is_complete or (self.has_ended and self.carried is not None and self.carried.failed == 0)

    @property
    def began_s(self) -> float:
        """Return when its copy began, Unix s by the clock of then: the time of its data."""
        began, named_s = self.facts.get("began_s"), time_of(self.name)
        # A name is ahead of the clock where that of an older version is.
        is_ahead = isinstance(began, int | float) and abs(began - named_s) > AHEAD_S
        return float(began) if is_ahead and began is not None else named_s


def name_of(at_s: float) -> str:
    """Return the name of a version that begins then."""
    return datetime.fromtimestamp(int(at_s), UTC).strftime("version-%Y%m%dT%H%M%SZ")


def time_of(name: str) -> float:
    """Return the time of a version's name, Unix s."""
    return datetime.strptime(name, "version-%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


def new_name(now_s: float, versions: Sequence[Version]) -> str:
    """Return the name of a new version: after all that are there, also where the clock was put back."""
    newest_s = max((time_of(one.name) for one in versions), default=0.0)
    return name_of(max(now_s, newest_s + 1))


def newest_complete(versions: Sequence[Version], at_s: float | None = None) -> Version | None:
    """Return the newest complete version, or the newest of those up to a time."""
    return _newest([one for one in versions if one.is_complete], at_s)


def newest_ended(versions: Sequence[Version], at_s: float | None = None) -> Version | None:
    """Return the newest version that is complete or partial, or the newest of those up to a time."""
    return _newest([one for one in versions if one.has_ended], at_s)


def since_complete(versions: Sequence[Version]) -> list[Version]:
    """Return the versions that have ended, newest first, down to the newest complete one."""
    newest = newest_complete(versions)
    ended = [one for one in versions if one.has_ended and (newest is None or one.name >= newest.name)]
    return sorted(ended, key=lambda one: one.name, reverse=True)


def _newest(versions: Sequence[Version], at_s: float | None) -> Version | None:
    fit = [one for one in versions if at_s is None or one.began_s <= at_s]
    return max(fit, key=lambda one: one.name, default=None)


def to_remove(
    versions: Sequence[Version], keep: Keep, now_s: float, current: str | None = None, ages: Ages | None = None
) -> list[str]:
    """Return the names of versions that may go, oldest first.

    A version goes by age once one after it is older than that: so the state of each moment since then can be restored.
    One that never ended goes once a newer one has, unless it is `current`, and so does one whose removal was cut short.
    None goes unless a newer one has all that it has, and the newest complete one stays whatever is newer. `ages`: an
    age counts where the run history agrees.
    """
    covering = max((one.name for one in versions if one.covers_older), default=None)
    if covering is None:
        return []
    ended = sorted((one for one in versions if one.has_ended), key=lambda one: one.name)
    gone = {one.name for one in versions if one.state in ("removing", "begun") and one.name < covering}
    if keep.versions is not None:
        gone |= {one.name for one in ended[: -keep.versions] if one.name < covering}
    if keep.age_s is not None:
        old = [
            one.name
            for one in ended
            if one.covers_older
            and now_s - one.began_s > keep.age_s
            and (ages is None or ages.of(one.name) > keep.age_s)
        ]
        newest_old = max(old, default="")
        gone |= {one.name for one in ended if one.name < newest_old}
    newest = newest_complete(versions)
    return sorted(gone - {covering, current or "", "" if newest is None else newest.name})
