"""Runs every check of the repository and adds up what they report.

Each lint counts as one check; cargo's and pytest's tests count one by one. The last line on standard output is
``N passed, N failed, N skipped``, the exit status is 1 when anything failed, and the same line is left in
target/check-summary.txt. A runner that ends badly without naming a failed test (a build error, a crash, no tests found)
counts as one failure. A Rust test that says on stderr that it was skipped (tests/rust/skip.rs) counts as skipped: cargo
takes it for passed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SUMMARY = ROOT / "target" / "check-summary.txt"
SKIPPED = re.compile(r"SKIPPED (\w+(?:::\w+)+): ")
"""A Rust test that was skipped while it ran, by crate and name; it may say so of several of its parts. The harness
writes to another stream, and may have begun the line."""
STUBTEST = ["mypy.stubtest", "--mypy-config-file", "pyproject.toml", "elephan._native"]
CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;", re.MULTILINE)


@dataclass
class Count:
    """Counts that one runner reported."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run(command: list[str], *, capture: bool = False) -> tuple[int, str]:
    """Run a command in the repository; its output is shown as it comes, and returned when `capture` is set."""
    environment = os.environ | {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "CARGO_TERM_COLOR": "never",
        # One thread is the main one, which does not bear the name of the test that it runs.
        "RUST_TEST_THREADS": str(max(2, os.cpu_count() or 1)),
    }
    if not capture:
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode, ""
    lines: list[str] = []
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=pipe, stderr=both, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            # Binaries without tests and passing tests are noise in a log; failures and results are not.
            if not re.match(r"^(\s*|running \d+ tests?\s*|test .* ok\s*|\s*Running .*|\s*Doc-tests .*)$", line):
                print(line, end="", flush=True)
    return process.returncode, "".join(lines)


def lint(command: list[str]) -> Callable[[], Count]:
    """A check that passes or fails as a whole."""

    def check() -> Count:
        status, _ = run(command)
        return Count(passed=1) if status == 0 else Count(failed=1)

    return check


def counted(output: str) -> Count:
    """Return the tests of cargo's output."""
    count = Count()
    for match in CARGO_RESULT.finditer(output):
        count += Count(*(int(number) for number in match.groups()))
    skipped = len(set(SKIPPED.findall(output)))
    return count + Count(passed=-skipped, skipped=skipped)


def cargo_test() -> Count:
    """All Rust tests but the Python face's, which has none and would need a shared libpython to link."""
    command = ["cargo", "test", "--workspace", "--exclude", "elephan-python", "--no-fail-fast"]
    status, output = run(command, capture=True)
    count = counted(output)
    if status != 0 and count.failed == 0:
        count.failed = 1
    return count


def pytest() -> Count:
    """All Python tests, on every core; a file's tests stay together because they share its fixtures."""
    report = ROOT / "target" / "pytest.xml"
    report.unlink(missing_ok=True)
    workers = str(os.cpu_count() or 1)
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--dist", "loadfile", f"--junit-xml={report}"]
    status, _ = run(command)
    if not report.exists():
        return Count(failed=1)
    count = Count()
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        tests, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        count += Count(passed=max(0, tests - failed - skipped), failed=failed, skipped=skipped)
    if status != 0 and count.failed == 0:
        count.failed = 1
    return count


CHECKS: list[tuple[str, str, Callable[[], Count]]] = [
    ("lint", "cargo fmt", lint(["cargo", "fmt", "--all", "--check"])),
    ("lint", "ruff", lint([sys.executable, "-m", "ruff", "check", "."])),
    ("lint", "mypy", lint([sys.executable, "-m", "mypy"])),
    ("lint", "stubtest", lint([sys.executable, "-m", *STUBTEST])),
    ("lint", "run spec", lint([sys.executable, "scripts/run_spec_types.py"])),
    ("lint", "clippy", lint(["cargo", "clippy", "-q", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    ("test", "cargo test", cargo_test),
    ("test", "pytest", pytest),
]


def main() -> int:
    """Run the checks and print the closing line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["lint", "test"], help="one kind of check")
    only = parser.parse_args().only
    SUMMARY.parent.mkdir(exist_ok=True)
    SUMMARY.unlink(missing_ok=True)
    total, lines = Count(), []
    for kind, name, check in CHECKS:
        if only not in (None, kind):
            continue
        print(f"== {name}", flush=True)
        began = time.monotonic()
        count = check()
        lines.append(f"{name:<12}{count}  ({time.monotonic() - began:.0f} s)")
        total += count
    print("==", *lines, total, sep="\n")
    SUMMARY.write_text(f"{total}\n", encoding="utf-8")
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
