"""Forecast of a copy: its file set, simulated on paths that are in keeping with the facts, with a candidate's settings.

A long copy is simulated until it is steady or the time is used up (`long_run`). The band is that of the paths drawn,
what the facts leave open, and of the rest that was not simulated.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from elephan.advise.candidate import Candidate
from elephan.advise.draws import drawn, middle
from elephan.advise.facts import PathFacts
from elephan.advise.long_run import LEAST_RTTS, LongRun, long_run
from elephan.advise.simulation import Path as SimulatedPath
from elephan.core import native
from elephan.errors import InputError
from elephan.run_spec.types import CopyWorkloadSpec
from elephan.scenario.copy import ALL_CHANGED, FILES_MAX, Copy, copy_spec
from elephan.scenario.quantity import parse_size
from elephan.units import USELESS, count, duration, duration_range, is_useless, rate, size

PACKETS_PER_S = 8_000_000
"""Packets of a copy that a core simulates in a second; `PACKETS_MIN` of them whatever the budget."""
PACKETS_MIN = 20_000
DRAWS = 12
"""Paths that are simulated: the ends of a band of 90 % lie between the outer two."""
DRAWS_SURE = 3
"""The same where the facts leave nothing open: each is simulated for longer."""
PACKETS_MAX = 2**24
"""Packets of `LEAST_RTTS` that are simulated at most."""
FIRST_PART = 16
"""A first pass has so small a part of the packets: it says how long all of them take on this machine."""
FIRST_S = 1.0
"""Time that the first pass has even after the deadline, s."""
SAFETY = 0.8
"""Part of the time left for which further packets are planned."""
BOUNDS = "what the line lets through and the control's response to the path's loss, or to as many as were seen"
"""Meaning of a band where the simulated part is too short."""
STEPS_PER_OCTAVE = 4
"""Classes of size that a scan sums files up in, for each factor of two."""


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
        """Return the set of "100000 x 20kB-40kB", "1 x 1GB", "2TB", or several with "+" between. Raises InputError."""
        found: Counter[int] = Counter()
        for one in text.split("+"):
            number, times, sizes = one.replace("×", "x").rpartition("x")
            files = _whole(number, text) if times else 1
            low, _, high = sizes.strip().partition("-")
            smallest = _size(low, text)
            largest = _size(high, text) if high.strip() else smallest
            if largest < smallest:
                raise InputError(_TEXT_EXPECTED.format(text))
            # Sizes in between are equally likely: as many classes as there are files, ten at most.
            classes = min(files, 10) if largest > smallest else 1
            for place in range(classes):
                middle_bytes = smallest + (largest - smallest) * (2 * place + 1) // (2 * classes)
                found[middle_bytes] += files // classes + (place < files % classes)
        return _of_counts(found)

    @staticmethod
    def of_trees(paths: Sequence[str | Path], changed: float = 1.0) -> FileSet:
        """Return the set of the files below `paths`. What cannot be read is left out. Raises InputError."""
        found: Counter[int] = Counter()
        for path in paths:
            if not Path(path).exists():
                raise InputError(f"{path}: no such file or folder")
            for bytes_of in _sizes_below(Path(path)):
                found[bytes_of] += 1
        return _of_counts(found, changed)

    @staticmethod
    def of_sizes(sizes: Iterable[int], changed: float = 1.0) -> FileSet:
        """Return the set of files of these sizes, in bytes."""
        return _of_counts(Counter(sizes), changed)

    def text(self) -> str:
        """Return it in words."""
        many = "1 file" if self.files == 1 else f"{count(self.files)} files"
        part = "" if self.changed >= 1 else f", {100 * self.changed:.3g} % of it changed"
        return f"{many} of {size(self.bytes)}{part}"


_TEXT_EXPECTED = '"{}" is no file set: "2TB", "1 x 1GB" or "100000 x 20kB-40kB", several with "+" between'


def _whole(text: str, whole_text: str) -> int:
    digits = text.strip().replace("_", "").replace(",", "")
    if not digits.isdecimal() or not 0 < int(digits) <= FILES_MAX:
        raise InputError(_TEXT_EXPECTED.format(whole_text))
    return int(digits)


def _size(text: str, whole_text: str) -> int:
    try:
        return int(parse_size(text.strip()))
    except Exception:
        raise InputError(_TEXT_EXPECTED.format(whole_text)) from None


def _sizes_below(path: Path) -> Iterable[int]:
    """Yield the sizes of the files at or below a path; links count as nothing, as their data is not copied."""
    waiting = [path]
    while waiting:
        place = waiting.pop()
        try:
            if place.is_dir() and not (place.is_symlink() and place != path):
                with os.scandir(place) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(Path(entry.path))
                        elif entry.is_file(follow_symlinks=False):
                            yield entry.stat(follow_symlinks=False).st_size
            elif place.is_file():
                yield place.stat().st_size
        except OSError:
            continue


def _of_counts(found: Counter[int], changed: float = 1.0) -> FileSet:
    if not 0 <= changed <= 1:
        raise InputError(f"changed = {changed}: a share from 0 to 1")
    if not found:
        return FileSet(1, 0, ((0, 1),), changed)
    total = sum(size_of * number for size_of, number in found.items())
    classes: dict[int, list[int]] = {}
    for size_of, number in found.items():
        key = -1 if size_of == 0 else int(math.log2(size_of) * STEPS_PER_OCTAVE)
        of_class = classes.setdefault(key, [0, 0])
        of_class[0] += size_of * number
        of_class[1] += number
    sizes = tuple(sorted((data // number, number) for data, number in classes.values()))
    return FileSet(sum(found.values()), total, sizes, changed)


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
    refused: str | None = None
    """Reason why the simulated part is no sample of the rest: low and high are bounds then."""
    is_late: bool = False
    """The time ended before as much was simulated as was planned."""
    explanation: list[str] = field(default_factory=list)
    """In words, one sentence each: what bounds it, what was simulated, what was assumed."""

    def text(self) -> str:
        """Return it in a line."""
        band = duration_range(self.seconds_low, self.seconds_high)
        if is_useless(self.seconds_low, self.seconds_high):
            # A middle of such a band would pass for an estimate.
            return f"{band}: too wide to plan by; the goodput of a first copy narrows it"
        return f"{duration(self.seconds)} ({band}), {rate(self.goodput_bps)}"


def forecast(
    path: PathFacts,
    candidate: Candidate,
    file_set: FileSet,
    *,
    ends: Ends | None = None,
    rate_bps: int | None = None,
    seed: int = 1,
    budget_s: float = 5.0,
    workers: int | None = None,
    deadline_s: float | None = None,
) -> Forecast:
    """Return the forecast of copying `file_set` over `path` with the settings of `candidate`.

    `rate_bps`: most data that the streams send together. `budget_s`: processor time to spend, s, roughly. The same
    arguments give the same forecast, unless `deadline_s` of time.monotonic ends it, and `is_late` says so. Raises
    InputError: a value is wrong.
    """
    if not (path.rate_bps > 0 and path.rtt_s > 0):
        raise InputError(f"the path has {path.rate_bps:g} bit/s and {path.rtt_s:g} s: both above zero")
    if file_set.files < 1 or file_set.bytes < 0 or not 0 <= file_set.changed <= 1:
        told = f"{file_set.files} files of {file_set.bytes} B, of which {file_set.changed:g} changed"
        raise InputError(f"{told}: a file at least, and a share from 0 to 1")
    if candidate.streams < 1:
        raise InputError(f"{candidate.streams} streams: at least 1")
    limits = ends or Ends()
    limit_bps = min((bound for bound in (rate_bps, candidate.pacing_bps) if bound is not None), default=None)
    copy = workload_of(file_set, limits, limit_bps)
    count_of = _draws_for(path)
    paths = drawn(path, count_of, seed)
    # Beside others as many packets of theirs are simulated.
    fair = budget_s * PACKETS_PER_S / count_of / (2 if any(one.competitors for one in paths) else 1)
    least = min(PACKETS_MAX, LEAST_RTTS * paths[0].bound_bps * path.rtt_s / 8 / path.mtu_bytes)
    packets = max(PACKETS_MIN, round(fair), round(min(least, 2 * fair)))

    def run(packets: int, until_s: float | None) -> list[LongRun]:
        def one(place: int) -> LongRun | None:
            try:
                return long_run(paths[place], candidate, copy, packets, seed + place, until_s)
            except native.Stopped:
                return None

        with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
            return [found for found in pool.map(one, range(count_of)) if found is not None]

    runs, is_late = (run(packets, None), False) if deadline_s is None else _in_time(run, packets, count_of, deadline_s)
    if not runs:
        return _not_simulated(paths[0], file_set, limit_bps)
    low_s, middle_s, high_s = _band(runs)
    simulated = max(run.simulated_bytes for run in runs)
    is_extrapolated = not all(run.is_complete for run in runs)
    refused = [run.refused for run in runs if run.refused is not None]
    goodput_bps = file_set.bytes * 8 / middle_s if middle_s > 0 else 0.0
    why = refused[0] if 2 * len(refused) > len(runs) else None
    found = Forecast(low_s, middle_s, high_s, goodput_bps, is_extrapolated, simulated, why, is_late)
    found.explanation.extend(_explained(path, candidate, file_set, found, limits, limit_bps))
    return found


def _in_time(
    run: Callable[[int, float | None], list[LongRun]], packets: int, count_of: int, deadline_s: float
) -> tuple[list[LongRun], bool]:
    """Return the runs of as many packets as the time allows, and whether those are less than `packets`."""
    few = min(packets, max(PACKETS_MIN, packets // FIRST_PART))
    began_s = time.monotonic()
    first = run(few, max(deadline_s, began_s + FIRST_S))
    took_s = time.monotonic() - began_s
    if few == packets or all(one.is_complete for one in first) or len(first) < count_of:
        return first, len(first) < count_of
    fit = min(packets, int(SAFETY * (deadline_s - time.monotonic()) * few / max(took_s, 1e-9)))
    if fit < 2 * few:
        return first, True
    found = run(fit, deadline_s)
    return (found, fit < packets) if len(found) == count_of else (first, True)


def _not_simulated(path: SimulatedPath, file_set: FileSet, limit_bps: int | None) -> Forecast:
    """Return what is known without a simulation: no copy is faster than what the path lets through."""
    goodput_bps = min(path.bound_bps * path.payload_share, limit_bps or math.inf)
    seconds = file_set.bytes * file_set.changed * 8 / goodput_bps
    why = "this machine simulated nothing in the time"
    return Forecast(seconds, seconds, USELESS * max(seconds, 1.0), goodput_bps, True, 0, why, is_late=True)


def _draws_for(facts: PathFacts) -> int:
    return DRAWS if facts.ranges else DRAWS_SURE


def workload_of(file_set: FileSet, ends: Ends | None = None, limit_bps: int | None = None) -> CopyWorkloadSpec:
    """Return the workload that carries a file set, with the limits of its ends."""
    ends = ends or Ends()
    classes = file_set.sizes or ((file_set.bytes // max(1, file_set.files), file_set.files),)
    changed = round(file_set.changed * ALL_CHANGED)
    (first_bytes, first_files), *others = classes
    made = copy_spec(
        Copy.model_validate(
            {
                "kind": "copy",
                "files": first_files,
                "size": f"{first_bytes}B",
                "more": [{"files": files, "size": f"{bytes_of}B"} for bytes_of, files in others],
                "changed": file_set.changed,
                "file_time": f"{max(0, round(ends.file_s * 1e9))}ns",
            }
        )
    )
    made["read_bps"] = _least(ends.read_bps, ends.hash_bps)
    made["write_bps"] = _least(ends.write_bps, ends.hash_bps)
    made["hash_bps"] = ends.hash_bps if changed < ALL_CHANGED else None
    made["limit_bps"] = limit_bps
    return made


def _least(*bounds: int | None) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)


def _band(runs: Sequence[LongRun]) -> tuple[float, float, float]:
    """Return the 5 %, 50 % and 95 % points of the time: of the paths' own low, expected and high ones."""
    lows, middles, highs = (sorted(run.seconds[end] for run in runs) for end in range(3))
    return _quantile(lows, 0.05), _quantile(middles, 0.5), _quantile(highs, 0.95)


def _quantile(ascending: Sequence[float], part: float) -> float:
    place = part * (len(ascending) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (place - low) * (ascending[high] - ascending[low])


def _explained(
    facts: PathFacts,
    candidate: Candidate,
    file_set: FileSet,
    found: Forecast,
    ends: Ends,
    limit_bps: int | None,
) -> list[str]:
    path = middle(facts)
    streams = "1 stream" if candidate.streams == 1 else f"{candidate.streams} streams"
    told = [
        f"{file_set.text()} over {rate(facts.rate_bps)}, {duration(facts.rtt_s)} and loss {facts.loss:.1e}, with "
        f"{streams} of {candidate.control}."
    ]
    line_bps = path.bound_bps * path.payload_share
    share = min(1.0, found.goodput_bps * file_set.changed / line_bps)
    told.append(f"It uses {100 * share:.0f} % of what the line carries.")
    bounds = {
        "the sender's reading": ends.read_bps,
        "the receiver's writing": ends.write_bps,
        "hashing": ends.hash_bps,
        "the rate that was set": limit_bps,
    }
    slowest = min(
        ((name, bound) for name, bound in bounds.items() if bound is not None), key=lambda item: item[1], default=None
    )
    if slowest is not None and slowest[1] < line_bps:
        told.append(f"Its bound is {slowest[0]}, {rate(slowest[1])}.")
    if ends.file_s > 0 and ends.file_s * file_set.files > found.seconds / 2:
        told.append(f"Its bound is the time for each file, {duration(ends.file_s)}.")
    how = f"{_draws_for(facts)} paths drawn from the ranges of the facts were simulated"
    if found.is_extrapolated:
        how += f", up to {size(found.simulated_bytes)} of each; the rest follows at the rate of their steady part"
    told.append(how + ".")
    if found.refused is not None:
        told.append(
            f"That part is too short to tell ({found.refused}): the band is {BOUNDS}."
        )
    if not facts.ranges:
        told.append("The facts have no ranges: the band is that of chance alone.")
    return told
