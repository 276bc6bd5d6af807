"""Forecasts by earlier runs: a fixed part and a rate, by the command, and against runs made up of both."""

from __future__ import annotations

import json
import random
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elephan.backup.config import load
from elephan.backup.forecasts import HISTORY
from elephan.backup.history import ASSUMED_S, NEAR, History
from elephan.backup.ledger import Ledger
from elephan.backup.retention import name_of
from tests.backup.conftest import Backup, Site

OFF = re.compile(r"[0-9] (h|µs|ns|days)\b")
"""A time of hours, or of microseconds: none of these runs is forecast as such."""
CHANGE = 'data = { change = "12B" }'


def store(site: Site, *runs: tuple[int, float], total: int = 20_100_000) -> None:
    """Write runs of the job, oldest first, as (sent bytes, seconds)."""
    ledger = Ledger(str(site.folder / "store.sqlite"), "dr")
    try:
        (job,) = load(site.file).jobs
        ledger.put_job(job, "active", None)
        for number, (sent, seconds) in enumerate(runs):
            begun = time.time() - 3600 + number
            row = ledger.new_run("records", "incremental", name_of(begun), None, 0)
            ledger.put_run(
                row, state="done", begun=begun, ended=begun + seconds, attempts=1, files=1, bytes=total,
                sent_bytes=sent, seconds=seconds,
            )  # fmt: skip
    finally:
        ledger.close()


def told(backup: Backup) -> dict[str, Any]:
    """Return the forecast of the job."""
    done = backup("forecast", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    return dict(found)


def test_the_time_of_a_run_with_little_data_is_no_rate(site: Site, backup: Backup) -> None:
    site.job(CHANGE)
    store(site, (20_100_000, 3.31), (12, 1.93))
    found = told(backup)
    for name in ("first", "restore"):
        # 1.93 s, and 1.38 s of data.
        assert found[name]["seconds"] == pytest.approx(3.31, abs=0.01)
        assert found[name]["fixed_s"] == pytest.approx(1.93, rel=1e-3)
        assert 2 < found[name]["seconds_low"] < 3.31 < found[name]["seconds_high"] < 5
        assert found[name]["goodput_bps"] == pytest.approx(8 * 20.1e6 / 1.38, rel=0.01)
    assert found["run"]["seconds"] == pytest.approx(1.93) and 1.3 < found["run"]["seconds_low"] <= 1.74
    text = backup("forecast").stdout
    assert "rate of 1 earlier run: 117 Mbit/s" in text and "compare and commit: 1.93 s in 1 earlier run" in text
    assert not OFF.search(text), text


def test_a_first_copy_tells_the_rate_however_many_small_runs_follow(site: Site, backup: Backup) -> None:
    site.job(CHANGE)
    store(site, (20_100_000, 3.31), *[(12, 1.9 + 0.001 * number) for number in range(60)])
    assert told(backup)["restore"]["seconds"] == pytest.approx(3.31, abs=0.05)


def test_without_a_run_that_tells_a_rate_there_is_no_forecast_of_much_data(site: Site, backup: Backup) -> None:
    site.job('data = { first = "20.1MB", change = "12B" }')
    store(site, (12, 1.93), (700, 1.74), total=712)
    found = told(backup)
    assert found["first"] is None and found["restore"] is None and found["rto_s"] is None
    assert "no earlier run tells its rate: each took little longer than start, connect and commit" in found["notes"][0]
    assert found["run"]["seconds"] == pytest.approx(1.83, abs=0.1)


def test_a_simulated_copy_begins_with_the_fixed_part_of_earlier_runs(site: Site, backup: Backup) -> None:
    path = '[[path]]\nname = "osc"\nrate = "100Mbit/s"\nrtt = "10ms"\n'
    site.job('path = "osc"', CHANGE, top=path)
    store(site, (20_100_000, 3.31), (12, 1.93))
    found = told(backup)
    # 1.61 s at the path's rate, and slow start.
    assert 1.93 + 1.61 < found["first"]["seconds"] < 1.93 + 2.5 and found["first"]["source"] == "simulation"
    # The earlier run has connected too.
    assert found["run"]["seconds"] == pytest.approx(1.93, rel=0.01)


def test_real_runs_at_a_limit_are_forecast_by_its_arithmetic(site: Site, backup: Backup) -> None:
    # 2 s of data.
    site.job('rate = "16Mbit/s"')
    site.write("big", random.Random(1).randbytes(4_000_000))
    for number in range(3):
        site.write("a.txt", f"content {number}")
        done = backup("run", "records", "--once")
        assert done.returncode == 0, done.stderr
    # Milliseconds are those of this machine's load, and no rate of 9 B.
    assert " forecast " in done.stderr and "bit/s" not in done.stderr, done.stderr
    found = told(backup)
    assert 1.5 < found["first"]["seconds_low"] <= found["first"]["seconds_high"] < 4
    assert found["run"]["seconds_high"] < 1.5 and 1e7 < found["restore"]["goodput_bps"] < 2.5e7
    restored = backup("restore", "records", "--to", site.folder / "restored")
    assert restored.returncode == 0 and " forecast " in restored.stdout and not OFF.search(restored.stdout)


@settings(max_examples=200)
@given(
    fixed_s=st.floats(0.05, 10), rate_bps=st.floats(2e5, 1e10), share=st.floats(1, 1000), times=st.floats(0.0, 100),
    tiny=st.lists(st.tuples(st.floats(0, 0.05), st.floats(0.9, 1.1)), min_size=1, max_size=20),
    pace=st.floats(0.9, 1.1),
)  # fmt: skip
def test_a_copy_takes_a_fixed_part_and_its_data(
    fixed_s: float, rate_bps: float, share: float, times: float, tiny: list[tuple[float, float]], pace: float
) -> None:
    first = max(1_000_000, round(share * fixed_s * rate_bps / 8))
    small = [(round(part * fixed_s * rate_bps / 8), vary * fixed_s + part * fixed_s) for part, vary in tiny]
    history = History((*small, (first, fixed_s + 8 * first / (pace * rate_bps))))
    bytes_ = round(times * first)
    found, true_s = history.forecast(bytes_), fixed_s + 8 * bytes_ / (pace * rate_bps)
    assert found is not None and found.seconds_low <= true_s * 1.1 and true_s * 0.9 <= found.seconds_high
    assert found.seconds == pytest.approx(true_s, rel=0.25) and found.seconds_low >= 0.4 * fixed_s
    more = history.forecast(bytes_ + first)
    assert more is not None and more.seconds > found.seconds


def test_runs_of_one_size_tell_a_rate_within_what_the_fixed_part_may_be() -> None:
    history = History(((20_000_000, 10.0), (10_000_000, 10.0), (40_000_000, 10.0)))
    found = history.forecast(20_000_000)
    assert found is not None and found.seconds == 10.0
    # At the rate of the quickest 5 s, of the slowest 20 s; the fixed part is in each of them.
    low_s, _, high_s = ASSUMED_S
    assert found.seconds_low == pytest.approx(low_s + (10 - high_s) / 2)
    assert found.seconds_high == pytest.approx(high_s + 2 * (10 - low_s))


def test_a_run_stands_for_about_as_much_data_even_if_it_tells_no_rate() -> None:
    short = History(((50_000_000, 0.3),))
    found = short.forecast(NEAR * 50_000_000)
    assert found is not None and 0.3 <= found.seconds <= 0.6 and "no earlier run tells a rate" in found.explanation[0]
    assert short.forecast(NEAR * 50_000_000 + 1) is None
    failed = [{"state": "failed", "sent_bytes": 5, "seconds": 1.0}]
    assert History.of_rows(failed).forecast(1) is None and History().forecast(0) is None


def test_a_run_that_stalled_does_not_move_the_fixed_part() -> None:
    usual = [(12, 1.9)] * (HISTORY // 2)
    fixed = History((*usual, (12, 300.0), (10**9, 30.0))).fixed
    assert fixed.middle_s == pytest.approx(1.9, rel=0.01) and fixed.high_s < 2.5
