"""The closing line of all checks counts executed tests: a test that skipped itself has not passed."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path

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


def test_every_file_of_rust_tests_is_in_a_binary() -> None:
    """A crate with `autotests = false` names its binaries; a file of tests that no binary holds would run nowhere."""
    lost = []
    for manifest in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        described = tomllib.loads(manifest.read_text())
        folder = manifest.parent / "tests"
        if described["package"].get("autotests", True) or not folder.is_dir():
            continue
        held = {entry["name"] for entry in described["test"]} | {"main"}
        held |= set(re.findall(r"^mod (\w+);", (folder / "main.rs").read_text(), re.MULTILINE))
        there = {file.stem for file in folder.glob("*.rs")} | {file.parent.name for file in folder.glob("*/m*.rs")}
        lost += [f"{manifest.parent.name}/tests/{name}: name it in tests/main.rs" for name in sorted(there - held)]
    assert not lost, "\n".join(lost)


def test_no_test_is_in_a_doc_comment() -> None:
    """scripts/check.py runs the binaries that cargo compiles for tests; rustdoc's are none of them."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: make it a test"
        for path in sorted((ROOT / "crates").rglob("*.rs"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.match(r"\s*//[/!]\s*```(?!text)\w*$", line)
    ]
    assert not found, "\n".join(found)
