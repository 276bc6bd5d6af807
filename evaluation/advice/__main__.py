"""`python -m evaluation.advice`: judges the advice in the simulator; `--page` writes docs/results/advice.md.

Cells come from two seeds: constants were found on those of the first, the second was drawn at test time. Each judged
cell is a line of a file in out/evaluation/advice; a run that was ended goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from evaluation.advice import cells, page
from evaluation.requirements import exit_code
from evaluation.runner import OUT

SEED = 1
"""Of the cells on which constants were found."""
COUNT = 500
FOLDER = OUT / "advice"


def file_of(seed: int, folder: Path = FOLDER) -> Path:
    """Return the file with the judged cells of a seed."""
    return folder / f"cells-{seed}.jsonl"


def read(file: Path) -> list[dict[str, Any]]:
    """Return judged cells; a line that was cut off is none."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def run(seed: int, count: int, workers: int, judge: Callable[[cells.Cell], dict[str, Any]], file: Path) -> None:
    """Judge the cells of a seed that are not in its file yet."""
    file.parent.mkdir(parents=True, exist_ok=True)
    done = {one["index"] for one in read(file)}
    lock = threading.Lock()

    def one(cell: cells.Cell) -> None:
        try:
            result = judge(cell)
        except Exception:
            print(f"cell {cell.index}: {traceback.format_exc()}", file=sys.stderr, flush=True)
            return
        with lock, file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(result) + "\n")

    with ThreadPoolExecutor(workers) as pool:
        missing = [cell for cell in cells.drawn(seed, count) if cell.index not in done]
        # The dearest last: time runs out, and the page says up to which cost all were judged.
        list(pool.map(one, sorted(missing, key=lambda cell: (cells.cost(cell) > cells.DEAR, cell.index))))


def main() -> int:
    """Judge, print, write."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.advice", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"seed of the cells ({SEED})")
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help=f"cells ({COUNT})")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="cells at once (1)")
    parser.add_argument("--kernel", action="store_true", help="on the kernel backend: needs root")
    parser.add_argument("--page", action="store_true", help="write docs/results/advice.md from what was judged")
    parser.add_argument("--fresh", type=int, metavar="N", help="with --page: the seed that was drawn at test time")
    options = parser.parse_args()
    if options.page:
        kernel = [one for file in sorted(FOLDER.glob("kernel-*.jsonl")) for one in read(file)]
        page.write(options.seed, options.fresh, lambda seed: read(file_of(seed)), kernel)
        return 0
    if options.kernel:
        from evaluation.advice import on_kernel

        file = FOLDER / f"kernel-{options.seed}.jsonl"
        run(options.seed, options.count, 1, on_kernel.judged, file)
        print(on_kernel.summary(read(file)))
        return 0
    from evaluation.advice.judge import judged

    run(options.seed, options.count, options.workers, judged, file_of(options.seed))
    print(page.summary(read(file_of(options.seed))))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.advice", main))
