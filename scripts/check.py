"""Runs every check of the repository and adds up what they report.

First come the lints of Python beside what cargo compiles, then the tests of Python beside those of Rust, so that one
lane works where another waits: for one long function, for a lock, for a kernel's timer. The output of a check is shown
when it ends.

Each lint counts as one check; cargo's and pytest's tests count one by one. The last line on standard output is
``N passed, N failed, N skipped``, the exit status is 1 when anything failed, and the same line is left in
target/check-summary.txt. A runner that ends badly without naming a failed test (a build error, a crash, no tests found)
counts as one failure. A Rust test that says on stderr that it was skipped (tests/rust/skip.rs) counts as skipped: cargo
takes it for passed.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SUMMARY = ROOT / "target" / "check-summary.txt"
SKIPPED = re.compile(r"SKIPPED (\w+(?:::\w+)+): ")
"""A Rust test that was skipped while it ran, by crate and name; it may say so of several of its parts. The harness
writes to another stream, and may have begun the line."""
KERNEL_CRATES = ("bpf", "kernel")
NICE = 10
"""Added to the priority of all checks."""
CARGO_TEST = ["cargo", "test", "--workspace", "--exclude", "elephan-python"]
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


Check = Callable[[], tuple[Count, str]]
"""Returns its counts, and what it has to say."""


def run(command: Sequence[str | Path], folder: Path = ROOT) -> tuple[int, str]:
    """Run a command; return its exit code, and what it wrote to standard output and error."""
    environment = os.environ | {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "CARGO_TERM_COLOR": "never",
        # One thread is the main one, which does not bear the name of the test that it runs.
        "RUST_TEST_THREADS": str(max(2, os.cpu_count() or 1)),
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return done.returncode, done.stdout


def lint(*command: str) -> Check:
    """Return a check that passes or fails as a whole."""

    def check() -> tuple[Count, str]:
        status, output = run(command)
        return Count(passed=1) if status == 0 else Count(failed=1), output

    return check


def counted(output: str) -> Count:
    """Return the tests of cargo's output."""
    count = Count()
    for match in CARGO_RESULT.finditer(output):
        count += Count(*(int(number) for number in match.groups()))
    skipped = len(set(SKIPPED.findall(output)))
    return count + Count(passed=-skipped, skipped=skipped)


@dataclass
class Binary:
    """Tests of a crate, compiled."""

    program: Path
    folder: Path
    """The crate's, where cargo runs its tests."""

    @property
    def touches_kernel(self) -> bool:
        """Return True if its tests and those of tests/kernel* disturb each other."""
        return self.folder.name in KERNEL_CRATES


def compiled() -> tuple[int, str, list[Binary]]:
    """Compile all Rust tests but the Python face's, which has none and would need a shared libpython to link.

    Returns cargo's exit code, what it has to say, and the tests.
    """
    status, output = run([*CARGO_TEST, "--no-run", "--message-format", "json-render-diagnostics"])
    said, binaries = [], []
    for line in output.splitlines():
        if not line.startswith("{"):
            said.append(line)
            continue
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            binaries.append(Binary(Path(message["executable"]), Path(message["manifest_path"]).parent))
    return status, "\n".join(said), binaries


def worth_showing(output: str) -> str:
    """Return a test binary's output without its passing tests, empty when all of them passed."""
    noise = re.compile(r"^(\s*|running \d+ tests?\s*|test .* ok\s*|test result: ok\..*)$")
    return "\n".join(line for line in output.splitlines() if not noise.match(line))


@contextmanager
def kernel_alone() -> Iterator[None]:
    """Keep the tests of Python that touch the running kernel waiting (tests/conftest.py)."""
    with open(Path(tempfile.gettempdir()) / "elephan-tests.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def rust_compiles() -> tuple[Count, str]:
    """Compile what `rust_tests` runs. No check of its own: errors are those of the tests."""
    _, output, _ = compiled()
    return Count(), output


def rust_tests() -> tuple[Count, str]:
    """Run all tests of Rust, those that touch the kernel first."""
    status, output, binaries = compiled()
    count, shown = Count(), [output] if status != 0 else []
    if status != 0:
        count.failed += 1

    def ran(binary: Binary) -> None:
        nonlocal count
        status, output = run([binary.program], binary.folder)
        these = counted(output)
        if status != 0 and these.failed == 0:
            these.failed = 1
        count += these
        if text := worth_showing(output):
            shown.append(f"{binary.folder.name}, {binary.program.name}:\n{text}")

    with kernel_alone():
        for binary in binaries:
            if binary.touches_kernel:
                ran(binary)
    for binary in binaries:
        if not binary.touches_kernel:
            ran(binary)
    return count, "\n".join(shown)


def pytest() -> tuple[Count, str]:
    """Run all tests of Python, one worker more than cores: those that touch the kernel wait most of their time."""
    report = ROOT / "target" / "pytest.xml"
    report.unlink(missing_ok=True)
    workers = str((os.cpu_count() or 1) + 1)
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--dist", "loadfile", f"--junit-xml={report}"]
    status, output = run(command)
    if not report.exists():
        return Count(failed=1), output
    count = Count()
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        tests, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        count += Count(passed=max(0, tests - failed - skipped), failed=failed, skipped=skipped)
    if status != 0 and count.failed == 0:
        count.failed = 1
    return count, output


Lane = Sequence[tuple[str, Check]]
"""Checks that follow each other."""

LINTS: Lane = [
    ("cargo fmt", lint("cargo", "fmt", "--all", "--check")),
    ("ruff", lint(sys.executable, "-m", "ruff", "check", ".")),
    ("mypy", lint(sys.executable, "-m", "mypy")),
    ("stubtest", lint(sys.executable, "-m", *STUBTEST)),
    ("run spec", lint(sys.executable, "scripts/run_spec_types.py")),
]
CLIPPY: Lane = [("clippy", lint("cargo", "clippy", "-q", "--workspace", "--all-targets", "--", "-D", "warnings"))]
COMPILE: Lane = [("compile", rust_compiles)]
TESTS: list[Lane] = [[("cargo test", rust_tests)], [("pytest", pytest)]]

PHASES: dict[str | None, list[list[Lane]]] = {
    None: [[LINTS, [*CLIPPY, *COMPILE]], TESTS],
    "lint": [[LINTS, CLIPPY]],
    "test": [[COMPILE], TESTS],
}
"""By what was asked for: lanes that run side by side, one set of them after another."""


def in_lanes(lanes: Sequence[Lane]) -> list[tuple[str, Count, float]]:
    """Run lanes side by side; return name, counts and seconds of each check."""
    printing = threading.Lock()
    done: list[tuple[str, Count, float]] = []

    def follow(lane: Lane) -> None:
        for name, check in lane:
            with printing:
                print(f"== {name} begins", flush=True)
            began = time.monotonic()
            count, output = check()
            took_s = time.monotonic() - began
            with printing:
                print(f"== {name}: {count} ({took_s:.0f} s)", *filter(None, [output.rstrip()]), sep="\n", flush=True)
                done.append((name, count, took_s))

    with ThreadPoolExecutor(len(lanes)) as pool:
        for future in [pool.submit(follow, lane) for lane in lanes]:
            future.result()
    return done


def main() -> int:
    """Run the checks and print the closing line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["lint", "test"], help="one kind of check")
    only = parser.parse_args().only
    # Tests that touch the kernel go back to the usual priority (tests/conftest.py): they need the processor in time.
    os.nice(NICE)
    SUMMARY.parent.mkdir(exist_ok=True)
    SUMMARY.unlink(missing_ok=True)
    done = [check for lanes in PHASES[only] for check in in_lanes(lanes)]
    total = sum((count for _, count, _ in done), Count())
    lines = [f"{name:<12}{count}  ({took_s:.0f} s)" for name, count, took_s in done]
    print("==", *lines, total, sep="\n")
    SUMMARY.write_text(f"{total}\n", encoding="utf-8")
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
