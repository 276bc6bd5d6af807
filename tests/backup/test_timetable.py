"""Due times, windows, and versions that may go."""

from __future__ import annotations

import math
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elephan.backup.retention import Version, name_of, new_name, newest_complete, time_of, to_remove
from elephan.backup.spec import Keep, Schedule, Window
from elephan.backup.timetable import caught_up, least_rate, next_due, next_open, open_until

VIENNA = ZoneInfo("Europe/Vienna")
HOUR = 3600.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=VIENNA).timestamp()


def test_a_period_is_due_at_once_and_then_on_its_own_grid() -> None:
    every = Schedule(every_s=2 * HOUR)
    assert next_due(every, None, 1000.0) == 1000.0
    assert next_due(every, 1000.0, 0.0) == 1000.0 + 2 * HOUR
    # Seven hours off: three due times are over; one run makes up for all.
    assert caught_up(every, 1000.0, 1000.0 + 7 * HOUR) == (1000.0 + 6 * HOUR, 3)


def test_times_of_the_day_hold_on_their_days_and_over_the_change_of_clocks() -> None:
    nightly = Schedule(at_min=(2 * 60, 14 * 60))
    assert next_due(nightly, None, at("2026-11-26 02:00"), VIENNA) == at("2026-11-26 14:00")
    assert next_due(nightly, at("2026-11-26 14:00"), 0.0, VIENNA) == at("2026-11-27 02:00")
    sundays = Schedule(at_min=(120,), days=frozenset({6}))
    assert next_due(sundays, at("2026-11-22 02:00"), 0.0, VIENNA) == at("2026-11-29 02:00")
    # 02:00 of 29 March does not exist there; the day has its run all the same.
    spring = next_due(Schedule(at_min=(120,)), at("2026-03-28 02:00"), 0.0, VIENNA)
    assert spring is not None and at("2026-03-29 00:00") < spring < at("2026-03-29 04:00")
    assert caught_up(nightly, at("2026-11-26 02:00"), at("2026-11-27 03:00"), VIENNA) == (at("2026-11-27 02:00"), 2)
    assert next_due(Schedule(), None, 0.0) is None


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    friday = (Window(22 * 60, 6 * 60, frozenset({4})),)
    assert open_until(friday, at("2026-11-28 05:59"), VIENNA) == (at("2026-11-28 06:00"), None)
    assert open_until(friday, at("2026-11-27 05:59"), VIENNA) is None
    assert next_open(friday, at("2026-11-28 06:00"), VIENNA) == at("2026-12-04 22:00")
    assert open_until((), 0.0) == (math.inf, None)


def test_windows_that_follow_each_other_are_one_where_their_rate_is_one() -> None:
    day = Window(8 * 60, 18 * 60, rate_bps=10)
    assert open_until((day, Window(18 * 60, 8 * 60)), at("2026-11-26 12:00"), VIENNA) == (at("2026-11-26 18:00"), 10)
    both = (Window(8 * 60, 18 * 60), Window(18 * 60, 22 * 60))
    assert open_until(both, at("2026-11-26 12:00"), VIENNA) == (at("2026-11-26 22:00"), None)
    always = (Window(0, 24 * 60),)
    until = open_until(always, at("2026-11-26 12:00"), VIENNA)
    assert until is not None and until[0] - at("2026-11-26 12:00") > 6 * 24 * HOUR
    # The highest rate of those that overlap.
    assert open_until((day, Window(9 * 60, 12 * 60, rate_bps=20)), at("2026-11-26 10:00"), VIENNA) == (
        at("2026-11-26 12:00"), 20,
    )  # fmt: skip
    assert least_rate(None, 5, 3) == 3 and least_rate(None, None) is None


@given(
    st.lists(st.tuples(st.integers(0, 1439), st.integers(1, 1440)).filter(lambda one: one[0] != one[1]), min_size=1,
             max_size=4),
    st.floats(0, 3e9),
)  # fmt: skip
def test_a_window_is_open_where_the_next_one_is_now(hours: list[tuple[int, int]], now_s: float) -> None:
    windows = tuple(Window(*one) for one in hours)
    found = open_until(windows, now_s, VIENNA)
    opens = next_open(windows, now_s, VIENNA)
    assert (found is not None) == (opens == now_s)
    if found is None:
        assert opens > now_s and open_until(windows, opens, VIENNA) is not None
    else:
        assert found[0] > now_s


DAY = 86_400.0


def versions(*states: str) -> list[Version]:
    return [Version(name_of(DAY * number), state) for number, state in enumerate(states, 1)]


def names(*days: int) -> list[str]:
    return [name_of(DAY * day) for day in days]


def test_a_version_goes_once_the_one_after_it_is_older_than_what_is_kept() -> None:
    found = versions(*["complete"] * 5)
    # Of day 3 and a half: version 3 shows it, and stays.
    assert to_remove(found, Keep(age_s=1.5 * DAY), 5 * DAY) == names(1, 2)
    assert to_remove(found, Keep(versions=2), 5 * DAY) == names(1, 2, 3)
    assert to_remove(found, Keep(), 99 * DAY) == []
    # However old it is, the newest stays.
    assert to_remove(found, Keep(age_s=DAY), 99 * DAY) == names(1, 2, 3, 4)


def test_what_is_not_complete_goes_only_after_a_newer_one_that_is() -> None:
    assert to_remove(versions("begun", "begun"), Keep(versions=1), 9 * DAY) == []
    assert to_remove(versions("complete", "begun"), Keep(versions=1), 9 * DAY) == []
    assert to_remove(versions("complete", "begun", "removing", "complete"), Keep(), 9 * DAY) == names(2, 3)
    assert to_remove(versions("begun", "complete"), Keep(), 9 * DAY, current=name_of(DAY)) == []


@given(st.lists(st.sampled_from(["begun", "complete", "removing"]), max_size=9), st.integers(1, 9), st.floats(0, 20))
def test_the_newest_complete_version_always_stays(states: list[str], number: int, days: float) -> None:
    found = versions(*states)
    newest = newest_complete(found)
    for keep in (Keep(versions=number), Keep(age_s=days * DAY), Keep()):
        gone = to_remove(found, keep, 20 * DAY)
        assert newest is None or newest.name not in gone
        assert all(newest is not None and name < newest.name for name in gone)


def test_names_of_versions_are_their_times_and_only_grow() -> None:
    assert name_of(1_795_672_800.9) == "version-20261126T060000Z" and time_of(name_of(DAY)) == DAY
    assert new_name(5 * DAY, versions("complete")) == name_of(5 * DAY)
    # The clock was put back.
    assert new_name(0.0, versions("begun", "complete")) == name_of(2 * DAY + 1)
    assert newest_complete(versions("complete", "complete", "begun"), 1.5 * DAY) == versions("complete")[0]


def test_a_wrong_name_is_no_time() -> None:
    with pytest.raises(ValueError):
        time_of("latest")
