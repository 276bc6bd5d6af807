"""Ages of versions by the job's own history, for a clock that was set.

A clock that jumps forward makes every version look old. The time from one run to the next is therefore taken from the
kernel's clock of the time since boot where both ran in one boot, which nobody sets. Across boots the wall clock counts
only as far as the job's schedule explains it: beyond that it may have jumped, and the time since the later boot counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan.backup.spec import JobSpec

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
UPTIME = Path("/proc/uptime")
WEEK_S = 7 * 86_400.0
SLACK_S = 3600.0
"""Lateness of a run that no schedule needs to explain, s."""
AHEAD_S = 60.0
"""Time by which a date may be ahead of the clock: clocks are corrected by less all the time."""


@dataclass(frozen=True)
class Moment:
    """A time by two clocks."""

    wall_s: float
    boot: str
    """Identity of the boot; empty: not known."""
    uptime_s: float
    """Time since that boot, sleep included."""

    @classmethod
    def now(cls, wall_s: float) -> Moment:
        """Return the present."""
        try:
            # Not clock_gettime(CLOCK_BOOTTIME): a time namespace has an offset to it.
            return cls(wall_s, BOOT_ID.read_text().strip(), float(UPTIME.read_text().split()[0]))
        except (OSError, ValueError, IndexError):
            return cls(wall_s, "", 0.0)

    @classmethod
    def of(cls, wall_s: float, facts: Mapping[str, Any]) -> Moment:
        """Return when a version began, by the facts of its marker; earlier releases wrote none."""
        boot, uptime_s = facts.get("boot"), facts.get("uptime_s")
        known = isinstance(boot, str) and isinstance(uptime_s, int | float)
        return cls(wall_s, str(boot), float(uptime_s)) if known else cls(wall_s, "", 0.0)  # type: ignore[arg-type]

    def as_facts(self) -> dict[str, Any]:
        """Return it as facts of a marker."""
        return {"began_s": self.wall_s, "boot": self.boot, "uptime_s": self.uptime_s}


def longest_gap_s(job: JobSpec) -> float:
    """Return the longest time from one run to the next that the job's schedule explains, s."""
    schedule = job.schedule
    if schedule.every_s is not None:
        return 2 * schedule.every_s + SLACK_S
    if schedule.at_min:
        return (2 * 86_400.0 if len(schedule.days) == 7 else 2 * WEEK_S) + SLACK_S
    # Of a job that is run when asked no gap is unusual but beside the age to which versions stay.
    return math.inf if job.keep.age_s is None else max(WEEK_S, 2 * job.keep.age_s)


def elapsed_s(earlier: Moment, later: Moment, most_s: float) -> float:
    """Return the time between two moments that certainly went by, or that `most_s` explains, s."""
    if earlier.boot and earlier.boot == later.boot:
        return max(0.0, later.uptime_s - earlier.uptime_s)
    wall_s = max(0.0, later.wall_s - earlier.wall_s)
    return wall_s if wall_s <= most_s else min(wall_s, later.uptime_s if later.boot else 0.0)


@dataclass(frozen=True)
class Ages:
    """Ages of versions by the run history."""

    by_name: Mapping[str, float]
    unexplained_s: float
    """Time by which the wall clock went forward and which the history does not explain."""

    @classmethod
    def by_history(cls, moments: Sequence[tuple[str, Moment]], now: Moment, most_s: float) -> Ages:
        """Return the ages of versions; `moments` are their names and times in order of names."""
        found: dict[str, float] = {}
        age_s = unexplained_s = 0.0
        later = now
        for name, moment in reversed(moments):
            step_s = elapsed_s(moment, later, most_s)
            age_s += step_s
            unexplained_s += max(0.0, later.wall_s - moment.wall_s - step_s)
            found[name] = age_s
            later = moment
        return cls(found, unexplained_s)

    def of(self, name: str) -> float:
        """Return the age of a version, s."""
        return self.by_name.get(name, 0.0)
