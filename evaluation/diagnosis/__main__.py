"""`python -m evaluation.diagnosis --measure`, as root: flows of a known limit, watched and diagnosed; writes
docs/results/diagnosis.md. Without `--measure` it judges the samples in out/evaluation again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from elephan.errors import InputError
from elephan.path import testbed
from evaluation.diagnosis import cases, measuring, page
from evaluation.diagnosis.cases import Case
from evaluation.diagnosis.measuring import Seen
from evaluation.requirements import exit_code
from evaluation.runner import OUT

ROUNDS = 3
"""Times that a case runs whose packets the emulator held up."""
SEED = 20261201
"""Of the draw that is published."""


def main() -> int:
    """Measure, judge, write."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.diagnosis", description=__doc__)
    parser.add_argument("--measure", action="store_true", help="run the flows; some ten minutes")
    parser.add_argument(
        "--seed", type=int, default=SEED, help="of the draw; another one than the default is not written"
    )
    parser.add_argument("--share", type=float, default=1.0, help="part of the flows of a draw")
    options = parser.parse_args()
    file = OUT / f"diagnosis-{options.seed}.jsonl.gz"
    if options.measure:
        problem = testbed.missing()
        if problem is not None:
            raise InputError(f"evaluation.diagnosis {problem}")
        _measure(cases.draw(options.seed, options.share), file)
    elif not file.exists():
        raise InputError(f"{file} is not there: --measure")
    judged = [page.judge(one) for one in _stored(file)]
    text = page.text(judged, options.seed, datetime.now(UTC).strftime("%Y-%m-%d"))
    if options.seed == SEED and options.share == 1.0:
        page.write(text, judged)
    else:
        print(text)
    return 0


def _measure(drawn: Sequence[Case], file: Path) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    # As the backend kernel has its own traffic: an application that strangers keep waiting is the limit itself.
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    seen: dict[str, Seen] = {}
    for number in range(ROUNDS):
        left = [case for case in drawn if case.name not in seen or seen[case.name].was_held_up()]
        groups = measuring.batches(left)
        for place, batch in enumerate(groups, 1):
            print(f"round {number + 1}, {place} of {len(groups)}: {len(batch)} paths", file=sys.stderr, flush=True)
            seen |= {one.case.name: one for one in measuring.run(batch)}
    with gzip.open(file, "wt") as out:
        for one in seen.values():
            out.write(json.dumps(asdict(one)) + "\n")


def _stored(file: Path) -> list[Seen]:
    with gzip.open(file, "rt") as lines:
        return [Seen.of(json.loads(line)) for line in lines]


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.diagnosis", main))
