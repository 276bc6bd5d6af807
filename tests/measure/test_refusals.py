"""Refusals of `elephan measure` say which side is the cause, and what to do next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elephan.cli.main import call
from elephan.measure.refusals import CAUSES, advice_on

SOURCES = Path(__file__).parents[2] / "crates/path-test/src"

MESSAGES = {
    "the sender did not keep up with 106.0 Mbit/s": ("the sending host is the cause, not the path", "--from"),
    "the capacity is not known: of 638 groups none passed undisturbed, and no dispersion is frequent": (
        "other traffic fills the path, or one of the two hosts is busy",
        "--set capacity_bps=",
    ),
    "1 of 512 packets arrived": ("the path is the cause", "elephan measure loss"),
    "pairs give 900.0 Mbit/s, trains 90.0: the receiver coalesces interrupts, or several hops are full": (
        "the receiving host is the cause, not the path, unless several links of the path are full",
        "ethtool -C",
    ),
}


@pytest.mark.parametrize("refused", MESSAGES)
def test_a_refusal_names_the_cause_and_the_next_step(
    refused: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cost = {"packets": 1, "bytes": 1500, "seconds": 1.0}
    outcome = {"estimates": [], "refused": refused, "notes": [], "cost": cost}

    def path_test(*_: Any) -> str:
        return json.dumps(outcome)

    monkeypatch.setattr("elephan.core.native.path_test", path_test)
    assert call(["measure", "policer", "127.0.0.1:862"]) == 1
    err = capsys.readouterr().err
    (line,) = [line for line in err.splitlines() if line.startswith("error: ")]
    cause, step = MESSAGES[refused]
    assert refused in line and cause in line and "Next: " in line and step in line


def test_each_known_refusal_is_one_of_the_core() -> None:
    code = "".join(file.read_text() for file in SOURCES.rglob("*.rs"))
    for part, text in CAUSES:
        assert part in code, part
        assert "Next: " in text


def test_a_refusal_that_says_all_itself_stays_as_it_is() -> None:
    assert advice_on("hop 3: 192.0.2.1 refuses (ICMP type 3, code 13)") == ""
