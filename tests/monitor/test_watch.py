"""A path that is watched: minutes, detectors, and a restart that makes again what a kill has taken."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from elephan.monitor import journal
from elephan.monitor.journal import LOST, Sample
from elephan.monitor.spec import PathSpec, TestSpec
from elephan.monitor.watch import PathWatch

START = 1_800_000_000 - 1_800_000_000 % 86_400 + 3600


def spec(**benchmark: float) -> PathSpec:
    tests = (TestSpec("stamp", 10**9), TestSpec("available", 300 * 10**9))
    return PathSpec("vienna", "192.0.2.1:862", None, None, 10**9, 10_000, "*vienna", benchmark, (), False, tests)


def samples(first: int, count: int, rtt_s: float = 0.02, lost: bool = False) -> list[Sample]:
    rng = np.random.default_rng(first)
    return [
        Sample((START + first + number) * 10**9, LOST if lost else round(rtt_s * 1e9 + noise), round(rtt_s * 5e8), 55)
        for number, noise in enumerate(rng.exponential(30e3, count).tolist())
    ]


def test_a_kill_takes_neither_minutes_nor_changes(tmp_path: Path) -> None:
    whole, kept = (
        PathWatch(spec(rtt_s=0.022), 7, tmp_path / "whole"),
        PathWatch(spec(rtt_s=0.022), 7, tmp_path / "kill"),
    )
    stream = [*samples(0, 400), *samples(400, 60, 0.05), *samples(460, 200)]
    expected_rows, expected = whole.handle(stream, loaded=False)
    expected_rows += whole.close_minute()
    kinds = [(quantity, change["kind"]) for quantity, change in expected]
    assert ("rtt_s", "agreed_missed") in kinds and ("rtt_s", "recovered") in kinds
    rows: list[dict[str, Any]] = []
    changes: list[Any] = []
    for first in range(0, len(stream), 90):
        more, found = kept.handle(stream[first : first + 90], loaded=False)
        rows, changes = rows + more, changes + found
        if first == 180:
            kept.save()
        if first in (90, 360):
            # Killed: what was not saved is gone; the journal is there, with a torn end.
            kept.journal.close()
            with journal.journal_path(tmp_path / "kill", journal.day_of(START)).open("ab") as file:
                file.write(b"torn")
            kept = PathWatch(spec(rtt_s=0.022), 7, tmp_path / "kill")
            more, found = kept.recover(START + first + 95)
            rows, changes = rows + more, changes + found
    rows += kept.close_minute()
    by_key = {(one["quantity"], one["start"]): one for one in rows}
    for one in expected_rows:
        again = by_key[one["quantity"], one["start"]]
        assert again["count"] == one["count"] and again["p50"] == one["p50"], (one, again)
    seen = {(quantity, change["kind"], change["since_s"]) for quantity, change in changes}
    assert seen == {(quantity, change["kind"], change["since_s"]) for quantity, change in expected}


def test_silence_is_the_paths_and_a_tests_own_load_is_not_judged(tmp_path: Path) -> None:
    watch = PathWatch(spec(rtt_s=0.022), 7, tmp_path)
    _, found = watch.handle(samples(0, 100), loaded=False)
    assert found == []
    _, found = watch.handle(samples(100, 20, 0.2), loaded=True)
    assert found == [], "a queue that a test fills is its own"
    _, found = watch.handle(samples(130, 10, lost=True), loaded=False)
    assert [quantity for quantity, change in found if change["kind"] == "silent"] == ["silence"]
    _, found = watch.handle(samples(140, 3), loaded=False)
    assert ("silence", "answered") in [(quantity, change["kind"]) for quantity, change in found]


def probes(rates: list[tuple[int, float]], period_s: float = 0.1, seed: int = 1) -> list[Sample]:
    """Return samples in which a share of the packets is lost for so many packets, then another."""
    rng = np.random.default_rng(seed)
    lost = np.concatenate([rng.random(count) < rate for count, rate in rates])
    return [
        Sample(round((START + number * period_s) * 1e9), LOST if gone else 20_000_000, 10_000_000, 55)
        for number, gone in enumerate(lost.tolist())
    ]


def test_a_thousand_times_the_agreed_loss_is_one_alert_with_tests_in_between(tmp_path: Path) -> None:
    tests = (TestSpec("stamp", 10**8),)
    of = PathSpec("vienna", "192.0.2.1:862", None, None, 10**9, 10_000, "*vienna", {"loss": 1e-5}, (), False, tests)
    watch = PathWatch(of, 7, tmp_path)
    stream = probes([(6000, 1e-5), (12_000, 1e-2)])
    found = []
    for number, first in enumerate(range(0, 18_000, 50)):
        # A path test of 5 s every 30 s: its own load is not judged, and what was seen before it is not forgotten.
        part = stream[first : first + 50]
        found += watch.handle(part, loaded=number % 6 == 5)[1]
    assert [(quantity, change["kind"]) for quantity, change in found] == [("loss", "agreed_missed")]
    (_, change) = found[0]
    # Three to ten losses: 30 to 100 s at ten packets a second, and the sixth of the time in which a test runs.
    assert START + 600 < change["found_s"] < START + 600 + 200
    assert change["before"] == 1e-5 and 1e-3 < change["after"] < 0.1


def test_a_busy_host_is_told_from_a_longer_path(tmp_path: Path) -> None:
    tests = (TestSpec("stamp", 10**8),)
    of = PathSpec("vienna", "192.0.2.1:862", None, None, 10**9, 10_000, "*vienna", {"rtt_s": 0.02}, (), False, tests)
    watch = PathWatch(of, 7, tmp_path)
    rng = np.random.default_rng(3)

    def sent(first: int, count: int, rtt_s: float, busy: float, late_s: float) -> list[Sample]:
        made = []
        for number in range(first, first + count):
            late = round(rng.exponential(late_s) * 1e9) if rng.random() < busy else 0
            made.append(Sample((START * 10 + number) * 10**8, round(rtt_s * 1e9) + late, 10**7, 55, 0, late, late // 2))
        return made

    # Nine of ten packets are late by 10 ms on the mean: the median of all is 26 ms.
    assert watch.handle(sent(0, 6000, 0.02, 0.9, 0.01), loaded=False)[1] == []
    assert watch.late[0] > 0.5
    # The path is found to be longer all the same.
    _, found = watch.handle(sent(6000, 600, 0.026, 0.9, 0.01), loaded=False)
    assert [(quantity, change["kind"]) for quantity, change in found] == [("rtt_s", "agreed_missed")]
    assert found[0][1]["found_s"] <= START + 600 + 51
    assert watch.is_path_longer(0.02, 0.026) and not watch.is_path_longer(0.02, 0.03)
    before, after = watch.delays(found[0][1]["since_s"])
    assert before is not None and after is not None
    assert all(0.0055 < after[name] - before[name] < 0.0065 for name in ("min_s", "median_s"))
    # A host that is late with every packet lifts the least RTT too, and its lateness says so.
    watch = PathWatch(of, 9, tmp_path / "late")
    watch.handle([replace(one, rtt_ns=one.rtt_ns + 6 * 10**6, late_ns=one.late_ns + 6 * 10**6)
                  for one in sent(0, 1200, 0.02, 0.0, 0.0)], loaded=False)  # fmt: skip
    assert not watch.is_path_longer(0.02, 0.026)
    # Without a sign of lateness the median counts, and single bursts of a second do not.
    watch = PathWatch(of, 8, tmp_path / "other")
    stream = sent(0, 6000, 0.02, 0.0, 0.0)
    for number in range(0, 6000, 400):
        stream[number : number + 11] = sent(number, 11, 0.0222, 0.0, 0.0)
    assert watch.handle(stream, loaded=False)[1] == []


def test_the_journal_keeps_lateness_within_its_step() -> None:
    for late_ns in (0, 9_999, 10_000, 123_456, 5_000_000, 2_000_000_000, 10**12):
        (one,) = journal.decode(journal.encode([Sample(1, 2, 3, 4, 5, late_ns, late_ns // 3)]))
        for kept, given in ((one.late_ns, late_ns), (one.residence_ns, late_ns // 3)):
            # 6 % a step, 28 s at most.
            assert kept == 0 if given < 10_000 else 0.97 * min(given, 26 * 10**9) <= kept <= 1.03 * given


def test_a_path_that_falls_silent_while_a_test_runs_is_silent(tmp_path: Path) -> None:
    watch = PathWatch(spec(), 7, tmp_path)
    watch.handle(samples(0, 100), loaded=False)
    _, found = watch.handle(samples(100, 8, lost=True), loaded=True)
    assert [(quantity, change["kind"]) for quantity, change in found] == [("silence", "silent")]


def test_losses_of_an_outage_are_silence_and_what_comes_after_is_judged(tmp_path: Path) -> None:
    tests = (TestSpec("stamp", 10**8),)
    of = PathSpec("vienna", "192.0.2.1:862", None, None, 10**9, 10_000, "*vienna", {"loss": 1e-5}, (), False, tests)
    watch = PathWatch(of, 7, tmp_path)
    _, found = watch.handle(probes([(3000, 0.0), (200, 1.0), (200, 0.0), (1200, 0.05)]), loaded=False)
    kinds = [(quantity, change["kind"]) for quantity, change in found]
    assert kinds == [("silence", "silent"), ("silence", "answered"), ("loss", "agreed_missed")]


def test_outcomes_have_detectors_and_states_come_back(tmp_path: Path) -> None:
    watch = PathWatch(spec(available_bps=5e8), 7, tmp_path)
    found = []
    for number in range(40):
        value = 6e8 if number < 30 else 2e8
        outcome = {"estimates": [{"quantity": "available_bps", "value": value, "low": value, "high": value}]}
        found += watch.handle_outcome(START + 300.0 * number, outcome)
        if number == 29:
            watch.close()
            watch = PathWatch(spec(available_bps=5e8), 7, tmp_path)
    assert [(quantity, change["kind"]) for quantity, change in found] == [("available_bps", "agreed_missed")]
    assert watch.latest["available_bps"] == 2e8
    state = json.loads((tmp_path / "state.json").read_text())
    # A state that another version wrote: it learns anew.
    state["detectors"]["rtt_s"]["state"] = "{}"
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert PathWatch(spec(), 7, tmp_path).benchmark("rtt_s", START) is None


def test_an_hour_is_summarised_of_the_journal(tmp_path: Path) -> None:
    watch = PathWatch(spec(), 7, tmp_path)
    watch.handle(samples(0, 3650), loaded=False)
    assert list(watch.hour_rows()) == [], "a minute of the next hour has to end first"
    watch.handle(samples(3650, 60), loaded=False)
    rows = {str(one["quantity"]): one for one in watch.hour_rows()}
    assert rows["rtt_s"]["count"] == 3600 and rows["rtt_s"]["seconds"] == 3600 and rows["rtt_s"]["start"] == START
    assert rows["jitter_s"]["count"] == 3599 and list(watch.hour_rows()) == []


def test_a_clock_that_was_far_ahead_takes_no_hours(tmp_path: Path) -> None:
    watch = PathWatch(spec(), 7, tmp_path)
    watch.handle(samples(3590, 20), loaded=False)
    watch.handle(samples(400 * 86_400, 100), loaded=False)
    list(watch.hour_rows())
    rows = watch.handle(samples(7200, 3700), loaded=False)[0]
    assert len({one["start"] for one in rows}) >= 61
    assert START + 7200 in {one["start"] for one in watch.hour_rows()}


def test_a_loss_below_an_alert_is_measured_over_minutes(tmp_path: Path) -> None:
    """At ten packets a second a loss of 1e-3 is 0.6 packets a minute: the last minute's share says nothing."""
    watch = PathWatch(spec(loss=1e-5), 7, tmp_path)

    def lost(*numbers: int) -> list[Sample]:
        return [
            Sample((START * 10 + number) * 10**8, LOST if number in numbers else 20_000_000, 10**7, 55)
            for number in range(4800)
        ]

    watch.handle(lost(), loaded=False)
    assert watch.losses.value is None
    # A burst of 0.8 s is one event: too few.
    watch = PathWatch(spec(loss=1e-5), 8, tmp_path / "burst")
    watch.handle(lost(*range(100, 108)), loaded=False)
    assert watch.losses.value is None
    watch = PathWatch(spec(loss=1e-5), 9, tmp_path / "steady")
    watch.handle(lost(500, 1700, 2600, 3900), loaded=False)
    assert watch.losses.value == 4 / 4800
