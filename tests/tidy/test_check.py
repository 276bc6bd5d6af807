"""The closing line of all checks counts executed tests, once each, and comes even when a check hangs."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

from tests import processes

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("check", ROOT / "scripts" / "check.py")
assert SPEC is not None and SPEC.loader is not None
check = sys.modules.setdefault("check", importlib.util.module_from_spec(SPEC))
SPEC.loader.exec_module(check)

OUTPUT = """
running 3 tests
test a::measured ... ok
test b ... SKIPPED drives::a::measured: cheetah9LP.trace is not there
SKIPPED drives::a::measured: cheetah9LP.parv is not there
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s

SKIPPED tshark::a::measured: tshark is not installed
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
"""


def test_a_rust_test_that_skipped_itself_is_counted_as_skipped_and_once() -> None:
    assert str(check.counted(OUTPUT)) == "1 passed, 1 failed, 3 skipped"


def test_the_line_that_rust_writes_is_the_one_that_is_counted() -> None:
    text = (ROOT / "tests" / "rust" / "skip.rs").read_text()
    assert 'format!("SKIPPED {}::{test}: {why}\\n"' in text


def test_no_rust_test_says_by_itself_that_it_is_skipped() -> None:
    found = [
        f"{path.relative_to(ROOT)}: count it with tests/rust/skip.rs"
        for path in sorted((ROOT / "crates").rglob("*.rs"))
        if any("skipped: " in line.lower() and "print" in line for line in path.read_text().splitlines())
    ]
    assert not found, "\n".join(found)


def test_a_check_that_hangs_fails_after_its_bound_with_what_it_said_and_leaves_no_process(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 1000 & echo $! $$ >{pids}; echo so far; wait"
    status, output = check.Commands(tmp_path).run(["sh", "-c", script], bound_s=2)
    assert status != 0
    assert output.startswith("so far\n") and "still running after 2 s, killed: sh -c" in output
    assert processes.end([int(pid) for pid in pids.read_text().split()])


def test_what_needs_a_check_that_failed_does_not_run_and_the_other_lane_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails() -> object:
        return check.Count(failed=1), "no compiler"

    def passes() -> object:
        return check.Count(passed=2), ""

    lanes = [[check.Check("build", fails, needed=True), check.Check("test", passes)], [check.Check("lint", passes)]]
    done = {ran.name: count for ran, count, _ in check.in_lanes(lanes)}
    assert done == {"build": check.Count(failed=1), "lint": check.Count(passed=2)}
    assert "== build: 0 passed, 1 failed, 0 skipped (0 s)\nno compiler\n" in capsys.readouterr().out


def test_all_but_tests_of_the_kernel_run_at_a_lower_priority(tmp_path: Path) -> None:
    script = "import os, json; print(json.dumps([os.nice(0), os.environ['ELEPHAN_USUAL_NICENESS']]))"
    usual = os.nice(0)
    for niceness in (0, 5):
        _, output = check.Commands(tmp_path).run([sys.executable, "-c", script], niceness=niceness)
        assert json.loads(output) == [min(usual + niceness, 19), str(usual)]


TESTS = """
import pathlib, pytest

@pytest.mark.parametrize("number", range(3))
def test_late(number, request):
    before = pathlib.Path(__file__).with_name("before")
    if number == 1 and not before.exists():
        before.touch()
        raise AssertionError("the machine was late")

def test_wrong():
    assert False

@pytest.mark.search
def test_search():
    found = pathlib.Path(__file__).with_name("found")
    assert found.exists() or found.touch()
"""


def test_what_failed_for_the_machine_has_a_second_try_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "COMMANDS", check.Commands(tmp_path / "outputs"))
    (tmp_path / "test_it.py").write_text(TESTS)
    count, said = check.pytest(tmp_path / "report.xml", paths=[str(tmp_path / "test_it.py")])
    assert str(count) == "3 passed, 2 failed, 0 skipped"
    named = [line for line in said.splitlines() if line.startswith("FAILED AT FIRST")]
    assert len(named) == 1 and named[0].endswith("test_late[1]")


def test_many_failures_are_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "COMMANDS", check.Commands(tmp_path / "outputs"))
    (tmp_path / "test_it.py").write_text(TESTS.replace("range(3)", "range(3, 20)").replace("number == 1 and", ""))
    monkeypatch.setattr(check, "SECOND_TRIES_MAX", 2)
    count, said = check.pytest(tmp_path / "report.xml", paths=[str(tmp_path / "test_it.py")])
    assert count.failed == 3 and "FAILED AT FIRST" not in said
