"""Due times and windows of a job, in local time. Without a clock: each call is told the time, Unix s."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo

from elephan.backup.spec import Schedule, Window

SEARCH_DAYS = 9
"""Days that are looked through for the next time of a weekly schedule: a week, and one more at either end."""


def _local(at_s: float, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(at_s, zone).replace(tzinfo=None)


def _unix(local: datetime, zone: tzinfo | None) -> float:
    """Return the time of a local date; of two in autumn the first, and in spring's gap one hour later."""
    return local.replace(tzinfo=zone).timestamp() if zone is not None else local.timestamp()


def _days_from(at_s: float, zone: tzinfo | None, before: int = 1) -> Iterator[datetime]:
    day = _local(at_s, zone).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=before)
    for _ in range(SEARCH_DAYS + before):
        yield day
        day += timedelta(days=1)


def next_due(schedule: Schedule, last_due_s: float | None, since_s: float, zone: tzinfo | None = None) -> float | None:
    """Return when a job is due next; None: never by itself.

    `last_due_s` is the due time of its newest run. A job that never ran is due at once with `every_s`, and with
    `at_min` at the first such time after `since_s`, when it was first seen.
    """
    if schedule.every_s is not None:
        return since_s if last_due_s is None else last_due_s + schedule.every_s
    if not schedule.at_min:
        return None
    after_s = since_s if last_due_s is None else last_due_s
    for day in _days_from(after_s, zone):
        if day.weekday() not in schedule.days:
            continue
        for minute in schedule.at_min:
            at_s = _unix(day + timedelta(minutes=minute), zone)
            if at_s > after_s:
                return at_s
    return None


def caught_up(schedule: Schedule, due_s: float, now_s: float, zone: tzinfo | None = None) -> tuple[float, int]:
    """Return the newest due time up to now, and how many before it were missed: one run makes up for all of them."""
    missed = 0
    if schedule.every_s is not None:
        missed = max(0, math.floor((now_s - due_s) / schedule.every_s))
        return due_s + missed * schedule.every_s, missed
    while (after_s := next_due(schedule, due_s, due_s, zone)) is not None and after_s <= now_s:
        due_s = after_s
        missed += 1
    return due_s, missed


def _spans(windows: tuple[Window, ...], at_s: float, zone: tzinfo | None) -> list[tuple[float, float, int | None]]:
    """Return begin, end and rate of the windows around a time and in the week after it."""
    found = []
    for day in _days_from(at_s, zone):
        for one in windows:
            if day.weekday() in one.days:
                length_min = (one.end_min - one.begin_min) % (24 * 60) or 24 * 60
                begin = day + timedelta(minutes=one.begin_min)
                end = begin + timedelta(minutes=length_min)
                found.append((_unix(begin, zone), _unix(end, zone), one.rate_bps))
    return found


def least_rate(*rates: int | None) -> int | None:
    """Return the lowest of some limits, None where there is none."""
    return min((rate for rate in rates if rate is not None), default=None)


def open_until(
    windows: tuple[Window, ...], now_s: float, zone: tzinfo | None = None
) -> tuple[float, int | None] | None:
    """Return until when a job may send at one rate, and that rate (None: no limit); None: it may not send now.

    Of windows that overlap the highest rate holds. Without windows it may send for ever.
    """
    if not windows:
        return math.inf, None
    spans = _spans(windows, now_s, zone)
    now = [(end, rate) for begin, end, rate in spans if begin <= now_s < end]
    if not now:
        return None
    rate = _highest([one for _, one in now])
    # One that follows without a gap and at the same rate is the same window.
    until_s = now_s
    while True:
        here = [(end, one) for begin, end, one in spans if begin <= until_s < end]
        if not here or _highest([one for _, one in here]) != rate:
            return until_s, rate
        starts = [begin for begin, _, _ in spans if begin > until_s]
        step_s = min([end for end, _ in here] + starts)
        if step_s - now_s > 7 * 86_400:
            return step_s, rate
        until_s = step_s


def _highest(rates: list[int | None]) -> int | None:
    known = [rate for rate in rates if rate is not None]
    return None if len(known) < len(rates) else max(known)


def next_open(windows: tuple[Window, ...], now_s: float, zone: tzinfo | None = None) -> float:
    """Return when a job may send next: now, or at the begin of a window."""
    if open_until(windows, now_s, zone) is not None:
        return now_s
    return min(begin for begin, _, _ in _spans(windows, now_s, zone) if begin > now_s)
