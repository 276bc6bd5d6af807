"""CPU time of all simulated runs behind the papers' pages, estimated from samples.

    python -m evaluation.performance.papers                       # up to 3 runs of each scenario, of all papers
    python -m evaluation.performance.papers --most 10 --paper dr

Of each scenario in `evaluation/papers` runs are taken evenly, from the middle of equal parts. Their mean times the
number of the scenario's runs is its time; runs that scripts make without a scenario file are not in it. CPU time of a
loaded machine is longer: compare two builds in turns.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from elephan.core import native
from elephan.record import canonical_json
from evaluation.performance.engines import ROOT
from evaluation.performance.specs import evenly, jobs_in

PAPERS = ROOT / "evaluation" / "papers"


def scenario_s(path: Path, most: int) -> tuple[float, int]:
    """Return the estimated CPU time of all runs of a scenario, s, and their number."""
    jobs = jobs_in(path)
    spent = []
    for index in evenly(len(jobs), most):
        started = time.process_time()
        native.simulate(canonical_json(jobs[index].spec))
        spent.append(time.process_time() - started)
    return (sum(spent) / len(spent) * len(jobs) if spent else 0.0), len(jobs)


def main() -> int:
    """Print a line for each scenario and each paper; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=3, help="runs of one scenario (default 3)")
    parser.add_argument("--paper", help="one paper alone")
    arguments = parser.parse_args()
    total_s = 0.0
    for paper in sorted(folder for folder in PAPERS.iterdir() if folder.is_dir()):
        if arguments.paper not in (None, paper.name):
            continue
        paper_s = 0.0
        for path in sorted(paper.glob("*.toml")):
            spent_s, runs = scenario_s(path, arguments.most)
            if runs == 0:
                continue
            print(f"{paper.name}/{path.stem}: {spent_s:.1f} s for {runs} runs", flush=True)
            paper_s += spent_s
        print(f"{paper.name}: {paper_s:.0f} s", flush=True)
        total_s += paper_s
    print(f"all: {total_s:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
