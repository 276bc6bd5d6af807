"""The report tells the emulator's faults from the network's losses; without root it is one line of error."""

from __future__ import annotations

from typing import Any

import pytest

from elephan.cli.main import call
from elephan.path import report, testbed, unprivileged

LINK: dict[str, Any] = {
    "delivered_packets": 10,
    "delivered_bytes": 15000,
    "dropped_by_queue": 3,
    "dropped_by_aqm": 0,
    "dropped_by_loss": 2,
    "dropped_by_outage": 0,
    "dropped_by_policer": 0,
    "marked_packets": 0,
}
CORE: dict[str, Any] = {
    "links": [LINK, LINK],
    "background": [],
    "late_count": 10,
    "late_p50_ns": 5_000,
    "late_p99_ns": 200_000,
    "late_max_ns": 9_000_000,
    "waited_p99_ns": 200_000,
    "refused_packets": 0,
    "joined_packets": 0,
    "stalls": 0,
    "stalled_ns": 0,
    "unroutable_packets": 0,
    "routers": {"expired_packets": 0, "too_big_packets": 0, "fragmented_packets": 0, "icmp_messages": 0},
    "cpu_ns": 10,
    "elapsed_ns": 100,
    "precedence": True,
    "failure": None,
    "event_times_s": [],
}
NAMES = ("path.forward", "path.reverse")
QUIET = {"tx": {"dropped": 0}, "rx": {"dropped": 0}}


def test_the_networks_losses_are_no_fault_of_the_emulator() -> None:
    done = report.of(NAMES, CORE, [QUIET, QUIET])
    assert done.faults() == []
    assert "dropped 3 in the queue, lost 2" in done.text() and "NOT HONOUR" not in done.text()


@pytest.mark.parametrize(
    ("core", "near", "word"),
    [
        ({"late_p99_ns": 200_001}, QUIET, "late"),
        ({"waited_p99_ns": 200_001}, QUIET, "waited"),
        ({"refused_packets": 1}, QUIET, "own buffers"),
        ({"failure": "reading from the device: gone"}, QUIET, "gone"),
        ({"cpu_ns": 96}, QUIET, "96 % of a core"),
        ({"precedence": False}, QUIET, "precedence"),
        ({}, {"tx": {"dropped": 4}, "rx": {"dropped": 0}}, "4 packets"),
        ({}, {"tx": {"dropped": 0}, "rx": {"dropped": 5}}, "5 packets"),
    ],
)
def test_the_emulators_faults_are_said_to_be_its_own(core: dict[str, Any], near: Any, word: str) -> None:
    done = report.of(NAMES, CORE | core, [near, QUIET])
    assert len(done.faults()) == 1 and word in done.faults()[0]
    assert "THE EMULATOR DID NOT HONOUR THE PATH" in done.text()


def test_a_machine_that_was_held_up_is_named_beside_what_came_of_it() -> None:
    held_up = CORE | {"stalls": 3, "stalled_ns": 52_000_000}
    assert report.of(NAMES, held_up, [QUIET, QUIET]).faults() == []
    faults = report.of(NAMES, held_up | {"late_p99_ns": 300_000}, [QUIET, QUIET]).faults()
    assert len(faults) == 2 and "stood still 3 times, 52.000 ms in all" in faults[1]
    once = report.of(NAMES, CORE | {"late_p99_ns": 9_000_000, "stalls": 1, "stalled_ns": 9_000_000}, [QUIET, QUIET])
    assert "stood still 1 time, " in once.faults()[1]


def test_without_root_there_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(testbed.os, "geteuid", lambda: 1000)
    assert call(["path", "clean"]) == 2
    # test_path_unprivileged.py tests the paths that users may have without root.
    monkeypatch.setattr(unprivileged, "TUN", "/dev/net/none")
    assert call(["path", "shell", "any.toml", "--", "true"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all("needs root" in line for line in lines)
