"""Copies beside other programs: cells and their rows, targets, the page; and one program over an emulated path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from elephan.congestion_control import verify
from elephan.errors import InputError
from evaluation.performance.copy import page
from evaluation.performance.copy.cells import NO_PATH, Cell, Line, Payload, Row, append, cells_of, done, rows_in
from evaluation.performance.copy.judge import targets
from evaluation.performance.copy.payloads import laid, restore
from evaluation.performance.copy.tools import TOOLS, chosen
from evaluation.runner import ROOT
from tests.hosts import testbed

PROBLEM = testbed.missing() or verify.lacks()
LINE = Line(300, 100, 1e-4)


def row(tool: str, mbps: float, turn: int = 1, line: Line = LINE, payload: str = "1GB", **other: object) -> Row:
    """A run at a rate."""
    of = Payload(payload).bytes
    made = Row(line, payload, tool, turn, of * 8 / (mbps * 1e6), of, True)
    for name, value in other.items():
        setattr(made, name, value)
    return made


def test_a_row_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    for turn in (1, 2):
        append(file, row("scp", 100 * turn, turn))
    file.write_text(file.read_text()[:-20])
    (found,) = rows_in(file)
    assert found == row("scp", 100)
    assert done([found], (LINE, "1GB", "scp"), "") == 1 and done([found], (LINE, "1GB", "scp"), "new") == 0


def test_a_cell_is_the_median_of_its_newest_build() -> None:
    rows = [row("elephan-cubic-8", 10 * turn, turn, build="old") for turn in range(1, 9)]
    rows += [row("elephan-cubic-8", rate, build="new") for rate in (200, 290, 100)]
    (cell,) = cells_of(rows, 5).values()
    assert cell.mbps == pytest.approx(200) and len(cell.rows) == 3


def test_a_cell_says_who_limited_most_of_its_runs() -> None:
    rows = [row("scp", 1, busy=0.99), row("scp", 1, busy=0.99, own_drops=3), row("scp", 1, emulator_cpu=0.1)]
    assert Cell(rows).limits == ["machine"]
    assert page.marked(Cell(rows)) == "1 **m**"


def test_the_page_says_that_the_machine_did_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    # Of 20 s of two processors, the ends took 4 s, the emulator's thread 2 s.
    alone = row("scp", 800, cpu_near_s=3.0, cpu_far_s=1.0, emulator_cpu=0.2, busy=0.35)
    assert alone.seconds == pytest.approx(10) and page.others([alone]) == ""
    alone.busy = 1.0
    assert "in the median 70% of its processors' time" in page.others([alone])
    assert page.others([]) == ""


def test_small_files_are_judged_beside_one_file_of_the_nearest_size() -> None:
    rows = [row("elephan-cubic-8", 280), row("elephan-cubic-8", 200, payload="200MB")]
    rows += [row("elephan-cubic-8", 180, payload="small:5000")]
    (said,) = [target for target in targets(cells_of(rows, 5)) if target.text.startswith("small files")]
    assert said.verdict == "met" and "90.0%" in said.numbers and "200MB" in said.numbers


def test_the_picture_draws_the_payload_of_most_cells() -> None:
    rows = [row("scp", 10, line=Line(300, 50, loss), payload="200MB") for loss in (1e-4, 1e-3)]
    cells = cells_of([*rows, row("scp", 10, line=Line(300, 50, 1e-4))], 5)
    assert page.drawn_payload(cells, [line for line, _, _ in cells]) == "200MB"


@pytest.mark.parametrize("name", ["1 GB", "small:", "device:2", "10", ""])
def test_a_payload_of_another_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="--payload"):
        Payload(name)


def test_tools_are_chosen_by_name_or_beginning() -> None:
    assert [tool.name for tool in chosen("scp,rclone,cp")] == ["scp", "rclone-8", "cp"]
    assert {tool.name for tool in chosen("elephan")} == {name for name, tool in TOOLS.items() if tool.ours}
    with pytest.raises(InputError, match="--tools rcp"):
        chosen("rcp")


def test_targets_are_judged_one_by_one() -> None:
    rates = {"scp": 20, "rclone-8": 100, "lftp-8": 90, "elephan-bbr-8": 270, "elephan-cubic-8": 150}
    rows = [row(tool, rate) for tool, rate in rates.items()]
    rows += [row("elephan-resume-sender", 100, turn, seconds=3.1, extra={}) for turn in (1, 2, 3)]
    rows += [row("cp-b3sum", 9000, line=NO_PATH, cpu_near_s=1.0)]
    rows += [row("elephan-local-plaintext", 9000, line=NO_PATH, cpu_near_s=1.6)]
    judged = {target.text: target for target in targets(cells_of(rows, 5))}
    said = {text: target.verdict for text, target in judged.items() if target.verdict != "not measured"}
    assert said == {
        "loss 1e-4, 100 ms: at least 85% of the line": "met",
        "there: at least 10 times scp": "met",
        "there: at least 2 times the best of the others with 8 streams": "met",
        "resume after a kill: first new byte within 3 s and two RTTs": "met",
        "CPU time per GB in plaintext: at most 1.5 times that of cp and b3sum": "not met",
    }
    assert "13.5 times scp 20" in judged["there: at least 10 times scp"].numbers


def test_the_page_has_each_line_and_the_bounds_of_the_disk() -> None:
    rows = [row("scp", 20, version="9.2"), row("cp", 9000, line=NO_PATH)]
    rows += [row("scp", 1.5, line=Line(300, 100, 1e-3), complete=False)]
    text = page.text_of(cells_of(rows, 5))
    assert "| 300 Mbit/s, 100 ms | loss 0.0001 | loss 0.001 |" in text
    assert "| scp | 20 | >1.5 |" in text and "cp -r (no path): 9000." in text


def test_a_device_differs_in_a_fiftieth_and_is_made_so_again(tmp_path: Path) -> None:
    with laid(Payload("device:20MB"), tmp_path) as made:
        assert made.old is not None
        old = made.old.read_bytes()
        differs = sum(old[at : at + 65536] != made.source.read_bytes()[at : at + 65536] for at in made.changed)
        assert differs == len(made.changed) == 20_000_000 // 65536 // 50
        made.old.write_bytes(made.source.read_bytes())
        made.check()
        restore(made)
        assert made.old.read_bytes() == old
    assert not any(tmp_path.iterdir())


@pytest.mark.looks_at_kernel
@pytest.mark.skipif(bool(PROBLEM), reason=str(PROBLEM))
def test_a_program_copies_over_a_path_and_its_row_is_stored(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    words = ["--rate", "100", "--rtt", "10", "--loss", "0", "--payload", "2MB", "--tools", "scp", "--turns", "1"]
    command = [sys.executable, "-m", "evaluation.performance.copy", *words, "--busy", "--store", str(file)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True, timeout=100)
    (found,) = rows_in(file)
    assert found.complete and found.bytes == 2_000_000 and found.cpu_far_s > 0 and found.tool == "scp"
    # A stored row is not measured again.
    again = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert "scp" not in again.stderr and len(rows_in(file)) == 1
