"""A store filled with a monitor's year that never was: for tests of what draws it, and to measure size and speed.

Delays have a daily pattern, noise with a tail, losses in runs; some paths change route, fill a queue or fall silent for
a while. All of it follows from the seed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from elephan import units
from elephan.monitor import journal, raw
from elephan.monitor.summaries import row
from elephan.monitor.tables import insert, path_folder, path_id, put
from elephan.store.sql import id_of

DAY = journal.DAY_S
CITIES = (
    ("vienna", 8), ("geneva", 14), ("frankfurt", 11), ("london", 24), ("lisbon", 41), ("newyork", 84),
    ("chicago", 102), ("seattle", 151), ("tokyo", 228), ("sydney", 284),
)  # fmt: skip
"""Names and RTTs in ms."""
MINUTES_DAYS = 30
"""Days for which summaries of minutes are kept: the default of `retention.minutes`."""


@dataclass(frozen=True)
class _Event:
    """A change of a path."""

    kind: str
    cause: str
    start_s: float
    end_s: float | None
    rtt_factor: float = 1.0
    loss: float = 0.0
    available_factor: float = 1.0


@dataclass(frozen=True)
class _Path:
    id: int
    name: str
    rtt_s: float
    line_bps: float
    loss: float
    noise_s: float
    events: tuple[_Event, ...]


def fill(
    place: str,
    paths: int = 10,
    days: int = 365,
    seed: int = 1,
    end_s: float | None = None,
    raw_days: int | None = None,
    period_s: float = 1.0,
    monitor: str = "synthetic",
) -> list[int]:
    """Fill the store at `place`; return the ids of the paths.

    The last day ends at `end_s` (default: now) and is a journal; the `raw_days` before it (None: all) are Parquet
    files. A path and a day of raw samples take about 50 ms; without them a path's year takes about 1 s.
    """
    from elephan.store.database import Store

    end = time.time() if end_s is None else end_s
    with Store(place) as store:
        made = [_path(monitor, number, days, end, seed) for number in range(paths)]
        with store._database.transaction(writing=True) as execute:
            put(execute, "monitor_path", [_path_row(one, monitor, end, days) for one in made])
        for one in made:
            rows: dict[str, list[dict[str, Any]]] = {"monitor_summary": [], "monitor_outcome": [], "monitor_alert": []}
            folder = path_folder(store.place, one.id)
            folder.mkdir(parents=True, exist_ok=True)
            today = int(end // DAY)
            for number in range(today - days + 1, today + 1):
                start, stop = number * DAY, min(end, (number + 1) * DAY)
                age = today - number
                if raw_days is None or age <= raw_days:
                    samples = _samples(one, start, stop, period_s, seed)
                    if age == 0:
                        _write_journal(samples, journal.journal_path(folder, journal.day_of(start)))
                    else:
                        raw.write(samples, raw.parquet_path(folder, journal.day_of(start)))
                    lengths = (60, 3600, DAY) if age < MINUTES_DAYS else (3600, DAY)
                    for seconds in lengths:
                        rows["monitor_summary"] += raw.summaries(samples, one.id, seconds)
                else:
                    rows["monitor_summary"] += _hours(one, start, seed)
            for test, quantity, rows_of in _outcomes(one, end - days * DAY, end, seed):
                rows["monitor_outcome"] += [{**row_of, "test": test} for row_of in rows_of]
                rows["monitor_summary"] += _of_outcomes(one, quantity, rows_of)
            rows["monitor_alert"] += [_alert_row(one, event) for event in one.events]
            with store._database.transaction(writing=True) as execute:
                for table, several in rows.items():
                    execute(f"delete from {table} where path_id = :id", {"id": one.id})
                    if several:
                        insert(execute, table, several)
    return [one.id for one in made]


def _path(monitor: str, number: int, days: int, end: float, seed: int) -> _Path:
    random = np.random.default_rng([seed, number, 0])
    city, rtt_ms = CITIES[number % len(CITIES)]
    name = city if number < len(CITIES) else f"{city}-{number // len(CITIES) + 1}"
    events: list[_Event] = []
    span = days * DAY
    for _ in range(int(random.poisson(max(0.3, days / 60)))):
        start = end - span * random.uniform(0.02, 0.98)
        length = random.uniform(1800, 2 * DAY)
        which = random.integers(3)
        stop = min(start + length, end - 60)
        if which == 0:
            events.append(_Event("step", "route", start, stop, rtt_factor=random.uniform(1.2, 1.8)))
        elif which == 1:
            events.append(_Event("step", "queue", start, stop, 1.25, 0.0, random.uniform(0.2, 0.6)))
        else:
            events.append(_Event("step", "loss", start, stop, 1.0, 10 ** random.uniform(-2.5, -1.3)))
    # One that is still open, on two paths: something to look at.
    if number == 1:
        events.append(_Event("step", "route", end - 5400.0, None, rtt_factor=1.42))
    if number == 3:
        events.append(_Event("step", "queue", end - 2400.0, None, 1.3, 0.002, 0.3))
    line = float(random.choice([1e9, 2.5e9, 10e9]))
    loss = float(10 ** random.uniform(-5.5, -4))
    noise = float(random.uniform(10e-6, 80e-6))
    return _Path(path_id(monitor, name), name, rtt_ms / 1e3, line, loss, noise, tuple(events))


def _path_row(one: _Path, monitor: str, end: float, days: int) -> dict[str, Any]:
    settings = {
        "towards": f"198.51.100.{one.id % 250 + 1}:862",
        "line_rate_bps": one.line_bps,
        "stamp_period_s": 1.0,
        "tests": [{"test": "stamp", "period_s": 1.0}, {"test": "available", "period_s": 900.0}],
        "benchmark": {"rtt_s": one.rtt_s, "loss": one.loss},
    }
    created = datetime.fromtimestamp(end - days * DAY, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = json.dumps(settings)
    return {
        "id": one.id, "monitor": monitor, "name": one.name, "settings": text, "created": created, "state": "running",
        "changed": int(end * 1e9),
    }  # fmt: skip


def _load(times: np.ndarray, number: int) -> np.ndarray:
    """Return the daily and weekly pattern of the load, 0 to 1."""
    hour = times / 3600 % 24
    weekend = np.isin((times // DAY + 4) % 7, (0, 6))
    busy = 0.5 - 0.5 * np.cos((hour - 3 - number % 5) / 24 * 2 * np.pi)
    return np.asarray(busy**2 * np.where(weekend, 0.5, 1.0))


def _samples(one: _Path, start: float, stop: float, period_s: float, seed: int) -> raw.Day:
    random = np.random.default_rng([seed, one.id, int(start // DAY)])
    count = int((stop - start) / period_s)
    # Sent a moment late, as a timer does.
    times = start + np.arange(count) * period_s + random.exponential(80e-6, count)
    load = _load(times, one.id)
    one_way = one.rtt_s / 2 + load * one.noise_s * 10
    forward = one_way + random.exponential(one.noise_s, count) * (0.5 + load)
    reverse = one_way + random.exponential(one.noise_s, count) * (0.5 + load)
    loss = np.full(count, one.loss)
    ttl = np.full(count, 54, dtype=np.uint8)
    for event in one.events:
        inside = (times >= event.start_s) & (times < (event.end_s or stop + 1))
        forward[inside] += one.rtt_s * (event.rtt_factor - 1)
        loss[inside] += event.loss
        ttl[inside] -= 2 if event.cause == "route" else 0
    rtt = forward + reverse
    # Losses come in runs of three on the average.
    begins = random.random(count) < loss / 3
    gone = np.convolve(begins, np.ones(3))[:count] > 0
    # The reflector's clock wanders by some tens of µs.
    forward = forward + 20e-6 * np.sin(times / 7200)
    return raw.Day(times, np.where(gone, np.nan, rtt), np.where(gone, np.nan, forward), ttl, np.zeros(count, np.uint8))


def _write_journal(day: raw.Day, path: Any) -> None:
    samples = [
        journal.Sample(
            int(at * 1e9),
            journal.LOST if rtt != rtt else int(rtt * 1e9),
            journal.UNKNOWN if forward != forward else int(forward * 1e9),
            int(ttl),
        )
        for at, rtt, forward, ttl in zip(
            day.time_s.tolist(), day.rtt_s.tolist(), day.forward_s.tolist(), day.ttl.tolist(), strict=True
        )
    ]
    path.write_bytes(journal.encode(samples))


def _hours(one: _Path, start: float, seed: int) -> Iterator[dict[str, Any]]:
    """Yield a day's summaries without its samples: of 60 for each hour, so that a year is quickly there."""
    samples = _samples(one, start, start + DAY, 60.0, seed)
    for seconds in (3600, DAY):
        for found in raw.summaries(samples, one.id, seconds):
            # A sample of a minute stands for sixty.
            minute = {key: 60 * int(found[key]) for key in ("count", "lost")}  # type: ignore[call-overload]
            yield {**found, **minute}


def _outcomes(one: _Path, start: float, end: float, seed: int) -> Iterator[tuple[str, str, Sequence[dict[str, Any]]]]:
    """Yield tests, their quantity and rows of `monitor_outcome` without the test's name."""
    random = np.random.default_rng([seed, one.id, 1])
    for test, quantity, period_s, of_line in (
        ("available", "available_bps", 900.0, 0.9),
        ("capacity", "capacity_bps", 21_600.0, 1.0),
        ("throughput", "throughput_bps", 86_400.0, 0.8),
    ):
        times = np.arange(start, end, period_s)
        used = 1 - 0.6 * _load(times, one.id) if test != "capacity" else np.ones(len(times))
        for event in one.events:
            inside = (times >= event.start_s) & (times < (event.end_s or end + 1))
            used[inside] *= event.available_factor if test != "capacity" else 1.0
        values = one.line_bps * of_line * used * random.normal(1, 0.02, len(times))
        rows = []
        for at, value in zip(times.tolist(), values.tolist(), strict=True):
            estimate = {"quantity": quantity, "value": value, "low": value * 0.96, "high": value * 1.04}
            cost = {"packets": 1200, "bytes": 1_800_000, "seconds": 4.2}
            outcome = json.dumps({"estimates": [estimate], "refused": None, "notes": [], "cost": cost})
            rows.append({"id": id_of(one.id, test, at), "path_id": one.id, "at": at, "outcome": outcome})
        yield test, quantity, rows


def _of_outcomes(one: _Path, quantity: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the summaries of outcomes, by the hour and the day."""
    found = []
    for seconds in (3600, DAY):
        groups: dict[int, list[float]] = {}
        for item in rows:
            value = json.loads(item["outcome"])["estimates"][0]["value"]
            groups.setdefault(int(item["at"] // seconds) * seconds, []).append(value)
        found += [row(one.id, quantity, seconds, start, sorted(values), 0) for start, values in groups.items()]
    return found


def _alert_row(one: _Path, event: _Event) -> dict[str, Any]:
    quantity, before, after = "rtt_s", one.rtt_s, one.rtt_s * event.rtt_factor
    if event.cause == "loss":
        quantity, before, after = "loss", one.loss, event.loss
    found = event.start_s + 5
    shown, was = (units.of_quantity(quantity, value) for value in (after, before))
    text = f"{one.name}: {'loss' if quantity == 'loss' else 'RTT'} {shown} instead of {was}"
    forecast = []
    if event.cause != "route":
        forecast = [
            {"scenario": "tonight.toml", "before_s": 2400.0, "after_s": 10_800.0,
             "text": "tonight's increment: 3 h 0 min instead of 40 min 0 s"}
        ]  # fmt: skip
    evidence = {"before": before, "after": after, "samples": 5, "confidence": 0.99}
    return {
        "id": id_of(one.id, quantity, event.kind, event.start_s), "path_id": one.id, "quantity": quantity,
        "kind": event.kind, "since": event.start_s, "found": found, "ended": event.end_s, "text": text,
        "evidence": json.dumps(evidence), "cause": event.cause, "forecast": json.dumps(forecast),
    }  # fmt: skip
