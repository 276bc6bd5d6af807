"""Forecast of a copy: its file set, simulated on paths that are in keeping with the facts, with a candidate's settings.

The first part is simulated packet by packet; the rest follows at the rate of its second half. The band is that of the
paths drawn: what the facts leave open, and chance.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from elephan import control_process
from elephan.advise.candidate import Candidate
from elephan.advise.draws import drawn, middle
from elephan.advise.facts import PathFacts
from elephan.advise.simulation import Horizon, spec_of
from elephan.advise.simulation import Path as SimulatedPath
from elephan.errors import InputError
from elephan.run_spec.types import CopyWorkloadSpec, RunSpec
from elephan.scenario.copy import ALL_CHANGED, FILES_MAX, Copy, copy_spec, mean_sent_bytes
from elephan.scenario.quantity import parse_size
from elephan.units import count, duration, rate, size

if TYPE_CHECKING:
    from elephan._native import RunResult

PACKETS_PER_S = 4_000_000
"""Packets that a core simulates in a second; `PACKETS_MIN` of them whatever the budget."""
PACKETS_MIN = 20_000
DRAWS = 12
"""Paths that are simulated: the ends of a band of 90 % lie between the outer two."""
ROUND_TRIPS = 150
"""Least length of the simulated part: CUBIC is then past several of its cycles (RFC 9438, 4.1)."""
LONGER = 4.0
"""Factor of time when a run carried few packets and did not end."""
SAMPLES = 40
"""Parts of a run of which the rates are taken."""
Z_90 = 1.645
"""Of the normal distribution: 90 % lie within so many standard deviations."""
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
    explanation: list[str] = field(default_factory=list)
    """In words, one sentence each: what bounds it, what was simulated, what was assumed."""

    def text(self) -> str:
        """Return it in a line."""
        band = f"{duration(self.seconds_low)} to {duration(self.seconds_high)}"
        return f"{duration(self.seconds)} ({band}), {rate(self.goodput_bps)}"


@dataclass(frozen=True)
class _Outcome:
    """One simulated copy."""

    seconds: float
    """Time that was simulated, or until its end where that came first, s."""
    delivered_bytes: int
    left_bytes: int
    """Bytes that had not arrived by then; 0: it ended."""
    batches: tuple[float, ...] = ()
    """Rates in equal parts of the second half, byte/s."""

    @property
    def rate(self) -> float:
        """Rate of the second half, byte/s."""
        return max(sum(self.batches) / max(1, len(self.batches)), 1e-9)


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
) -> Forecast:
    """Return the forecast of copying `file_set` over `path` with the settings of `candidate`.

    `rate_bps`: most data that the streams send together. `budget_s`: processor time to spend, s, roughly. The same
    arguments give the same forecast. Raises InputError: a value is wrong.
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
    copy = _workload(file_set, limits, limit_bps)
    packets = max(PACKETS_MIN, round(budget_s * PACKETS_PER_S / DRAWS))
    paths = drawn(path, DRAWS, seed)

    def one(place: int) -> _Outcome:
        return _simulated(paths[place], candidate, copy, packets, seed + place)

    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        outcomes = list(pool.map(one, range(DRAWS)))
    low_s, middle_s, high_s = _band(outcomes)
    simulated = max(outcome.delivered_bytes for outcome in outcomes)
    is_extrapolated = any(outcome.left_bytes > 0 for outcome in outcomes)
    goodput_bps = file_set.bytes * 8 / middle_s if middle_s > 0 else 0.0
    found = Forecast(low_s, middle_s, high_s, goodput_bps, is_extrapolated, simulated)
    found.explanation.extend(_explained(path, candidate, file_set, found, limits, limit_bps))
    return found


def _workload(file_set: FileSet, ends: Ends, limit_bps: int | None) -> CopyWorkloadSpec:
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


def _simulated(path: SimulatedPath, candidate: Candidate, copy: CopyWorkloadSpec, packets: int, seed: int) -> _Outcome:
    """Simulate a copy on one path, at most about `packets` of the bottleneck, and extrapolate its rest."""
    sent_bytes = mean_sent_bytes(copy)
    packet_s = path.mtu_bytes * 8 / path.rate_bps
    copy_s = max(packets * packet_s, ROUND_TRIPS * path.rtt_s)
    is_alone = not path.competitors and path.background_bps <= 0
    while True:
        horizon = Horizon(0.0 if is_alone else max(12 * path.rtt_s, copy_s / 10), copy_s)
        spec = _spec(path, candidate, copy, horizon, seed)
        try:
            result = control_process.simulate(json.dumps(spec))
        except ValueError as error:
            raise InputError(f"the copy cannot be simulated: {error}") from None
        delivered = sum(
            int(cast(int, flow["delivered_bytes"]))
            for flow, of_spec in zip(result.flows, spec["flows"], strict=True)
            if of_spec["workload"]["kind"] == "copy"
        )
        completion = result.flow_groups[0].get("completion_s")
        if completion is not None:
            return _Outcome(float(cast(float, completion)), delivered, 0)
        if delivered < packets * path.mtu_bytes / LONGER and copy_s < sent_bytes * 8:
            # The copy has little of the line: a longer run costs as many packets as were allowed.
            copy_s *= LONGER
            continue
        batches = _second_half(result, horizon, len(path.competitors))
        return _Outcome(copy_s, delivered, max(0, sent_bytes - delivered), batches)


def _second_half(result: RunResult, horizon: Horizon, others: int) -> tuple[float, ...]:
    """Return the rates of the copy in the samples of the second half, byte/s."""
    series = result.flow_series
    rates: dict[float, float] = {}
    for at_s, flow, goodput_bps in zip(series["time_s"], series["flow"], series["goodput_bps"], strict=True):
        if at_s > horizon.before_s + 0.5 * horizon.copy_s and flow >= others:
            rates[float(at_s)] = rates.get(float(at_s), 0.0) + float(goodput_bps) / 8
    return tuple(rates.values())


def _band(outcomes: Sequence[_Outcome]) -> tuple[float, float, float]:
    """Return the 5 %, 50 % and 95 % points of the time.

    The rate of a part varies by chance more than that of the whole rest does. So the rates of the paths are drawn
    together by the part of their variance that their own batches explain (as James and Stein 1961 do), and what chance
    leaves over the rest is added.
    """
    cut = [outcome for outcome in outcomes if outcome.left_bytes > 0 and len(outcome.batches) > 1]
    seconds = [outcome.seconds for outcome in outcomes if outcome.left_bytes == 0]
    chance = 0.0
    if cut:
        rates = [outcome.rate for outcome in cut]
        centre = statistics.fmean(rates)
        within = statistics.fmean(statistics.variance(outcome.batches) for outcome in cut)
        of_mean = within / statistics.fmean(len(outcome.batches) for outcome in cut)
        total = statistics.variance(rates) if len(rates) > 1 else 0.0
        kept = math.sqrt(max(0.0, total - of_mean) / total) if total > 0 else 0.0
        lefts = [one.left_bytes / max(centre + kept * (one.rate - centre), centre / 1000) for one in cut]
        seconds += [outcome.seconds + left for outcome, left in zip(cut, lefts, strict=True)]
        batch_s = statistics.fmean(outcome.seconds / 2 / len(outcome.batches) for outcome in cut)
        ahead = within * batch_s / max(statistics.fmean(lefts), batch_s)
        chance = Z_90 * math.sqrt(ahead + of_mean / len(cut)) / centre
    seconds.sort()
    middle_s = _quantile(seconds, 0.5)
    least_s = min(outcome.seconds for outcome in outcomes)
    low_s = middle_s - math.hypot(middle_s - _quantile(seconds, 0.05), chance * middle_s)
    high_s = middle_s + math.hypot(_quantile(seconds, 0.95) - middle_s, chance * middle_s)
    return max(low_s, min(least_s, middle_s)), middle_s, high_s


def _spec(
    path: SimulatedPath, candidate: Candidate, copy: CopyWorkloadSpec, horizon: Horizon, seed: int
) -> RunSpec:
    """Return the run: as the advice simulates it, with the file set as what the candidate's streams carry."""
    spec = spec_of(path, candidate, horizon, seed, with_references=False)
    mine = spec["flows"][len(path.competitors) :]
    for number, flow in enumerate(mine):
        flow["name"] = f"copy.{number + 1}"
        flow["group"] = mine[0]["group"]
        flow["workload"] = copy
        flow["distribution"] = "striped"
    spec["measure"]["series_interval_ns"] = max(1, round(horizon.copy_s / SAMPLES * 1e9))
    spec["stop_when_done"] = not path.competitors
    return spec


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
    how = f"{DRAWS} paths within what the facts leave open were simulated"
    if found.is_extrapolated:
        how += f", up to {size(found.simulated_bytes)} of each; the rest follows at the rate of the second half"
    told.append(how + ".")
    if not facts.ranges:
        told.append("The facts have no ranges: the band is that of chance alone.")
    return told
