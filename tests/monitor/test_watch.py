"""A path that is watched: minutes, detectors, and a restart that makes again what a kill has taken."""

from __future__ import annotations

import json
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
