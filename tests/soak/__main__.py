"""Draw scenarios at random and run each several times: every run has to give the same, to the byte.

    make soak MINUTES=60                   # seeds from the clock on, for so long
    python -m tests.soak --seed 17         # one scenario again; --print shows it as TOML

The optimised core runs each with 1 worker and with 2, and the core alone runs it with debug assertions, which hold
TCP's counters to a recount, by horizons, on one core and on several, and one event after the other. Between scenarios
it does the latter with runs that are drawn for horizons. A failure prints the command that repeats it, and the soak
goes on; exit code 1 at the end.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from elephan.api import jobs_of, load
from elephan.backends import Job
from elephan.errors import ElephanError
from elephan.record import canonical_json
from elephan.sweep.executor import execute
from tests.determinism.digest import digest_of
from tests.soak.draw import drawn

ROOT = Path(__file__).resolve().parents[2]
CARGO = ["cargo", "build", "--quiet", "--package", "experiment", "--message-format", "short"]
FAILED = ROOT / "out" / "soak"
"""Folder of the specifications of runs for horizons that failed."""
RANDOM_RUNS = 5
"""Runs for horizons between two scenarios."""
TIME_LIMIT_S = 300
"""For one scenario with debug assertions, which takes seconds: beyond it hangs."""


class Failed(Exception):
    """A scenario that failed, and why, in a line or more."""


def with_assertions() -> Path:
    """Build the core's digest program with debug assertions. Raises CalledProcessError."""
    subprocess.run([*CARGO, "--example", "digest", "--example", "engines"], cwd=ROOT, check=True)
    return ROOT / "target" / "debug" / "examples" / "digest"


def soak(seed: int, program: Path) -> int:
    """Run the scenario of a seed in every way; return how many runs it has. Raises `Failed`."""
    with tempfile.TemporaryDirectory(prefix="elephan-") as folder:
        file = Path(folder) / f"soak-{seed}.toml"
        file.write_text(drawn(seed))
        try:
            jobs = jobs_of(load(file))
            first, second = recorded(jobs, 1), recorded(jobs, 2)
        # A panic of the core is no Exception.
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            kind = "" if isinstance(error, ElephanError) else f"{type(error).__name__}: "
            raise Failed(f"{kind}{error}") from error
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            if one != other:
                raise Failed(f"run {number}: 1 worker and 2 workers give different records")
        asserted = by_assertions(jobs, program, Path(folder))
        for number, (job, digest) in enumerate(zip(jobs, asserted, strict=True)):
            if digest_of(job.spec) != digest:
                raise Failed(f"run {number}: the core with debug assertions gives another record")
    return len(jobs)


def recorded(jobs: list[Job], workers: int) -> list[str]:
    """Return the records of all jobs, without the machine's part, digests of series among them."""
    outcomes = execute(jobs, workers=workers, again=True)
    return [canonical_json(outcome.record.reproducible()) for outcome in outcomes]


def by_assertions(jobs: list[Job], program: Path, folder: Path) -> list[str]:
    """Return the digests of all jobs by the core with debug assertions. Raises `Failed` when one of them fails."""
    files = []
    for number, job in enumerate(jobs):
        files.append(folder / f"{number}.json")
        files[-1].write_text(canonical_json(job.spec))
    try:
        done = subprocess.run([program, "--engines", *files], capture_output=True, text=True, timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Failed(f"with debug assertions: not done after {TIME_LIMIT_S} s") from None
    if done.returncode != 0:
        raise Failed(f"with debug assertions: {done.stderr.strip()}")
    return [line.split()[0] for line in done.stdout.splitlines()]


def by_engines(seed: int, program: Path) -> None:
    """Compare both engines with runs that are drawn for horizons. Raises `Failed`: the specifications are left."""
    FAILED.mkdir(parents=True, exist_ok=True)
    first = str(seed * RANDOM_RUNS)
    try:
        done = subprocess.run(
            [program, "--random", first, str(RANDOM_RUNS), FAILED], capture_output=True, text=True, timeout=TIME_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"runs for horizons from {first} on: not done after {TIME_LIMIT_S} s") from None
    if done.returncode != 0:
        raise Failed(f"runs for horizons: {done.stdout.strip()} {done.stderr.strip()}")


def main() -> int:
    """Soak for a time, or repeat one seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--first", type=int, metavar="N", help="the first seed (default: the time of day)")
    parser.add_argument("--seed", type=int, metavar="N", help="only this one")
    parser.add_argument("--print", action="store_true", help="print the scenario of --seed and do nothing")
    chosen = parser.parse_args()
    if chosen.print:
        if chosen.seed is None:
            parser.error("--print needs --seed")
        print(drawn(chosen.seed), end="")
        return 0
    program = with_assertions()
    first = int(time.time()) if chosen.first is None else chosen.first
    end = time.monotonic() + 60 * chosen.minutes
    scenarios = runs = failures = 0
    for seed in [chosen.seed] if chosen.seed is not None else itertools.count(first):
        if scenarios and time.monotonic() > end:
            break
        scenarios += 1
        try:
            runs += soak(seed, program)
            by_engines(seed, program.with_name("engines"))
        except Failed as failure:
            failures += 1
            print(f"seed {seed}: {failure}\n  again: {sys.executable} -m tests.soak --seed {seed}", flush=True)
    print(f"{scenarios} scenarios, {runs} runs each made five times, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
