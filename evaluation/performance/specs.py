"""Write the specifications of this repository's simulated runs as files, for the programs that take them.

    python -m evaluation.performance.specs FOLDER                # W1 to W6 of make bench, whole
    python -m evaluation.performance.specs FOLDER --scenarios 50 # runs of all scenarios, cut to so many ms

Programs: `cargo run --release -p experiment --example bench -- FOLDER/W1.json` times one run, and `--example engines --
FOLDER/*.json` compares the engines on each.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elephan.api import jobs_of, load
from elephan.backends import Job
from elephan.errors import ElephanError
from elephan.record import canonical_json
from evaluation.performance.__main__ import load_workloads
from evaluation.performance.dumbbell import run_spec
from evaluation.performance.engines import ROOT

PLACES = ("examples", "evaluation", "tests/determinism")
"""Folders with scenarios."""
NS_PER_MS = 1_000_000


def workloads() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return name and specification of each workload of `make bench`."""
    for workload in load_workloads():
        yield workload.name, run_spec(workload.bell)


def scenario_files() -> list[Path]:
    """Return all TOML files that may be scenarios."""
    return sorted(path for place in PLACES for path in (ROOT / place).rglob("*.toml"))


def evenly(count: int, most: int) -> list[int]:
    """Return up to `most` of the numbers below `count`, from the middle of equal parts."""
    parts = min(count, most)
    return [(2 * n + 1) * count // (2 * parts) for n in range(parts)]


def jobs_in(path: Path) -> list[Job]:
    """Return the jobs of a file with a scenario; none where it is something else, or needs files that are not there."""
    try:
        return list(jobs_of(load(path)))
    except ElephanError:
        return []


def of_scenarios(milliseconds: int, most: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return name and specification of up to `most` runs of each scenario, evenly taken, cut to `milliseconds`."""
    for path in scenario_files():
        jobs = jobs_in(path)
        name = "-".join(path.relative_to(ROOT).with_suffix("").parts)
        for index in evenly(len(jobs), most):
            spec: dict[str, Any] = dict(jobs[index].spec)
            spec["duration_ns"] = min(int(spec["duration_ns"]), milliseconds * NS_PER_MS)
            warmup_ns = min(int(spec["measure"]["warmup_ns"]), spec["duration_ns"] // 2)
            spec["measure"] = spec["measure"] | {"warmup_ns": warmup_ns}
            yield f"{name}-{index}", spec


def main() -> int:
    """Write the files; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scenarios", type=int, metavar="MS", help="runs of scenarios, cut to so many ms")
    parser.add_argument("--most", type=int, default=6, help="runs of one scenario (default 6)")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    found = workloads() if arguments.scenarios is None else of_scenarios(arguments.scenarios, arguments.most)
    for name, spec in found:
        (arguments.folder / f"{name}.json").write_text(canonical_json(spec), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
