"""A backup's file as plain data: what the program that runs the jobs holds of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["full", "incremental", "mirror"]

EVERY_DAY = frozenset(range(7))
"""Days of the week, Monday is 0."""


@dataclass(frozen=True)
class Window:
    """Hours in which a job may send."""

    begin_min: int
    """Minute of the local day."""
    end_min: int
    """Minute of the local day, at most 1440; not after `begin_min`: on the next day."""
    days: frozenset[int] = EVERY_DAY
    """Days on which it begins."""
    rate_bps: int | None = None
    """Most that the job sends in it."""


@dataclass(frozen=True)
class Schedule:
    """Times at which a job is due: one of `every_s` and `at_min`; neither: never by itself."""

    every_s: float | None = None
    at_min: tuple[int, ...] = ()
    """Minutes of the local day."""
    days: frozenset[int] = EVERY_DAY
    """Days of `at_min`."""


@dataclass(frozen=True)
class Keep:
    """Older versions that stay; without either all do."""

    age_s: float | None = None
    """The state of each moment since then can be restored."""
    versions: int | None = None
    """Complete versions, the newest included."""


@dataclass(frozen=True)
class Retry:
    """Attempts of a run."""

    attempts: int
    """Attempts in a row that bring no new byte to the destination, after which the run has failed."""
    wait_s: float
    """Time before the second; doubled from one to the next."""
    longest_wait_s: float


@dataclass(frozen=True)
class PathSpec:
    """A path, for forecasts."""

    name: str
    rate_bps: int
    rtt_s: float
    loss: float
    queue_bytes: int
    mtu_bytes: int
    competing_flows: int


@dataclass(frozen=True)
class Data:
    """Expected data, for forecasts, as `elephan.advise.forecast.FileSet.of_text` takes it."""

    first: str | None = None
    """All of it."""
    change: str | None = None
    """Sent by one run after the first."""


@dataclass(frozen=True)
class JobSpec:
    """A job."""

    name: str
    kind: Kind
    sources: tuple[str, ...]
    """PATH or HOST:PATH, as `elephan copy` takes them."""
    destination: str
    schedule: Schedule
    windows: tuple[Window, ...] = ()
    """None: at all times."""
    keep: Keep = field(default_factory=Keep)
    path: PathSpec | None = None
    data: Data = field(default_factory=Data)
    rate_bps: int | None = None
    copy: dict[str, Any] = field(default_factory=dict)
    """Members of `CopyRequest` that the file sets."""
    options: dict[str, Any] = field(default_factory=dict)
    """Members of `CopyOptions` that the file sets."""
    may_be_empty: bool = False
    """A source that has become empty is no accident."""
    max_removals: int | None = None
    """Most entries that a run of a mirror removes; None: as the copy limits it."""

    @property
    def has_versions(self) -> bool:
        """True if each run makes a version of its own."""
        return self.kind != "mirror"

    def identity(self) -> list[Any]:
        """Return what makes an unfinished run one of this job still."""
        return [self.kind, list(self.sources), self.destination]

    def settings(self) -> dict[str, Any]:
        """Return what the store keeps of it, for readers."""
        return {
            "kind": self.kind,
            "sources": list(self.sources),
            "destination": self.destination,
            "every_s": self.schedule.every_s,
            "at_min": list(self.schedule.at_min),
            "days": sorted(self.schedule.days),
            "windows": [{**dataclasses.asdict(one), "days": sorted(one.days)} for one in self.windows],
            "keep_age_s": self.keep.age_s,
            "keep_versions": self.keep.versions,
            "rate_bps": self.rate_bps,
            "path": None if self.path is None else self.path.name,
        }


@dataclass(frozen=True)
class Spec:
    """A backup."""

    name: str
    file: str
    jobs: tuple[JobSpec, ...]
    retry: Retry
    max_running: int | None = None
    """Most jobs at once; None: all that are due."""

    def job(self, name: str) -> JobSpec | None:
        """Return the job of a name."""
        return next((job for job in self.jobs if job.name == name), None)
