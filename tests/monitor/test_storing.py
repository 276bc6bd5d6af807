"""Journal, files of days, summaries, and what a reader makes of them; kills and full disks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from elephan.monitor import journal, raw
from elephan.monitor.child_processes import call
from elephan.monitor.journal import LOST, Sample
from elephan.monitor.reading import MonitorReader
from elephan.monitor.synthetic import fill
from elephan.monitor.tables import monitor_folder, path_folder, path_id
from elephan.monitor.writing import Database, Journal
from elephan.store.place import Place

ROOT = Path(__file__).resolve().parents[2]
DAY = journal.DAY_S


def samples(start_s: float, count: int, seed: int = 1) -> list[Sample]:
    rng = np.random.default_rng(seed)
    rtts = (20e6 + rng.exponential(30e3, count)).astype(int)
    gone = rng.random(count) < 0.01
    return [
        Sample(int((start_s + number) * 1e9), LOST if lost else int(rtt), int(rtt) // 2, 55, 0)
        for number, (rtt, lost) in enumerate(zip(rtts, gone, strict=True))
    ]


def test_a_torn_journal_is_read_to_the_last_whole_record_and_written_on(tmp_path: Path) -> None:
    start = 1_800_000_000.0
    first = samples(start, 50)
    one = Journal(tmp_path)
    one.append(first)
    one.close()
    path = journal.journal_path(tmp_path, journal.day_of(start))
    whole = path.read_bytes()
    for cut in (1, 7, 31):
        path.write_bytes(whole[:-cut])
        assert journal.read(path) == first[:-1] and journal.last(path) == first[-2]
    path.write_bytes(whole[:-9] + b"\xff" * 40)
    two = Journal(tmp_path)
    two.append(samples(start + 100, 5))
    two.close()
    assert journal.read(path) == [*first[:-1], *samples(start + 100, 5)]
    assert journal.read(tmp_path / "gone") == [] and journal.last(tmp_path / "gone") is None
    # One that is damaged in the middle costs itself alone, also after the writer has looked at the file.
    damaged = bytearray(path.read_bytes())
    damaged[10 * journal.RECORD_BYTES] ^= 1
    path.write_bytes(damaged)
    three = Journal(tmp_path)
    three.append(samples(start + 200, 1))
    three.close()
    assert len(journal.read(path)) == len(raw.of_journal(path).time_s) == 54


def test_a_day_becomes_a_file_that_holds_the_same(tmp_path: Path) -> None:
    start = float(journal.day_start("2026-03-03"))
    taken = samples(start, 4000)
    path = journal.journal_path(tmp_path, "2026-03-03")
    path.write_bytes(journal.encode(taken) + b"torn")
    day = raw.of_journal(path)
    raw.write(day, raw.parquet_path(tmp_path, "2026-03-03"))
    again = raw.read(raw.parquet_path(tmp_path, "2026-03-03"))
    assert np.allclose(again.time_s, day.time_s, atol=5e-4)
    assert np.array_equal(np.isnan(again.rtt_s), np.isnan(day.rtt_s)) and np.isnan(day.rtt_s).any()
    # A power of ten of at most 1/10,000 of the median of 20 ms: 1 us.
    assert np.allclose(again.rtt_s, day.rtt_s, atol=0.51e-6, equal_nan=True)
    assert np.allclose(again.values("reverse_delay_s"), day.values("reverse_delay_s"), atol=1.01e-6, equal_nan=True)
    assert (again.ttl == 55).all()
    assert raw.parquet_path(tmp_path, "2026-03-03").stat().st_size < 6 * len(taken)


def test_summaries_are_those_of_the_samples() -> None:
    day = raw.Day.nothing()
    assert raw.summaries(day, 1, 60) == []
    times = np.arange(180.0) + 1_800_000_000 - 1_800_000_000 % 60
    rtts = np.arange(180.0) + 1
    rtts[5] = np.nan
    day = raw.Day(times, rtts, rtts / 2, np.full(180, 60, np.uint8), np.zeros(180, np.uint8))
    rows = [one for one in raw.summaries(day, 1, 60) if one["quantity"] == "rtt_s"]
    assert [one["count"] for one in rows] == [59, 60, 60] and [one["lost"] for one in rows] == [1, 0, 0]
    assert rows[1]["min"] == 61 and rows[1]["max"] == 120 and rows[1]["p50"] == 90 and rows[1]["p95"] == 117


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[int], float]:
    place = str(tmp_path_factory.mktemp("store") / "results.sqlite")
    end = 1_800_000_000.0 + 40_000
    return place, fill(place, paths=2, days=45, seed=7, end_s=end, raw_days=1), end


def test_a_reader_gives_what_fits_a_span(filled: tuple[str, list[int], float]) -> None:
    place, ids, end = filled
    with MonitorReader(place) as reader:
        states = reader.paths(now_s=end + 5)
        assert [one.name for one in states] == ["geneva", "vienna"] and {one.id for one in states} == set(ids)
        assert {one.state for one in states} == {"good", "alert"}
        assert all(one.latest["rtt_s"] > 0 and one.latest["available_bps"] > 0 for one in states)
        assert {one.state for one in reader.paths(now_s=end + 3600)} == {"silent"}
        minute = reader.series(ids[0], "rtt_s", end - 600, end)
        assert 590 <= len(minute.times) <= 600 and minute.resolution_s == 0 and minute.unit == "s"
        day = reader.series(ids[0], "rtt_s", end - DAY, end, 500)
        assert 400 < len(day.times) <= 500
        for low, mid, high in zip(day.low, day.mid, day.high, strict=True):
            assert low is not None and mid is not None and high is not None and low <= mid <= high
        assert sum(day.count) + sum(day.lost) == pytest.approx(DAY, abs=3)
        week = reader.series(ids[0], "rtt_s", end - 7 * DAY, end, 500)
        assert 150 < len(week.times) <= 500 and week.resolution_s >= 60
        # Older than the summaries of minutes: those of hours.
        all_of_it = reader.series(ids[0], "loss", end - 45 * DAY, end)
        assert all_of_it.times[0] < end - 43 * DAY and all_of_it.unit == ""
        assert reader.series(ids[0], "rtt_s", end - 400 * DAY, end - 300 * DAY).times == []
        rates = reader.series(ids[0], "available_bps", end - DAY, end)
        assert 90 < len(rates.times) < 100 and rates.unit == "bit/s"
        assert reader.series(ids[0], "available_bps", end - 40 * DAY, end).times
        band = reader.benchmark(ids[0], "rtt_s", end - DAY, end)
        assert band is not None and all(
            low <= mid <= high for low, mid, high in zip(band.low, band.mid, band.high, strict=True)
        )
        assert len(reader.outcomes(ids[0], "available", end - 3600, end)) == 4
        (alert,) = reader.alerts(open_only=True)
        assert alert.path == "geneva" and alert.cause == "route" and alert.ended_s is None
        marker, news = reader.changes_since(0)
        assert set(news) == {str(one) for one in ids} and reader.changes_since(marker) == (marker, [])
    with MonitorReader(place + ".gone") as reader:
        assert reader.paths() == [] and reader.alerts() == [] and reader.changes_since(3) == (3, [])


def test_days_that_are_over_become_files_and_old_ones_go(tmp_path: Path) -> None:
    store = str(tmp_path / "results.sqlite")
    assert call("upgrade", {"store": store}).fault is None
    place = Place.of(store)
    identity = path_id("dr", "vienna")
    database = Database(place)
    settings = {"id": identity, "monitor": "dr", "name": "vienna", "settings": "{}", "created": "", "state": "running"}
    database.add("monitor_path", [{**settings, "changed": 1}])
    now = time.time()
    old = now - 10 * DAY
    for at in (old, now - 2 * DAY, now):
        Journal(path_folder(place, identity)).append(samples(at, 30))
    value = {"value": 1e9, "low": 1e9, "high": 1e9}
    outcome = {"estimates": [{"quantity": "capacity_bps", **value}, {"quantity": "rtt_s", **value}]}
    database.add(
        "monitor_outcome",
        [{"id": 5, "path_id": identity, "test": "capacity", "at": now - 2 * DAY, "outcome": json.dumps(outcome)}],
    )
    assert database.flush()
    asked = {"store": store, "monitor": "dr", "raw_s": 5 * DAY, "minutes_s": 3 * DAY, "hours_s": 400 * DAY}
    done = call("days", {**asked, "free_bytes": 0})
    assert done.result is not None, done.fault
    names = sorted(path.name for path in path_folder(place, identity).iterdir())
    assert names == [f"{journal.day_of(now - 2 * DAY)}.parquet", f"{journal.day_of(now)}.journal"]
    days = database.rows("select quantity, seconds from monitor_summary")
    assert ("rtt_s", DAY) in days and ("capacity_bps", 3600) in days and ("capacity_bps", DAY) in days
    (found,) = database.rows("select count from monitor_summary where quantity = 'rtt_s' and seconds = 86400 "
                             "and start > :start", start=now - 3 * DAY)  # fmt: skip
    assert found[0] > 1, "one value by hand has not taken the place of the day's samples"
    database.close()


FULL = """
import os, sys, time
from pathlib import Path
from elephan.monitor import journal
from elephan.monitor.child_processes import call
from elephan.monitor.journal import Sample
from elephan.monitor.tables import monitor_folder, path_folder, path_id
from elephan.monitor.writing import Database, Journal, make_space
from elephan.store.place import Place

store = sys.argv[1] + "/results.sqlite"
assert call("upgrade", {"store": store}).fault is None
place = Place.of(store)
identity = path_id("dr", "vienna")
folder = path_folder(place, identity)
now = time.time()
database = Database(place)
database.add("monitor_path", [{"id": identity, "monitor": "dr", "name": "vienna", "settings": "{}", "created": "",
                               "state": "running", "changed": 1}])
assert database.flush()
one = Journal(folder)
# Old days until nothing more fits.
for age in range(9, 0, -1):
    (folder / f"{journal.day_of(now - age * 86400)}.parquet").write_bytes(b"x" * 100_000)
try:
    with open(sys.argv[1] + "/filler", "wb") as filler:
        while True:
            filler.write(b"x" * 4096); filler.flush()
except OSError:
    pass
many = [Sample(int((now + number) * 1e9), 20_000_000) for number in range(3000)]
one.append(many)
rows = [{"path_id": identity, "quantity": "rtt_s", "seconds": 60, "start": 60 * number, "count": 60, "lost": 0,
         "min": 1.0, "p05": 1.0, "p50": 1.0, "p95": 1.0, "max": 1.0, "mean": 1.0} for number in range(3000)]
database.add("monitor_summary", rows)
assert not database.flush() and database.is_full, database.fault
assert one.fault is not None
gone = make_space(place, 600_000)
assert [path.stem for path in gone] == sorted(path.stem for path in gone) and 3 < len(gone) < 9, gone
one.retry()
assert one.fault is None and database.flush(), (one.fault, database.fault)
one.close()
found = journal.read(journal.journal_path(folder, journal.day_of(now)))
if journal.day_of(now + 3000) != journal.day_of(now):
    found += journal.read(journal.journal_path(folder, journal.day_of(now + 3000)))
assert len(found) == 3000 and one.dropped == 0
assert database.rows("select count(*) from monitor_summary") == [(3000,)]
print("kept", len(gone))
"""


def test_on_a_full_disk_the_oldest_raw_samples_go_and_summaries_stay(tmp_path: Path) -> None:
    words = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=3m none "$0" && exec "$@"', str(tmp_path)]
    done = subprocess.run(
        [*words, sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kept")


def test_a_store_without_a_place_that_lasts_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    from elephan.errors import StoreError
    from elephan.monitor.writing import local_file

    with pytest.raises(StoreError, match="a monitor needs a store that lasts"):
        local_file(Place.of("sqlite://"))
    assert monitor_folder(Place.of("/tmp/a/results.sqlite")) == Path("/tmp/a/results.monitor")
