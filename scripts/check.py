"""Runs every check of the repository and adds up what they report.

Checks run in phases, the first two in two lanes side by side: set-up beside compiling the tests of Rust, then the
tests of Python beside those of Rust and the lints. So one lane computes while another waits: for one long function of
the linker, for a lock, for a timer of the kernel. Tests that touch the running kernel run one at a time, across both
lanes, at the usual priority; all else runs below it. In the last phase the tests that measure time run alone.

Each lint counts as one check; cargo's and pytest's tests count one by one. The last line on standard output is
``N passed, N failed, N skipped``, the exit status is 1 when anything failed, and the same line is left in
target/check-summary.txt. A runner that ends badly without naming a failed test (a build error, a crash, no tests found)
or that takes longer than its bound counts as one failure. A Rust test that says on stderr that it was skipped
(tests/rust/skip.rs) counts as skipped: cargo takes it for passed. A check's output is shown when it ends; until then it
grows in target/check/.
"""

from __future__ import annotations

import argparse
import fcntl
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SUMMARY = ROOT / "target" / "check-summary.txt"
CORES = os.cpu_count() or 1
SKIPPED = re.compile(r"SKIPPED (\w+(?:::\w+)+): ")
"""A Rust test that was skipped while it ran, by crate and name; it may say so of several of its parts. The harness
writes to another stream, and may have begun the line."""
CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;", re.MULTILINE)
CARGO_NOISE = re.compile(r"^(\s*|running \d+ tests?\s*|test .* ok\s*|test result: ok\..*)$")
KERNEL_CRATES = ("bpf", "kernel", "agent")
"""Crates whose tests touch the running kernel."""
LOWERED = 10
"""Niceness of all but tests that touch the kernel."""
BOUND_S = 2400
"""Bound of one command, some four times what the longest takes on two cores: what takes longer hangs."""
SECOND_TRIES_MAX = 10
"""Failures that may be the machine's; with more of them something is wrong."""
STUBTEST = ("mypy.stubtest", "--mypy-config-file", "pyproject.toml", "elephan._native")


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


@dataclass
class Check:
    """One row of the closing table."""

    name: str
    run: Callable[[], tuple[Count, str]]
    """Returns its counts, and what it has to say."""
    needed: bool = False
    """Tests cannot run without it."""


class Commands:
    """Commands that run now, each with the processes that it starts in a process group of its own."""

    def __init__(self, outputs: Path) -> None:
        """Outputs go to files of a folder, by number and program."""
        self._outputs = outputs
        self._running: set[subprocess.Popen[bytes]] = set()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._ended = False

    def run(
        self,
        command: Sequence[str | Path],
        folder: Path = ROOT,
        niceness: int = LOWERED,
        bound_s: float = BOUND_S,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[int, str]:
        """Run a command with `more` in its environment; return its exit code, and what it wrote to output and error.

        After `bound_s` its process group is killed; its output says so, and the exit code is not 0.
        """
        environment = os.environ | {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "CARGO_TERM_COLOR": "never",
            # tests/conftest.py gives tests that touch the kernel this priority.
            "ELEPHAN_USUAL_NICENESS": str(os.nice(0)),
            # One thread is the main one, which does not bear the name of the test that it runs.
            "RUST_TEST_THREADS": str(max(2, CORES)),
            **more,
        }
        self._outputs.mkdir(parents=True, exist_ok=True)
        with self._lock:
            if self._ended:
                raise KeyboardInterrupt
            log = self._outputs / f"{next(self._numbers):02}-{Path(command[0]).name}.txt"
            # A file, not a pipe: a process that outlives its command would keep a pipe open.
            with log.open("wb") as output:
                process = subprocess.Popen(
                    ["nice", "-n", str(niceness), *command],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    process_group=0,
                )
            self._running.add(process)
        over = ""
        try:
            status = process.wait(bound_s)
        except subprocess.TimeoutExpired:
            over = f"\nstill running after {bound_s:g} s, killed: {' '.join(map(str, command))}\n"
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait() or 1
        with self._lock:
            self._running.discard(process)
        return status, log.read_text(encoding="utf-8", errors="replace") + over

    def end(self) -> None:
        """Kill all that runs, for a run that is interrupted."""
        with self._lock:
            self._ended = True
            for process in self._running:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


COMMANDS = Commands(ROOT / "target" / "check")


def whole(*command: str, passed: int = 1) -> Callable[[], tuple[Count, str]]:
    """Return a check that passes or fails as a whole; `passed` is 0 for what is no check of its own."""

    def check() -> tuple[Count, str]:
        status, output = COMMANDS.run(command)
        if status == 0:
            return Count(passed=passed), output
        return Count(failed=1), output

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

    name: str
    program: Path
    folder: Path
    """The crate's, where cargo runs its tests."""

    @property
    def touches_kernel(self) -> bool:
        """Return True if its tests and those of tests/kernel* disturb each other."""
        return self.folder.name in KERNEL_CRATES


class RustTests:
    """All Rust tests but the Python face's, which has none and would need a shared libpython to link."""

    PACKAGES = ["--workspace", "--exclude", "elephan-python", "--message-format", "json-render-diagnostics"]
    # `cargo test` would compile all examples, or this one as a test. With the same packages it has the same features.
    COMPILE = [
        ["cargo", "test", *PACKAGES, "--lib", "--tests", "--no-run"],
        ["cargo", "build", *PACKAGES, "--example", "digest"],
    ]

    def __init__(self) -> None:
        self.binaries: list[Binary] = []
        self.digest: Path | None = None
        """The example that prints the digest of a run."""

    def compile(self) -> tuple[Count, str]:
        """Compile the tests, which is no check of its own."""
        for command in self.COMPILE:
            status, output = COMMANDS.run(command)
            said = []
            for line in output.splitlines():
                if line.startswith('{"reason"'):
                    self._take(json.loads(line))
                else:
                    said.append(line)
            if status != 0:
                return Count(failed=1), "\n".join(said)
        return Count(), ""

    def _take(self, message: dict[str, Any]) -> None:
        """Note an executable that cargo has made."""
        if message["reason"] != "compiler-artifact" or not message["executable"]:
            return
        name, program = message["target"]["name"], Path(message["executable"])
        if message["profile"]["test"]:
            self.binaries.append(Binary(name, program, Path(message["manifest_path"]).parent))
        elif name == "digest":
            self.digest = program

    def run(self) -> tuple[Count, str]:
        """Run the tests, those that touch the kernel first."""
        total, said = Count(failed=int(not self.binaries)), []
        with kernel_alone():
            done = [self._run(binary, niceness=0) for binary in self.binaries if binary.touches_kernel]
        done += [self._run(binary, niceness=LOWERED) for binary in self.binaries if not binary.touches_kernel]
        for count, output in done:
            total += count
            said.append(output)
        return total, "\n".join(said)

    def _run(self, binary: Binary, niceness: int) -> tuple[Count, str]:
        began = time.monotonic()
        status, output = COMMANDS.run([binary.program], binary.folder, niceness)
        count = counted(output)
        if status != 0 and count.failed == 0:
            count.failed = 1
        lines = [f"{binary.folder.name}, {binary.name}: {count} ({time.monotonic() - began:.0f} s)"]
        # Passing tests are noise in a log; failures are not.
        lines += [line for line in output.splitlines() if not CARGO_NOISE.match(line)]
        return count, "\n".join(lines)


RUST = RustTests()


@contextmanager
def kernel_alone() -> Iterator[None]:
    """Keep the tests of Python that touch the running kernel waiting (tests/conftest.py)."""
    with open(Path(tempfile.gettempdir()) / "elephan-tests.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pytest(report: Path, *options: str, niceness: int = LOWERED, paths: Sequence[str] = ()) -> tuple[Count, str]:
    """Run tests of Python that options choose below `paths`, all of them without; pytest writes `report` for this.

    Up to `SECOND_TRIES_MAX` that fail are run once more, one at a time and at the usual priority, and named with their
    result: some hundred tests wait for live processes and networks, and a machine that is late makes one of them fail
    now and then. What is wrong fails twice. Tests marked as searches have one try: what they find once is there.
    """
    # A folder of its own for each: --last-failed reads there what failed.
    cache = ["-o", f"cache_dir={report.with_suffix('.cache')}"]
    count, output = _pytest(report, [*cache, "--cache-clear", *options, *paths], niceness)
    if not report.exists() or not 0 < count.failed <= SECOND_TRIES_MAX:
        return count, output
    again = report.with_name(f"{report.stem}-again.xml")
    only_failed = ["--last-failed", "--last-failed-no-failures", "none", "-m", "not search"]
    second, said = _pytest(again, [*cache, *only_failed, *paths], 0)
    if not again.exists():
        return count, f"{output}\n{said}"
    passed = min(second.passed, count.failed)
    names = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in ElementTree.parse(again).getroot().iter("testcase")
        if case.find("failure") is None and case.find("error") is None and case.find("skipped") is None
    ]
    shown = "".join(f"\nFAILED AT FIRST, passed alone: {name}" for name in names)
    return Count(count.passed + passed, count.failed - passed, count.skipped), f"{output}\n{said}{shown}"


def _pytest(report: Path, options: Sequence[str], niceness: int) -> tuple[Count, str]:
    """Run pytest once; return what its report counts."""
    report.unlink(missing_ok=True)
    # A test of the soak would call cargo for it, which waits while clippy holds the lock.
    environment = {} if RUST.digest is None else {"ELEPHAN_DIGEST": str(RUST.digest)}
    command = [sys.executable, "-m", "pytest", "-q", "--durations=15", f"--junit-xml={report}", *options]
    status, output = COMMANDS.run(command, niceness=niceness, more=environment)
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


def python_tests() -> tuple[Count, str]:
    """Run all tests of Python but those that measure time.

    There are two workers more than cores: the one that has the kernel's tests waits most of its time, and the others
    often, for disks, databases and locks. A file's tests stay together because they share its fixtures.
    """
    workers = ["-n", str(CORES + 2), "--dist", "loadfile"]
    return pytest(ROOT / "target" / "pytest.xml", *workers, "-m", "not measures_time")


def timed_tests() -> tuple[Count, str]:
    """Run the tests of Python that measure time."""
    return pytest(ROOT / "target" / "pytest-timed.xml", "-m", "measures_time", niceness=0)


SET_UP = Check("set-up", whole("make", "dev", passed=0), needed=True)
COMPILE = Check("compile", RUST.compile, needed=True)
AGENT = Check("agent", whole("scripts/agent.sh", passed=0))
"""The agent that tests/hosts sends to its hosts; they say what is missing without it."""
LINTS_BY_CARGO = [
    Check("cargo fmt", whole("cargo", "fmt", "--all", "--check")),
    Check("clippy", whole("cargo", "clippy", "-q", "--workspace", "--all-targets", "--", "-D", "warnings")),
]
LINTS_AFTER_SET_UP = [
    Check("ruff", whole(sys.executable, "-m", "ruff", "check", ".")),
    Check("mypy", whole(sys.executable, "-m", "mypy")),
    Check("stubtest", whole(sys.executable, "-m", *STUBTEST)),
    Check("run spec", whole(sys.executable, "scripts/run_spec_types.py")),
]
"""Lints that need the native module, or packages that set-up brings."""
RUST_TESTS, PYTHON_TESTS = Check("cargo test", RUST.run), Check("pytest", python_tests)
TIMED_TESTS = Check("pytest alone", timed_tests)

Lane = list[Check]
PHASES: dict[str, list[list[Lane]]] = {
    "all": [
        [[SET_UP], [COMPILE, AGENT]],
        [[RUST_TESTS, *LINTS_BY_CARGO, *LINTS_AFTER_SET_UP], [PYTHON_TESTS]],
        [[TIMED_TESTS]],
    ],
    "lint": [[LINTS_AFTER_SET_UP, LINTS_BY_CARGO]],
    "test": [[[SET_UP], [COMPILE, AGENT]], [[RUST_TESTS], [PYTHON_TESTS]], [[TIMED_TESTS]]],
}
"""Lanes that run side by side, one set of them after another, by what was asked for."""


def in_lanes(lanes: Sequence[Lane]) -> list[tuple[Check, Count, float]]:
    """Run lanes side by side; return each check with its counts and seconds. A needed one that fails ends its lane."""
    printing = threading.Lock()
    done: list[tuple[Check, Count, float]] = []

    def follow(lane: Lane) -> None:
        for check in lane:
            with printing:
                print(f"== {check.name} begins", flush=True)
            began = time.monotonic()
            count, output = check.run()
            took_s = time.monotonic() - began
            with printing:
                print(f"== {check.name}: {count} ({took_s:.0f} s)", flush=True)
                if output.strip():
                    print(output.rstrip(), flush=True)
                done.append((check, count, took_s))
            if check.needed and count.failed:
                return

    with ThreadPoolExecutor(len(lanes)) as pool:
        try:
            for future in [pool.submit(follow, lane) for lane in lanes]:
                future.result()
        except BaseException:
            COMMANDS.end()
            raise
    return done


def main() -> int:
    """Run the checks and print the closing line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["lint", "test"], default="all", help="one kind of check")
    phases = PHASES[parser.parse_args().only]
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    SUMMARY.parent.mkdir(exist_ok=True)
    SUMMARY.unlink(missing_ok=True)
    done: list[tuple[Check, Count, float]] = []
    for lanes in phases:
        done += in_lanes(lanes)
        if any(check.needed and count.failed for check, count, _ in done):
            break
    total = sum((count for _, count, _ in done), Count())
    print("==", *(f"{check.name:<14}{count}  ({took_s:.0f} s)" for check, count, took_s in done), total, sep="\n")
    SUMMARY.write_text(f"{total}\n", encoding="utf-8")
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
