"""Tables of docs/results/emulator.md, from what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elephan.errors import RunError
from elephan.path.report import Report
from evaluation.performance import netem
from evaluation.performance.emulator import LINES, Run, row

CORE = {"refused_packets": 0, "cpu_ns": 4e8, "elapsed_ns": 1e9, "waited_p99_ns": None, "stalls": 1, "precedence": True}


def run(received_bps: float, late_p99_ns: int) -> Run:
    """Return a run with a report."""
    core = CORE | {"late_p99_ns": late_p99_ns, "stalled_ns": 7_000_000, "failure": None}
    return Run(received_bps, Report(("forward", "reverse"), core, 0, 0))


def test_a_row_has_the_range_of_its_runs_and_those_not_honoured() -> None:
    cells = row(LINES[0], 4, [run(96.5e6, 60_000), run(96.5e6, 300_000), run(96.51e6, 70_000)])
    assert cells == ["100 Mbit/s, 1500 B", "4 processes", "96.5", "0.06 to 0.30", "7", "40", "1 of 3"]


FOUND = {
    "kernel_release": "6.1.0-40-cloud-amd64",
    "kernel": [{"goodput_bps": 4.67e6, "drops": 24, "retransmissions": 23, "faults": []}] * 2,
    "sim": [{"goodput_bps": 4.76e6, "drops": 25, "retransmissions": 25, "faults": []}] * 2,
}


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the place of a program that runs in place of scripts/netem.sh."""
    file = tmp_path / "netem.sh"
    monkeypatch.setattr(netem, "SCRIPT", file)
    return file


def says(file: Path, console: str, code: int) -> None:
    """Write a program that prints a console and ends."""
    file.write_text(f"#!/bin/sh\ncat <<'END'\n{console}\nEND\nexit {code}\n", encoding="utf-8")
    file.chmod(0o755)


def test_the_result_is_read_off_a_virtual_machines_console(script: Path) -> None:
    says(script, f"[    0.5] Linux boots\r\n{netem.MARK}{json.dumps(FOUND)}\r\nexit code: 0\r", 0)
    text = netem.text_of(netem.from_virtual_machine())
    assert text.startswith("netem of Linux 6.1.0 in a virtual machine")
    assert "| netem | 4.67, 4.67 | 24, 24 | 23, 23 |\n| simulator | 4.76, 4.76 | 25, 25 | 25, 25 |" in text


@pytest.mark.parametrize(("console", "code"), [("exit code: 0", 0), (f"{netem.MARK}{json.dumps(FOUND)}", 1)])
def test_a_machine_that_failed_is_an_error(script: Path, console: str, code: int) -> None:
    says(script, console, code)
    with pytest.raises(RunError, match="netem.sh ended with"):
        netem.from_virtual_machine()
