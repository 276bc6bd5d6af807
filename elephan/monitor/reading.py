"""Reader of what a monitor has stored, for commands and the web page: read only, also while the monitor runs.

Raw samples lie on the machine of the monitor. Elsewhere there are the summaries of the database alone.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from elephan.monitor import journal
from elephan.monitor.tables import SECONDS, path_folder
from elephan.store.reader import StoreReader

if TYPE_CHECKING:
    import numpy as np

    from elephan.monitor.raw import Day

State = Literal["good", "alert", "silent", "paused"]
STAMP_QUANTITIES = ("rtt_s", "forward_delay_s", "reverse_delay_s", "jitter_s", "loss", "ttl")
"""Quantities of each sample; all others come from outcomes of path tests."""
TESTS = ("capacity", "available", "queue", "policer", "loss", "hops", "mtu", "throughput")
"""Path tests whose outcomes are stored one by one."""
UNITS = {"_s": "s", "_bps": "bit/s", "_bytes": "B"}
RAW_SPAN_S = 2 * 86_400
"""Longest span that is drawn from raw samples, s."""
SILENT_S = 180.0
"""Age of the newest sample beyond which a path counts as silent, s, where its period is not longer than a minute."""
HELD_S = 1.0
"""Time for which the raw samples of a window are held, s: others come."""
OUTCOME_SPAN_S = 14 * 86_400
"""Longest span whose outcomes are drawn one by one, s."""
LEARNED_DAYS = 28
"""Days from which a benchmark is made where the detector has left none."""


@dataclass(frozen=True)
class PathState:
    """A path and how it is now."""

    id: int
    monitor: str
    name: str
    towards: str
    state: State
    """`silent`: no answer, or no monitor that asks; `paused`: its monitor has ended in order."""
    last_sample_s: float | None
    """Unix s."""
    latest: dict[str, float]
    """Newest value by quantity."""
    alerts_open: int
    settings: dict[str, Any]
    """The path's table of the monitor's file."""
    is_watched: bool = True
    """False once its monitor has ended, or has stored no sample for a long time."""


@dataclass(frozen=True)
class Series:
    """A quantity over time. `low` and `high` are the 5th and 95th percentile of the samples of a point, `mid` the
    median."""

    times: list[float]
    """Unix s, the start of each point's interval."""
    low: list[float | None]
    mid: list[float | None]
    high: list[float | None]
    count: list[int]
    """Samples that arrived."""
    lost: list[int]
    unit: str
    """`s`, `bit/s`, `B`, or empty for a share or a number."""
    resolution_s: float
    """Length of a point's interval; 0: single samples."""


@dataclass(frozen=True)
class Band:
    """Usual values of a path, over time."""

    times: list[float]
    low: list[float]
    mid: list[float]
    high: list[float]


@dataclass(frozen=True)
class AlertView:
    """An alert; times are Unix s."""

    id: int
    path: str
    quantity: str
    kind: str
    since_s: float
    found_s: float
    ended_s: float | None
    text: str
    cause: str | None
    evidence: dict[str, Any]
    forecast: list[dict[str, Any]]
    """One for each transfer: `scenario`, `before_s`, `after_s`, `text`."""
    path_id: int = 0


@dataclass(frozen=True)
class OutcomeView:
    """The outcome of one path test."""

    test: str
    at_s: float
    outcome: dict[str, Any]


@dataclass
class _Points:
    """Points while they are put together."""

    rows: list[tuple[float, float | None, float | None, float | None, int, int]] = field(default_factory=list)

    def series(self, unit: str, resolution_s: float) -> Series:
        columns: Any = [list(column) for column in zip(*self.rows, strict=True)] or [[] for _ in range(6)]
        times, low, mid, high, count, lost = columns
        return Series(times, low, mid, high, count, lost, unit, resolution_s)


def unit_of(quantity: str) -> str:
    """Return the unit of a quantity by the end of its name."""
    return next((unit for ending, unit in UNITS.items() if quantity.endswith(ending)), "")


class MonitorReader(StoreReader):
    """Reads what monitors have stored. Raises `StoreError` where the store cannot be read."""

    def __init__(self, place: str | None = None) -> None:
        """See `StoreReader`."""
        super().__init__(place)
        self._held: tuple[tuple[int, float, float], Day, float] | None = None
        """The raw samples that were read last, a few MB at most."""

    def close(self) -> None:
        """Close the database."""
        super().close()
        self._held = None

    def _rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        with self._reading() as execute:
            return [] if execute is None else execute(sql, values)

    def folder(self, path_id: int) -> Path:
        """Return the folder of a path's raw samples."""
        return path_folder(self.place, path_id)

    def paths(self, now_s: float | None = None) -> list[PathState]:
        """Return all paths of all monitors, by monitor and name."""
        now = time.time() if now_s is None else now_s
        found = self._rows("select id, monitor, name, settings, state from monitor_path order by monitor, name")
        open_alerts: dict[int, list[str]] = {}
        for path_id, kind in self._rows("select path_id, kind from monitor_alert where ended is null"):
            open_alerts.setdefault(path_id, []).append(kind)
        return [self._path(row, open_alerts.get(row[0], []), now) for row in found]

    def _path(self, row: tuple[Any, ...], alerts: Sequence[str], now: float) -> PathState:
        path_id, monitor, name, text, state = row
        settings = json.loads(text)
        last_s, latest = self._latest(path_id, now)
        old_s = max(SILENT_S, 10 * float(settings.get("stamp_period_s") or 0))
        is_old = bool(settings.get("stamp_period_s")) and (last_s is None or now - last_s > old_s)
        now_is: State = "good"
        if state == "paused":
            now_is = "paused"
        elif "silent" in alerts or is_old:
            now_is = "silent"
        elif alerts:
            now_is = "alert"
        towards = str(settings.get("towards") or settings.get("host") or "")
        is_watched = state != "paused" and not is_old
        return PathState(path_id, monitor, name, towards, now_is, last_s, latest, len(alerts), settings, is_watched)

    def _latest(self, path_id: int, now: float) -> tuple[float | None, dict[str, float]]:
        """Return the time of the newest sample and the newest values."""
        latest: dict[str, float] = {}
        last_s = None
        # One by one: each is a step in an index, while a `group by` would read a month's rows.
        for quantity in ("rtt_s", "forward_delay_s", "reverse_delay_s", "jitter_s"):
            for start, middle, count, lost in self._rows(
                "select start, p50, count, lost from monitor_summary where path_id = :id and seconds = 60 "
                "and quantity = :quantity order by start desc limit 1",
                id=path_id, quantity=quantity,
            ):  # fmt: skip
                if middle is not None:
                    latest[quantity] = middle
                if quantity == "rtt_s":
                    last_s = float(start) + 60 if count else None
                    latest["loss"] = lost / max(1, count + lost)
        newest = self._newest_sample(path_id, now)
        if newest is not None:
            last_s = max(newest.sent_ns / 1e9, last_s or 0.0)
            if not newest.is_lost:
                latest["rtt_s"] = newest.rtt_ns / 1e9
            if newest.ttl:
                latest["ttl"] = float(newest.ttl)
        for test in TESTS:
            for (outcome,) in self._rows(
                "select outcome from monitor_outcome where path_id = :id and test = :test order by at desc limit 1",
                id=path_id, test=test,
            ):  # fmt: skip
                for one in json.loads(outcome)["estimates"]:
                    if one["quantity"] not in STAMP_QUANTITIES:
                        latest[one["quantity"]] = one["value"]
                    else:
                        # The on-going test's are of more packets.
                        latest.setdefault(one["quantity"], one["value"])
        return last_s, latest

    def _newest_sample(self, path_id: int, now: float) -> journal.Sample | None:
        folder = self.folder(path_id)
        for at in (now, now - journal.DAY_S):
            found = journal.last(journal.journal_path(folder, journal.day_of(at)))
            if found is not None:
                return found
        return None

    def series(self, path_id: int, quantity: str, start_s: float, end_s: float, max_points: int = 2000) -> Series:
        """Return a quantity over `[start_s, end_s)` in at most about `max_points`: raw samples up to two days,
        summaries beyond, whichever is there."""
        max_points = max(1, max_points)
        if quantity not in STAMP_QUANTITIES:
            return self._estimates(path_id, quantity, start_s, end_s, max_points)
        if end_s - start_s <= RAW_SPAN_S or quantity == "ttl":
            day = self.raw(path_id, start_s, end_s)
            if len(day.time_s):
                return self._of_raw(day, quantity, start_s, end_s, max_points)
        return self._of_summaries(path_id, quantity, start_s, end_s, max_points)

    def first_s(self, path_id: int, now_s: float, within_s: float) -> float | None:
        """Return the time of a path's oldest data, Unix s, if it is not older than `within_s`; else, or without data,
        None.
        """
        oldest: list[float | None] = []
        for seconds in (SECONDS[1], SECONDS[0]):
            (row,) = self._rows(
                "select min(start) from monitor_summary where path_id = :id and quantity = 'rtt_s' "
                "and seconds = :seconds",
                id=path_id, seconds=seconds,
            )  # fmt: skip
            oldest.append(row[0])
            # An interval begins before its first sample.
            if row[0] is not None and row[0] < now_s - within_s - seconds:
                return None
        (row,) = self._rows("select min(at) from monitor_outcome where path_id = :id", id=path_id)
        found = [float(one) for one in (oldest[1], row[0]) if one is not None]
        raw = self.raw(path_id, now_s - within_s, now_s).time_s
        found += [float(raw[0])] if len(raw) else []
        first_s = min(found, default=None)
        return None if first_s is None or first_s < now_s - within_s else float(first_s)

    def raw(self, path_id: int, start_s: float, end_s: float) -> Day:
        """Return the raw samples of `[start_s, end_s)` that are on this machine."""
        from elephan.monitor import raw

        asked, held = (path_id, start_s, end_s), self._held
        # A page asks for all quantities of one window at once.
        if held is not None and held[0] == asked and time.monotonic() < held[2]:
            return held[1]
        folder = self.folder(path_id)
        # One sample before: jitter is a difference.
        first = int(start_s // journal.DAY_S)
        days = []
        for number in range(first, int(-(-end_s // journal.DAY_S))):
            day = journal.day_of(number * journal.DAY_S)
            stored = raw.parquet_path(folder, day)
            if stored.exists():
                days.append(raw.read(stored))
            else:
                days.append(raw.of_journal(journal.journal_path(folder, day)))
        found = raw.Day.joined([one.between(start_s, end_s) for one in days]) if days else raw.Day.nothing()
        self._held = (asked, found, time.monotonic() + HELD_S)
        return found

    def _of_raw(self, day: Day, quantity: str, start_s: float, end_s: float, max_points: int) -> Series:
        import numpy as np

        values = day.values(quantity)
        gone = np.isnan(day.rtt_s)
        points = _Points()
        if len(values) <= max_points:
            for at, value, lost in zip(day.time_s.tolist(), values.tolist(), gone.tolist(), strict=True):
                seen = None if value != value else value
                points.rows.append((at, seen, seen, seen, int(not lost), int(lost)))
            return points.series(unit_of(quantity), 0.0)
        width = (end_s - start_s) / max_points
        bins = np.floor((day.time_s - start_s) / width).astype(np.int64)
        low, mid, high = _percentiles(values, bins, max_points, quantity == "loss")
        lost_in = np.bincount(bins, weights=gone, minlength=max_points)
        all_in = np.bincount(bins, minlength=max_points)
        for number in np.flatnonzero(all_in):
            lost = int(lost_in[number])
            triple = (_value(low[number]), _value(mid[number]), _value(high[number]))
            points.rows.append((start_s + float(number) * width, *triple, int(all_in[number]) - lost, lost))
        return points.series(unit_of(quantity), width)

    def _of_summaries(self, path_id: int, quantity: str, start_s: float, end_s: float, max_points: int) -> Series:
        stored = "rtt_s" if quantity == "loss" else quantity
        wanted_s = (end_s - start_s) / max_points
        # The shortest that gives at most eight rows for a point: they are merged then.
        level = next((one for one in SECONDS if wanted_s <= 8 * one), SECONDS[-1])
        rows: list[tuple[Any, ...]] = []
        until = end_s
        resolution = float(level)
        for seconds in SECONDS[SECONDS.index(level) :]:
            # Shorter ones may be kept for a shorter time: what is older comes from longer ones.
            found = self._rows(
                "select start, p05, p50, p95, count, lost from monitor_summary where path_id = :id and "
                "quantity = :quantity and seconds = :seconds and start >= :start and start + :seconds <= :until "
                "order by start",
                id=path_id, quantity=stored, seconds=seconds, start=int(start_s // seconds * seconds),
                until=int(until if rows else until + seconds),
            )  # fmt: skip
            rows = found + rows
            if not rows:
                resolution = float(SECONDS[min(SECONDS.index(seconds) + 1, len(SECONDS) - 1)])
                continue
            until = rows[0][0]
            if until <= start_s + 2 * seconds:
                break
        if quantity == "loss":
            rows = [(at, *3 * (lost / max(1, count + lost),), count, lost) for at, _, _, _, count, lost in rows]
        points = _Points(_merged(rows, start_s, max(wanted_s, resolution)))
        return points.series(unit_of(quantity), max(wanted_s, resolution))

    def _estimates(self, path_id: int, quantity: str, start_s: float, end_s: float, max_points: int) -> Series:
        """Return a quantity of outcomes: one by one, or their summaries by the hour and the day."""
        if end_s - start_s > OUTCOME_SPAN_S:
            found = self._of_summaries(path_id, quantity, start_s, end_s, min(max_points, int(end_s - start_s) // 3600))
            if found.times:
                return found
        points = _Points()
        pattern = f'%"quantity": "{quantity}"%'
        for at, text in self._rows(
            "select at, outcome from monitor_outcome where path_id = :id and at >= :start and at < :end "
            "and (outcome like :pattern or outcome like :dense) order by at",
            id=path_id, start=start_s, end=end_s, pattern=pattern, dense=pattern.replace(": ", ":"),
        ):  # fmt: skip
            for one in json.loads(text)["estimates"]:
                if one["quantity"] == quantity:
                    points.rows.append((at, one["low"], one["value"], one["high"], 1, 0))
        if len(points.rows) > max_points:
            points.rows = _merged(points.rows, start_s, (end_s - start_s) / max_points)
        return points.series(unit_of(quantity), 0.0)

    def benchmark(
        self, path_id: int, quantity: str, start_s: float, end_s: float, max_points: int = 500
    ) -> Band | None:
        """Return what is usual: the detector's own benchmark, else the hours of the day over the last four weeks.
        None while too little is known."""
        count = max(2, min(max_points, int((end_s - start_s) / 60) + 1))
        times = [start_s + (end_s - start_s) * number / (count - 1) for number in range(count)]
        found = self._of_detector(path_id, quantity, times)
        return self._learned(path_id, quantity, times) if found is None else found

    def _of_detector(self, path_id: int, quantity: str, times: Sequence[float]) -> Band | None:
        from elephan.core import native

        try:
            state = json.loads((self.folder(path_id) / "state.json").read_text())["detectors"][quantity]
            detector = native.ChangeDetector(state["config"], state["state"])
            found = [detector.benchmark(at) for at in times]
        except (OSError, ValueError, KeyError, AttributeError):
            return None
        bands = [one for one in found if one is not None]
        if len(bands) < len(times):
            return None
        low, mid, high = (list(column) for column in zip(*bands, strict=True))
        # A side on which nothing would be wrong is infinite.
        low = [one if math.isfinite(one) else middle for one, middle in zip(low, mid, strict=True)]
        high = [one if math.isfinite(one) else middle for one, middle in zip(high, mid, strict=True)]
        return Band(list(times), low, mid, high)

    def _learned(self, path_id: int, quantity: str, times: Sequence[float]) -> Band | None:
        import numpy as np

        stored = "rtt_s" if quantity == "loss" else quantity
        rows = self._rows(
            "select start, p05, p50, p95, count, lost from monitor_summary where path_id = :id and "
            "quantity = :quantity and seconds = 3600 and start >= :start and start < :end",
            id=path_id, quantity=stored, start=int(times[-1]) - LEARNED_DAYS * 86_400, end=int(times[-1]),
        )  # fmt: skip
        if quantity == "loss":
            rows = [(at, *3 * (lost / max(1, count + lost),), count, lost) for at, _, _, _, count, lost in rows]
        table = np.array([row[:4] for row in rows if row[2] is not None], dtype=np.float64)
        # A week of hours: less shows no day's pattern.
        if len(table) < 7 * 24:
            return None
        hours = (table[:, 0] // 3600 % 24).astype(int)
        middle = [np.median(table[hours == hour], axis=0) if (hours == hour).any() else None for hour in range(24)]
        if any(one is None for one in middle):
            return None
        picked = [middle[int(at // 3600 % 24)] for at in times]
        return Band(list(times), *([float(one[part]) for one in picked] for part in (1, 2, 3)))  # type: ignore[index]

    def outcomes(
        self, path_id: int, test: str | None, start_s: float, end_s: float, limit: int = 1000
    ) -> list[OutcomeView]:
        """Return outcomes of a path test (None: of all) in `[start_s, end_s)`, newest first."""
        which = "" if test is None else "and test = :test "
        rows = self._rows(
            f"select test, at, outcome from monitor_outcome where path_id = :id {which}and at >= :start and at < :end "
            f"order by at desc limit {int(limit)}",
            id=path_id, start=start_s, end=end_s, **({} if test is None else {"test": test}),
        )  # fmt: skip
        return [OutcomeView(test, at, json.loads(text)) for test, at, text in rows]

    def alerts(
        self,
        path_id: int | None = None,
        start_s: float | None = None,
        end_s: float | None = None,
        open_only: bool = False,
        limit: int = 500,
    ) -> list[AlertView]:
        """Return alerts that lasted in `[start_s, end_s)`, newest first."""
        conditions, values = ["p.id = a.path_id"], dict[str, Any]()
        if path_id is not None:
            conditions.append("a.path_id = :id")
            values["id"] = path_id
        if start_s is not None:
            conditions.append("(a.ended is null or a.ended >= :start)")
            values["start"] = start_s
        if end_s is not None:
            conditions.append("a.since < :end")
            values["end"] = end_s
        if open_only:
            conditions.append("a.ended is null")
        rows = self._rows(
            "select a.id, p.name, a.quantity, a.kind, a.since, a.found, a.ended, a.text, a.cause, a.evidence, "
            f"a.forecast, p.id from monitor_alert a, monitor_path p where {' and '.join(conditions)} "
            f"order by a.found desc, a.id limit {int(limit)}",
            **values,
        )
        return [_alert(row) for row in rows]

    def changes_since(self, marker: int) -> tuple[int, list[str]]:
        """Return a new marker, and the ids of paths with news since the old one; 0 is before everything.

        One query and a look at the files' times: cheap enough for every second.
        """
        newest, news = marker, []
        today = journal.day_of(time.time())
        for path_id, changed in self._rows("select id, changed from monitor_path"):
            try:
                written = journal.journal_path(self.folder(path_id), today).stat().st_mtime_ns
            except OSError:
                written = 0
            last = max(changed, written)
            if last > marker:
                news.append(str(path_id))
            newest = max(newest, last)
        return newest, news


def _alert(row: tuple[Any, ...]) -> AlertView:
    *plain, evidence, forecast, path_id = row
    identity, path, quantity, kind, since, found, ended, text, cause = plain
    return AlertView(
        identity, path, quantity, kind, since, found, ended, text, cause, json.loads(evidence), json.loads(forecast),
        path_id,
    )  # fmt: skip


def _value(number: Any) -> float | None:
    return None if number != number else float(number)


def _percentiles(
    values: np.ndarray, bins: np.ndarray, count: int, is_share: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the 5th, 50th and 95th percentile of each bin by nearest rank, NaN where there is none; means of a
    share."""
    import numpy as np

    known = ~np.isnan(values)
    values, bins = values[known], bins[known]
    found = tuple(np.full(count, np.nan) for _ in range(3))
    number = np.bincount(bins, minlength=count)
    filled = np.flatnonzero(number)
    if is_share:
        means = np.bincount(bins, weights=values, minlength=count)[filled] / number[filled]
        for one in found:
            one[filled] = means
        return found  # type: ignore[return-value]
    values = values[np.lexsort((values, bins))]
    first = (np.cumsum(number) - number)[filled]
    for one, part in zip(found, (0.05, 0.5, 0.95), strict=True):
        rank = np.maximum(np.ceil(part * number[filled]).astype(np.int64) - 1, 0)
        one[filled] = values[first + rank]
    return found  # type: ignore[return-value]


def _merged(
    rows: Sequence[tuple[Any, ...]], start_s: float, width_s: float
) -> list[tuple[float, float | None, float | None, float | None, int, int]]:
    """Merge points that fall into one interval: least low, mean of the middles, greatest high."""
    merged: list[tuple[float, float | None, float | None, float | None, int, int]] = []
    group: list[tuple[Any, ...]] = []
    place = None
    for row in [*rows, None]:
        here = None if row is None else int((row[0] - start_s) // width_s)
        if group and here != place:
            merged.append(_one_of(group))
            group = []
        if row is not None:
            group.append(row)
        place = here
    return merged


def _one_of(group: Sequence[tuple[Any, ...]]) -> tuple[float, float | None, float | None, float | None, int, int]:
    seen = [row for row in group if row[2] is not None]
    count, lost = sum(row[4] for row in group), sum(row[5] for row in group)
    if not seen:
        return float(group[0][0]), None, None, None, count, lost
    weights = [max(1, row[4]) for row in seen]
    middle = sum(row[2] * weight for row, weight in zip(seen, weights, strict=True)) / sum(weights)
    low, high = min(row[1] for row in seen), max(row[3] for row in seen)
    return float(group[0][0]), low, middle, high, count, lost
