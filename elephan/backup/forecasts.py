"""Forecasts of a backup: each copy by simulation of its path, all jobs together in virtual time, RPO and RTO.

RPO (recovery point objective): the most data, as time, that a disaster would take: the greatest age of the newest
complete copy. RTO (recovery time objective): the time until all is restored.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import tzinfo
from functools import lru_cache
from typing import Any

from elephan import units
from elephan.advise.advice import Candidate
from elephan.advise.facts import PathFacts
from elephan.advise.forecast import FileSet, forecast
from elephan.backup.outcome import COPIED
from elephan.backup.spec import JobSpec, PathSpec, Spec
from elephan.backup.timetable import caught_up, least_rate, next_due, next_open, open_until
from elephan.copy.api import STREAMS

CLOSE = 0.1
"""Relative difference up to which a run counts as forecast, beyond its band, or a part of its time as small."""
HISTORY = 14
"""Newest runs that say what a run sends, how fast, and how long it takes beside that."""
DAY_S = 86_400.0
AFTER_DAYS = 28.0
"""Days that are played after the last first copy: four of each weekly time."""
MOST_DAYS = 800.0
"""Most days that are played."""
MOST_STEPS = 200_000
BUDGET_S = 6.0
"""Processor time for one forecast, s."""


@dataclass(frozen=True)
class CopyForecast:
    """Forecast of one copy. Low and high bound 90 % of the outcomes."""

    source: str
    """`simulation`, or `earlier runs`."""
    files: int | None
    bytes: int
    seconds_low: float
    seconds: float
    seconds_high: float
    goodput_bps: float
    """Rate while data is sent: the fixed part is none of its time."""
    explanation: list[str] = field(default_factory=list)
    fixed_s: float = 0.0
    """Part of `seconds` that its data does not change: start, connect, compare, commit."""

    def as_json(self) -> dict[str, Any]:
        """Return it for the store."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> CopyForecast:
        """Return what `as_json` gave. Forecasts of earlier releases have fewer members."""
        return cls(**{name: found[name] for name in cls.__dataclass_fields__ if name in found})


def simulated(job: JobSpec, data: FileSet, rate_bps: int | None) -> CopyForecast | None:
    """Return the forecast of a copy of `data`; None where the file names no path of the job. Raises `ElephanError`."""
    if job.path is None:
        return None
    return _simulated(
        job.path,
        str(job.copy.get("congestion_control") or "cubic"),
        int(job.copy.get("streams") or STREAMS),
        str(job.copy.get("transport") or "tcp"),
        data,
        rate_bps,
    )


@lru_cache(maxsize=256)
def _simulated(
    path: PathSpec, control: str, streams: int, transport: str, data: FileSet, rate_bps: int | None
) -> CopyForecast:
    held = round(path.rate_bps * path.rtt_s / 8)
    facts = PathFacts(
        path.rate_bps,
        path.rtt_s,
        loss=path.loss,
        queue_bytes=path.queue_bytes or held,
        competing_flows=path.competing_flows,
        mtu_bytes=path.mtu_bytes,
    )
    # Each stream alone could fill path and queue: a window is no limit then.
    window = 2 * (held + (path.queue_bytes or held)) + 2 * path.mtu_bytes
    found = forecast(
        facts, Candidate(control, streams, window, transport), data, rate_bps=rate_bps, budget_s=BUDGET_S
    )  # fmt: skip
    return CopyForecast(
        "simulation", data.files, data.bytes, found.seconds_low, found.seconds, found.seconds_high, found.goodput_bps,
        list(found.explanation),
    )  # fmt: skip


def usual_change(runs: Sequence[Mapping[str, Any]]) -> int | None:
    """Return what a run after the first usually sends, bytes; None where there was none."""
    sent = [run["sent_bytes"] for run in runs if run["state"] in COPIED and run["sent_bytes"] is not None]
    # The oldest was the first copy.
    return round(statistics.median(sent[: min(HISTORY, len(sent) - 1)])) if len(sent) > 1 else None


def judged(told: CopyForecast, sent_bytes: int, seconds: float, again: CopyForecast | None) -> dict[str, Any]:
    """Return how a run compares with its forecast; `again` is the forecast of the data that the run sent."""
    fitting = next((one for one in (told, again) if one is not None and _fits(one, seconds)), None)
    if fitting is not None and units.is_useless(fitting.seconds_low, fitting.seconds_high):
        verdict, text = "not judged", "the forecast is too wide"
    elif fitting is told:
        verdict, text = "as forecast", ""
    elif sent_bytes == 0 and told.bytes:
        verdict, text = "less data", f"nothing sent, {units.size(told.bytes)} forecast"
    elif fitting is not None:
        verdict = "more data" if sent_bytes > told.bytes else "less data"
        text = f"{units.size(sent_bytes)} instead of {units.size(told.bytes)}"
    else:
        expected = told if again is None else again
        verdict = "slower" if seconds > expected.seconds else "faster"
        text = _difference(expected, sent_bytes, seconds)
        if again is not None and abs(sent_bytes - told.bytes) > CLOSE * told.bytes:
            text += f"; {units.size(sent_bytes)} instead of {units.size(told.bytes)}"
    return {"verdict": verdict, "text": text, "sent_bytes": sent_bytes, "seconds": seconds}


def _fits(told: CopyForecast, seconds: float) -> bool:
    return told.seconds_low * (1 - CLOSE) <= seconds <= told.seconds_high * (1 + CLOSE)


def _difference(expected: CopyForecast, sent_bytes: int, seconds: float) -> str:
    """Return a run beside its forecast: rates, or times if the fixed part is no small part of them."""
    if expected.fixed_s > CLOSE * min(seconds, expected.seconds):
        return f"{units.duration(seconds)} instead of {units.duration(expected.seconds)}"
    got = 8 * sent_bytes / (seconds - expected.fixed_s) if seconds else None
    return f"{units.rate(got)} instead of {units.rate(expected.goodput_bps)}"


# All jobs together.

Takes = Callable[[JobSpec, bool, int | None], CopyForecast]
"""Forecast of a job's copy, the first or a later one, at most at a rate."""


@dataclass
class Played:
    """A job in virtual time."""

    first_s: float | None = None
    """Time from the start to the end of the first copy; None: it does not end in the time that was played."""
    rpo_s: float | None = None
    """Greatest age of the newest complete copy, once there are two; None: there is no third."""
    first_age_s: float | None = None
    """Age of the first copy's data when the second is complete: a first copy of weeks is old when it is done."""
    runs: int = 0
    missed: int = 0
    """Due times that came while the run before was not done."""


@dataclass
class _Running:
    begun_s: float
    is_first: bool
    left: float = 1.0
    """Share of the copy that is left."""


@dataclass
class _Job:
    spec: JobSpec
    due_s: float | None
    has_copy: bool
    running: _Running | None = None
    began: list[float] = field(default_factory=list)
    played: Played = field(default_factory=Played)


def play(
    spec: Spec,
    takes: Takes,
    start_s: float,
    copied: frozenset[str] = frozenset(),
    high: bool = False,
    zone: tzinfo | None = None,
) -> dict[str, Played]:
    """Play the timetable from `start_s` on; jobs in `copied` have a complete copy already, from that time.

    Copies on one path share its rate. `high`: each takes as long as 95 % of the simulated ones do at most.
    """
    jobs = [
        _Job(job, next_due(job.schedule, None, start_s, zone), job.name in copied, began=[start_s] if job.name in copied
             else [])
        for job in spec.jobs
    ]  # fmt: skip
    jobs = [job for job in jobs if job.due_s is not None]
    now_s, end_s = start_s, start_s + MOST_DAYS * DAY_S
    is_settled = False
    for _ in range(MOST_STEPS):
        for job in jobs:
            _begin(job, now_s, zone)
        _limit(jobs, spec.max_running)
        speeds = _speeds(jobs, takes, now_s, high, zone)
        if not is_settled and all(job.played.first_s is not None or job.has_copy for job in jobs):
            is_settled, end_s = True, min(end_s, now_s + AFTER_DAYS * DAY_S)
        next_s = min([end_s, *_events(jobs, speeds, now_s, zone)])
        for number, speed in speeds.items():
            running = jobs[number].running
            assert running is not None, "it has a speed"
            running.left -= speed * (next_s - now_s)
            # Of rounding.
            if running.left <= 1e-9:
                _end(jobs[number], next_s, start_s, zone)
        if next_s >= end_s:
            break
        now_s = next_s
    return {job.spec.name: job.played for job in jobs}


def _begin(job: _Job, now_s: float, zone: tzinfo | None) -> None:
    if job.running is None and job.due_s is not None and job.due_s <= now_s:
        job.due_s, missed = caught_up(job.spec.schedule, job.due_s, now_s, zone)
        job.played.missed += missed
        # The data is that of the time at which the job may read it.
        begun_s = next_open(job.spec.windows, now_s, zone)
        job.running = _Running(begun_s, not job.has_copy)


def _limit(jobs: Sequence[_Job], most: int | None) -> None:
    """Have those wait that began last, where more run than may."""
    running = [(job.running.begun_s, number) for number, job in enumerate(jobs) if job.running is not None]
    for _, number in sorted(running)[most:] if most is not None else []:
        now = jobs[number].running
        if now is not None and now.left == 1.0:
            jobs[number].running = None


def _speeds(jobs: Sequence[_Job], takes: Takes, now_s: float, high: bool, zone: tzinfo | None) -> dict[int, float]:
    """Return the share of its copy that each job does in a second, by number."""
    found: dict[int, tuple[float, float]] = {}
    use: dict[str | None, float] = {}
    for number, job in enumerate(jobs):
        window = None if job.running is None else open_until(job.spec.windows, now_s, zone)
        if job.running is None or window is None:
            continue
        told = takes(job.spec, job.running.is_first, least_rate(job.spec.rate_bps, window[1]))
        seconds = max(told.seconds_high if high else told.seconds, 1e-3)
        share = 1.0 if job.spec.path is None else min(1.0, told.goodput_bps / job.spec.path.rate_bps)
        name = None if job.spec.path is None else job.spec.path.name
        use[name] = use.get(name, 0.0) + share
        found[number] = (1 / seconds, share)
    names = {number: None if (path := jobs[number].spec.path) is None else path.name for number in found}
    return {number: speed / max(1.0, use[names[number]]) for number, (speed, _) in found.items()}


def _events(jobs: Sequence[_Job], speeds: Mapping[int, float], now_s: float, zone: tzinfo | None) -> list[float]:
    """Return the times at which something changes next."""
    found = []
    for number, job in enumerate(jobs):
        if job.running is None:
            if job.due_s is not None and job.due_s > now_s:
                found.append(job.due_s)
        elif number in speeds:
            found.append(now_s + job.running.left / speeds[number])
            until = open_until(job.spec.windows, now_s, zone)
            if until is not None and not math.isinf(until[0]):
                found.append(until[0])
        else:
            found.append(next_open(job.spec.windows, now_s, zone))
    # At least a millisecond on, or rounding could hold it.
    return [max(one, now_s + 1e-3) for one in found]


def _end(job: _Job, now_s: float, start_s: float, zone: tzinfo | None) -> None:
    running = job.running
    assert running is not None and job.due_s is not None, "it ends"
    if job.began:
        age_s = now_s - job.began[-1]
        if job.played.first_s is not None and len(job.began) == 1:
            job.played.first_age_s = age_s
        else:
            job.played.rpo_s = max(job.played.rpo_s or 0.0, age_s)
    if not job.has_copy:
        job.played.first_s = now_s - start_s
    job.began.append(running.begun_s)
    job.has_copy, job.running = True, None
    job.played.runs += 1
    job.due_s = next_due(job.spec.schedule, job.due_s, start_s, zone)


def rto_text(restore: CopyForecast | None) -> str:
    """Return the time of a restore with its band."""
    return units.NOTHING if restore is None else band_text(restore)


def band_text(told: CopyForecast) -> str:
    """Return a time with its band."""
    low, middle, high = told.seconds_low, told.seconds, told.seconds_high
    if len({units.duration(one) for one in (low, middle, high)}) == 1:
        return units.duration(middle)
    wide = ", too wide to plan by" if units.is_useless(low, high) else ""
    return f"{units.duration(middle)} ({units.duration_range(low, high)}{wide})"
