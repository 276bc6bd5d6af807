"""Forecasts of copies: file sets from text and trees, and times that line, ends and chance leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from elephan.advise.candidate import Candidate
from elephan.advise.facts import PathFacts
from elephan.advise.forecast import Ends, FileSet, forecast
from elephan.errors import InputError

CLEAN = PathFacts(rate_bps=100e6, rtt_s=0.02, queue_bytes=250_000)
LOSSY = PathFacts(rate_bps=100e6, rtt_s=0.05, queue_bytes=625_000, loss=1e-3)
FOUR = Candidate("cubic", 4, 4_000_000)
PAYLOAD = 1448 / 1500
QUICK_S = 0.3
"""Budget of a test, s of processor time."""


@pytest.mark.parametrize(
    ("text", "files", "data"),
    [
        ("2TB", 1, 2 * 10**12),
        ("1 x 1GB", 1, 10**9),
        ("100000 x 30kB", 100_000, 3 * 10**9),
        ("100_000 x 20kB-40kB", 100_000, 3 * 10**9),
        ("3x1MiB + 2 x 1kB", 5, 3 * 2**20 + 2000),
    ],
)
def test_a_file_set_is_read_from_text(text: str, files: int, data: int) -> None:
    found = FileSet.of_text(text)
    assert (found.files, found.bytes) == (files, data)
    assert sum(number for _, number in found.sizes) == files


@pytest.mark.parametrize("text", ["", "a lot", "0 x 1kB", "1.5 x 1kB", "3 x", "3 x 5", "2 x 4kB-1kB"])
def test_a_text_that_is_no_file_set_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(InputError, match="is no file set") as error:
        FileSet.of_text(text)
    assert "\n" not in str(error.value)


def test_a_tree_is_summed_up_by_size(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for number in range(20):
        (tmp_path / "inner" / f"{number}").write_bytes(b"x" * (1000 + number))
    (tmp_path / "large").write_bytes(b"y" * 100_000)
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("large")
    os.mkfifo(tmp_path / "fifo")
    found = FileSet.of_trees([tmp_path])
    assert (found.files, found.bytes) == (22, 20 * 1000 + 190 + 100_000)
    assert [number for _, number in found.sizes] == [1, 20, 1]
    assert FileSet.of_trees([tmp_path / "large"]).bytes == 100_000
    assert FileSet.of_trees([tmp_path / "inner"], changed=0.1).changed == 0.1
    with pytest.raises(InputError, match="no such file"):
        FileSet.of_trees([tmp_path / "missing"])


def test_a_clean_line_is_full_and_the_same_arguments_give_the_same_forecast() -> None:
    found = forecast(CLEAN, FOUR, FileSet.of_text("1 x 100MB"), budget_s=QUICK_S)
    assert 0.85 * 100e6 * PAYLOAD < found.goodput_bps < 100e6 * PAYLOAD
    assert found.seconds_low <= found.seconds <= found.seconds_high < 1.2 * found.seconds_low
    again = forecast(CLEAN, FOUR, FileSet.of_text("1 x 100MB"), budget_s=QUICK_S, workers=1)
    assert again == found


def test_two_terabytes_are_extrapolated_in_the_time_of_a_few_hundred_megabytes() -> None:
    found = forecast(LOSSY, FOUR, FileSet.of_text("2TB"), budget_s=QUICK_S)
    assert found.is_extrapolated and found.simulated_bytes < 2e9
    assert found.seconds > 2e12 * 8 / 100e6
    # A loss of 1e-3 leaves four streams of CUBIC less than a line: chance decides little over hours.
    assert 0.1 * 100e6 < found.goodput_bps < 0.9 * 100e6
    assert found.seconds_high < 1.6 * found.seconds_low
    assert "rest follows at the rate" in " ".join(found.explanation)


def test_what_the_facts_leave_open_widens_the_band() -> None:
    files = FileSet.of_text("1 x 200MB")
    sure = forecast(LOSSY, FOUR, files, budget_s=QUICK_S)
    open_facts = PathFacts(rate_bps=100e6, rtt_s=0.05, queue_bytes=625_000, loss=1e-3, ranges={"loss": (1e-4, 5e-3)})
    unsure = forecast(open_facts, FOUR, files, budget_s=QUICK_S)
    assert unsure.seconds_high - unsure.seconds_low > 1.5 * (sure.seconds_high - sure.seconds_low)


def test_the_slower_end_is_named() -> None:
    files = FileSet.of_text("1 x 50MB")
    found = forecast(CLEAN, FOUR, files, ends=Ends(write_bps=40_000_000), budget_s=QUICK_S)
    assert 10.0 <= found.seconds < 11.0
    assert "Its bound is the receiver's writing, 40.0 Mbit/s." in found.explanation
    slow = forecast(CLEAN, FOUR, FileSet.of_text("1000 x 1kB"), ends=Ends(file_s=0.005), budget_s=QUICK_S)
    assert 5.0 <= slow.seconds < 5.6 and any("time for each file" in line for line in slow.explanation)
    capped = forecast(CLEAN, FOUR, files, rate_bps=20_000_000, budget_s=QUICK_S)
    assert 20.0 <= capped.seconds < 21.0


def test_a_delta_takes_the_time_of_what_changed() -> None:
    changed = FileSet(1, 10**9, ((10**9, 1),), changed=0.02)
    found = forecast(CLEAN, FOUR, changed, budget_s=QUICK_S)
    assert found.seconds < 4 and found.goodput_bps > 100e6


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="both above zero"):
        forecast(PathFacts(rate_bps=0, rtt_s=0.02), FOUR, FileSet.of_text("1GB"))
    with pytest.raises(InputError, match="a file at least"):
        forecast(CLEAN, FOUR, FileSet(0, 0))
    with pytest.raises(InputError, match="at least 1"):
        forecast(CLEAN, Candidate("cubic", 0, 10**6), FileSet.of_text("1GB"))
    with pytest.raises(InputError, match="cannot be simulated: .*cubik"):
        forecast(CLEAN, Candidate("cubik", 1, 10**6), FileSet.of_text("1GB"))


def test_an_empty_set_takes_its_messages_alone() -> None:
    found = forecast(CLEAN, FOUR, FileSet(1, 0), budget_s=QUICK_S)
    # A connection, five round trips before and two after, and half of one on the way.
    assert 8 * 0.02 < found.seconds < 10 * 0.02 and found.goodput_bps == 0
