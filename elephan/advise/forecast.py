"""Forecast of a copy: its file set, simulated on a path with the settings of a candidate.

The first part is simulated packet by packet; a long rest is extrapolated at the steady goodput.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class FileSet:
    """Files that are copied."""

    files: int
    """Number of files; at least 1."""
    bytes: int
    """Their data, together."""
    sizes: tuple[tuple[int, int], ...] = ()
    """Sizes as (bytes, number of files), ascending; empty: all alike. A scan sums files of about the same size up."""
    changed: float = 1.0
    """Share of the data that the destination lacks, 0 to 1: below 1 the receiver's hashes go first (delta)."""

    @staticmethod
    def of_text(text: str) -> FileSet:
        """Return the set of "100000 x 20kB-40kB", "2TB" or "1 x 1GB". Raises InputError."""
        raise NotImplementedError

    @staticmethod
    def of_trees(paths: Sequence[str | Path], changed: float = 1.0) -> FileSet:
        """Return the set of the files below `paths`. Unreadable folders are left out. Raises InputError: no such path."""
        raise NotImplementedError

    @staticmethod
    def of_sizes(sizes: Iterable[int], changed: float = 1.0) -> FileSet:
        """Return the set of files of these sizes, in bytes."""
        raise NotImplementedError


@dataclass(frozen=True)
class Ends:
    """Limits of the two ends that a path does not know. None: none."""

    read_bps: int | None = None
    """Reading at the sender, bit/s."""
    write_bps: int | None = None
    """Writing at the receiver, bit/s."""
    hash_bps: int | None = None
    """Hashing at each end, bit/s."""
    file_s: float = 0.0
    """Time that the receiver takes for each file beside its data (create, sync, rename), s."""


@dataclass(frozen=True)
class Forecast:
    """Time that a copy takes; low and high bound 90 % of the simulated outcomes."""

    seconds_low: float
    seconds: float
    """The middle."""
    seconds_high: float
    goodput_bps: float
    """Data of the file set over the middle time."""
    is_extrapolated: bool
    """True: the first part was simulated, the rest follows at its steady goodput."""
    simulated_bytes: int
    """Most data of one simulated run."""
    explanation: list[str] = field(default_factory=list)
    """In words, one sentence each: what bounds it, what was simulated, what was assumed."""


def forecast(
    path: Any,
    candidate: Any,
    file_set: FileSet,
    *,
    ends: Ends | None = None,
    rate_bps: int | None = None,
    seed: int = 1,
    budget_s: float = 5.0,
) -> Forecast:
    """Return the forecast of copying `file_set` over `path` with the settings of `candidate`.

    `path`: `PathFacts`, or a scenario as `scenario_of` returns it (a mapping), whose flow is replaced and whose
    competing traffic stays. `candidate`: `elephan.advise.advice.Candidate`. `rate_bps`: most that the streams may send
    together. `budget_s`: processor time to spend, s. Raises InputError: the scenario is wrong, and RunError: it cannot
    be extrapolated.
    """
    raise NotImplementedError


