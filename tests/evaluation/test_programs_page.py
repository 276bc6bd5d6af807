"""The page on programs, from what was measured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from elephan.errors import RunError
from evaluation.performance import programs
from evaluation.performance.programs import CASES, CHANNEL_BYTES, Case, Cell, ceiling_mbps, measured, text_of


def record(goodput_bps: float, *notes: str) -> Any:
    return SimpleNamespace(metrics={"goodput_bps": goodput_bps}, notes=list(notes))


def test_a_run_that_was_not_honoured_is_repeated_and_a_cell_without_enough_is_in_brackets() -> None:
    asked: list[tuple[str, int]] = []

    def measure(case: Case, rtt_ms: int, seed: int) -> Any:
        asked.append((case.name, seed))
        if case.program == "iperf3":
            return record(9e6, "EMULATOR: late")
        late = case.program == "scp" and seed == 1
        return record(seed * 1e6, "a note", *["EMULATOR: late"] * late)

    cells = measured(2, (40,), measure)
    assert [seed for name, seed in asked if name == "sftp"] == [1, 2]
    assert [seed for name, seed in asked if name == "scp"] == [1, 2, 3]
    assert [seed for name, seed in asked if name == "iperf3"] == [1, 2, 3, 4, 5]
    assert cells["scp", 40].text(2) == "2.5"
    assert cells["sftp", 40].text(2) == "1.5"
    assert cells["iperf3", 40].text(2) == "(9)"
    assert len(asked) == 2 * (len(CASES) - 2) + 3 + 5


def test_the_ceiling_is_a_window_per_round_trip_or_the_line() -> None:
    assert ceiling_mbps(CHANNEL_BYTES, 160, 500) == pytest.approx(104.8576)
    assert ceiling_mbps(CHANNEL_BYTES, 10, 500) == 500


def test_the_page_says_what_was_measured() -> None:
    cells = {
        (case.name, rtt_ms): Cell([50e6 if case.window_bytes else 400e6] * 3) for case in CASES for rtt_ms in (1, 160)
    }
    cells["scp", 160] = Cell([90e6], [95e6])
    text = text_of(cells, 3, (1, 160), 500, {"ssh": "9.2p1"})
    assert (
        "At 160 ms programs over OpenSSH get 50 to 90 Mbit/s of 500 Mbit/s, 48 to 86 % of 2 MiB per round trip" in text
    )
    assert "| scp | 50 | (90) |\n" in text and "| *2 MiB per round trip* | *500* | *105* |\n" in text
    assert "TCP alone get 400 Mbit/s there" in text and "ssh 9.2p1" in text and max(map(len, text.splitlines())) <= 120


def test_a_busy_machine_is_no_place_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "idle_share", lambda: 0.3)
    monkeypatch.setattr(programs, "WAIT_S", 0.0)
    with pytest.raises(RunError, match="the processors are 30 % idle: measure where nothing else runs"):
        programs.wait_for_quiet()


def test_the_idle_share_is_read_off_the_machine() -> None:
    assert 0 <= programs.idle_share(0.05) <= 1
