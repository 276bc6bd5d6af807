"""All jobs together in virtual time: first copies, RPO, windows, a shared path; a run against its forecast."""

from __future__ import annotations

from datetime import UTC

import pytest

from elephan.backup.forecasts import CopyForecast, Takes, judged, play, usual_change
from elephan.backup.spec import JobSpec, Kind, PathSpec, Retry, Schedule, Spec, Window

HOUR = 3600.0
DAY = 24 * HOUR
PATH = PathSpec("osc", 100_000_000, 0.03, 0.0, 0, 1500, 0)
RETRY = Retry(8, 30.0, 1800.0)


def told(seconds: float, goodput_bps: float = 100e6, bytes_: int = 10**9) -> CopyForecast:
    return CopyForecast("simulation", 1, bytes_, 0.9 * seconds, seconds, 1.1 * seconds, goodput_bps)


def job(name: str, schedule: Schedule, *windows: Window, kind: Kind = "incremental") -> JobSpec:
    return JobSpec(name, kind, ("/data/",), f"osc:/{name}", schedule, windows, path=PATH)


def spec(*jobs: JobSpec, max_running: int | None = None) -> Spec:
    return Spec("dr", "dr.toml", jobs, RETRY, max_running)


def takes(first: float, later: float, goodput_bps: float = 100e6) -> Takes:
    return lambda _, is_first, rate_bps: told(first if is_first else later, rate_bps or goodput_bps)


def test_the_age_of_the_newest_copy_is_a_period_and_a_run() -> None:
    plan = spec(job("scans", Schedule(every_s=2 * HOUR)))
    found = play(plan, takes(HOUR, 600.0), 0.0)["scans"]
    assert found.first_s == HOUR and found.missed == 0
    assert found.rpo_s == pytest.approx(2 * HOUR + 600)
    high = play(plan, takes(HOUR, 600.0), 0.0, high=True)["scans"]
    assert high.rpo_s == pytest.approx(2 * HOUR + 660)


def test_a_first_copy_that_takes_days_has_one_run_for_all_times_that_it_misses() -> None:
    found = play(spec(job("records", Schedule(every_s=DAY))), takes(4.2 * DAY, HOUR), 0.0)["records"]
    assert found.first_s == pytest.approx(4.2 * DAY) and found.missed == 3
    # The time of the fourth day came during the first copy: its run follows at once, with data of then.
    assert found.first_age_s == pytest.approx(4.2 * DAY + HOUR) and found.rpo_s == pytest.approx(DAY + HOUR)


def test_outside_of_its_hours_a_job_waits() -> None:
    nights = job("records", Schedule(every_s=DAY), Window(0, 8 * 60))
    found = play(spec(nights), takes(20 * HOUR, HOUR), 0.0, zone=UTC)["records"]
    # Eight hours in each of two nights, four in the third.
    assert found.first_s == pytest.approx(2 * DAY + 4 * HOUR)
    # Twice as fast without the limit of the day's window.
    slow = job("records", Schedule(every_s=DAY), Window(0, 12 * 60), Window(12 * 60, 24 * 60, rate_bps=50_000_000))

    def by_rate(_: JobSpec, is_first: bool, rate_bps: int | None) -> CopyForecast:
        return told((12 * HOUR if is_first else 60.0) * (2 if rate_bps else 1), rate_bps or 100e6)

    assert play(spec(slow), by_rate, 6 * HOUR, zone=UTC)["records"].first_s == pytest.approx(6 * HOUR + 12 * HOUR)


def test_jobs_on_one_path_share_its_rate() -> None:
    both = (job("a", Schedule(every_s=DAY)), job("b", Schedule(every_s=DAY)))
    found = play(spec(*both), takes(HOUR, 60.0), 0.0)
    assert found["a"].first_s == found["b"].first_s == pytest.approx(2 * HOUR)
    # Each takes a quarter of the line: none slows the other.
    quarter = play(spec(*both), takes(HOUR, 60.0, 25e6), 0.0)
    assert quarter["a"].first_s == pytest.approx(HOUR)
    # One after the other.
    turns = play(spec(*both, max_running=1), takes(HOUR, 60.0), 0.0)
    assert sorted((turns["a"].first_s, turns["b"].first_s)) == pytest.approx([HOUR, 2 * HOUR])  # type: ignore[type-var]


def test_a_run_that_takes_longer_than_its_period_is_told() -> None:
    found = play(spec(job("scans", Schedule(every_s=HOUR))), takes(HOUR, 1.5 * HOUR), 0.0)["scans"]
    assert found.missed > 100 and found.rpo_s == pytest.approx(3 * HOUR, rel=0.2)


def test_a_job_that_has_a_copy_begins_with_an_increment() -> None:
    found = play(spec(job("scans", Schedule(every_s=HOUR))), takes(99 * DAY, 60.0), 0.0, frozenset({"scans"}))["scans"]
    assert found.first_s is None and found.rpo_s == pytest.approx(HOUR + 60)


def test_a_run_is_compared_with_its_forecast() -> None:
    one = told(100.0)
    assert judged(one, 10**9, 105.0, None)["verdict"] == "as forecast"
    assert judged(one, 3 * 10**9, 300.0, told(300.0, bytes_=3 * 10**9)) == {
        "verdict": "more data", "text": "3.00 GB instead of 1.00 GB", "sent_bytes": 3 * 10**9, "seconds": 300.0,
    }  # fmt: skip
    assert judged(one, 0, 0.2, None)["verdict"] == "less data"
    slow = judged(one, 10**9, 200.0, None)
    assert slow["verdict"] == "slower" and slow["text"] == "40.0 Mbit/s instead of 100 Mbit/s"
    assert judged(one, 10**9, 50.0, told(100.0))["verdict"] == "faster"


def test_a_run_within_a_band_too_wide_to_plan_by_is_not_judged() -> None:
    wide = CopyForecast("earlier runs", 1, 10**9, 3.0, 7.0, 3e6, 1e9)
    assert judged(wide, 10**9, 500.0, None)["verdict"] == "not judged"
    assert judged(wide, 10**9, 5e6, None)["verdict"] == "slower"


def test_times_are_compared_where_the_fixed_part_is_no_small_part_of_them() -> None:
    short = CopyForecast("earlier runs", 1, 10**7, 1.9, 2.0, 2.1, 1e9, fixed_s=1.9)
    assert judged(short, 10**7, 4.0, None)["text"] == "4.00 s instead of 2.00 s"
    long = CopyForecast("earlier runs", 1, 10**9, 90.0, 102.0, 110.0, 80e6, fixed_s=2.0)
    # 8e9 bit in 200 s after 2 s.
    assert judged(long, 10**9, 202.0, None)["text"] == "40.0 Mbit/s instead of 80.0 Mbit/s"


def test_later_runs_tell_what_changes() -> None:
    runs = [{"state": "done", "sent_bytes": sent} for sent in (2 * 10**7, 10**7, 4 * 10**7, 9 * 10**9)]
    # The oldest was the first copy.
    assert usual_change(runs) == 2 * 10**7 and usual_change(runs[3:]) is None
