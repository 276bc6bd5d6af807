"""The schedule: earliest deadline first, never two tests on one bottleneck, never more than the budget."""

from __future__ import annotations

import random

from elephan.monitor.schedule import ACCOUNT_S, Schedule
from elephan.monitor.spec import PathSpec, TestSpec

LINE_BPS = 10**9


def path(name: str, bottleneck: str, *tests: tuple[str, float], budget_e6: int = 10_000) -> PathSpec:
    specs = tuple(TestSpec(test, round(period_s * 1e9)) for test, period_s in tests)
    return PathSpec(name, "192.0.2.1:862", None, None, LINE_BPS, budget_e6, bottleneck, {}, (), False, specs)


def test_tests_that_share_a_bottleneck_never_overlap_and_the_budget_holds() -> None:
    rng = random.Random(5)
    paths = tuple(path(f"p{number}", f"b{number % 3}", ("available", 60.0), ("capacity", 300.0)) for number in range(9))
    schedule = Schedule.of(paths, 0.0)
    running: dict[int, tuple[object, float, float]] = {}
    sent = dict.fromkeys((one.name for one in paths), 0.0)
    done: dict[tuple[str, str], int] = {}
    now = 0.0
    while now < 7200:
        for key, (job, until, cost) in list(running.items()):
            if now >= until:
                del running[key]
                schedule.done(job, cost, False, now)  # type: ignore[arg-type]
        for job in schedule.poll(now):
            busy = {one.path.bottleneck for one, _, _ in running.values()}  # type: ignore[attr-defined]
            assert job.path.bottleneck not in busy
            cost = 3e6 if job.test.test == "available" else 20e6
            sent[job.path.name] += cost
            done[job.key] = done.get(job.key, 0) + 1
            running[id(job)] = (job, now + rng.uniform(2, 6), cost)
        now += 0.5
    for one in paths:
        allowed = one.budget_bytes_per_s * (7200 + ACCOUNT_S)
        assert sent[one.name] <= allowed
        # Each period had its test: 120 of a minute, 24 of five minutes.
        assert done[one.name, "available"] >= 118 and done[one.name, "capacity"] >= 23


def test_a_test_that_does_not_fit_waits_and_says_why() -> None:
    # 1 kB/s: an hour's account holds 3.6 MB.
    schedule = Schedule.of((path("p", "b", ("available", 60.0), budget_e6=8),), 0.0)
    (job,) = schedule.poll(0.0)
    schedule.done(job, 3.5e6, False, 5.0)
    assert list(schedule.poll(60.0)) == []
    assert job.waits is not None and "budget gives 60.0 kB in a period; a period of at least 58 min" in job.waits
    times = [now for now in range(60, 8000, 10) for _ in schedule.poll(float(now))]
    assert times == [3410], "it runs when the account has what it cost the last time"
    assert job.missed > 50


def test_by_hand_comes_first_and_is_charged() -> None:
    one = path("p", "b", ("available", 60.0))
    schedule = Schedule.of((one,), 0.0)
    asked = schedule.ask(one, TestSpec("capacity", 10**9), 0.0)
    assert list(schedule.poll(0.0)) == [asked]
    assert [job.waits for job in schedule.jobs if not job.by_hand] == ["capacity of p runs over the same bottleneck"]
    schedule.done(asked, 1e12, False, 4.0)
    assert schedule.accounts["p"].tokens < 0
    (job,) = [job for job in schedule.jobs if not job.by_hand]
    job.cost_bytes = 1e6
    assert list(schedule.poll(5.0)) == [] and "budget has them in" in str(job.waits)


def test_silent_paths_and_failing_tests_are_left_alone_for_longer_and_longer() -> None:
    schedule = Schedule.of((path("p", "b", ("available", 60.0)),), 0.0)
    schedule.silent.add("p")
    assert list(schedule.poll(0.0)) == [] and schedule.jobs[0].waits == "the path is silent"
    schedule.silent.clear()
    times = []
    for now in range(0, 4000):
        for job in schedule.poll(float(now)):
            times.append(now)
            schedule.done(job, 0.0, True, float(now))
    gaps = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
    assert gaps[:4] == [10, 20, 40, 80] and max(gaps) <= 1860


def test_a_file_that_is_read_again_keeps_what_is_known() -> None:
    first = path("p", "b", ("available", 60.0))
    schedule = Schedule.of((first,), 0.0)
    (job,) = schedule.poll(0.0)
    schedule.done(job, 2e6, False, 5.0)
    schedule.replace((first, path("q", "b", ("capacity", 600.0))), 30.0)
    known = {one.key: one for one in schedule.jobs}
    assert known["p", "available"].cost_bytes == 2e6 and known["p", "available"].release_s == 60.0
    assert [one.key for one in schedule.poll(31.0)] == [("q", "capacity")]


def test_a_file_that_is_read_again_drops_nothing_that_runs_or_that_somebody_waits_for() -> None:
    one = path("p", "b", ("available", 60.0))
    schedule = Schedule.of((one,), 0.0)
    (running,) = schedule.poll(0.0)
    asked = schedule.ask(one, TestSpec("capacity", 60 * 10**9), 1.0)
    schedule.replace((one,), 2.0)
    assert list(schedule.poll(2.0)) == []
    schedule.done(running, 1e6, False, 5.0)
    assert list(schedule.poll(5.0)) == [asked]
    schedule.done(asked, 1e6, False, 8.0)
    assert list(schedule.poll(8.0)) == [], "it has run in this period"
    assert [job.test.test for job in schedule.poll(60.0)] == ["available"]


def test_a_bottleneck_rests_after_a_test_so_that_delays_are_judged() -> None:
    one = path("p", "b", ("available", 10.0), ("capacity", 10.0))
    schedule = Schedule.of((one,), 0.0)
    loaded, running = 0, None
    for now in range(600):
        if running is not None and now >= running[1]:
            schedule.done(running[0], 1e3, False, float(now))
            running = None
        for job in schedule.poll(float(now)):
            running = job, now + 20
        loaded += schedule.loaded(one)
    assert 250 < loaded < 320
