"""A year of ten paths at one sample a second, as a monitor would have stored it: its size, and how long drawing takes.

The samples are synthetic (`elephan.monitor.synthetic`): delays with a daily pattern and noise with a tail of 10 to 80
us, losses, changes of routes and queues. Writing them takes some ten minutes and 1.5 GB.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from elephan.monitor.reading import MonitorReader
from elephan.monitor.synthetic import fill as fill_store
from elephan.monitor.tables import monitor_folder
from elephan.store.place import Place
from elephan.units import count
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code

COMMAND = "python -m evaluation.monitor.store"
PAGE = "monitor.md"
DAY = 86_400
PATHS, DAYS = 10, 365
DRAWS = 30
"""Draws of each span."""


def size(place: str, days: int) -> str:
    """Return the table of sizes."""
    store = Place.of(place)
    folder = monitor_folder(store)
    raw = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    today = sum(path.stat().st_size for path in folder.rglob("*.journal"))
    assert store.file is not None
    database = sum(path.stat().st_size for path in store.file.parent.glob(f"{store.file.name}*"))
    samples = PATHS * days * DAY
    rows = [
        ["raw samples, Parquet by day", f"{raw / 1e6:.0f}"],
        ["today's journals", f"{today / 1e6:.0f}"],
        ["summaries, outcomes, alerts: SQLite", f"{database / 1e6:.0f}"],
        ["all", f"{(raw + today + database) / 1e6:.0f}"],
    ]
    said = fill(
        f"{PATHS} paths, {days} days, {count(samples)} samples: {raw / samples:.2f} bytes a sample. Summaries of "
        "minutes are kept for 30 days, those of hours for all of it."
    )
    return f"{said}\n\n{table(['', 'MB'], rows)}"


def drawing(place: str, days: int, seed: int = 1) -> str:
    """Return the table of times to read a series as a page draws it, the process's first read left out."""
    rng = random.Random(seed)
    rows = []
    with MonitorReader(place) as reader:
        paths = [one.id for one in reader.paths()]
        end = max(one.last_sample_s or 0.0 for one in reader.paths())
        reader.series(paths[0], "rtt_s", end - DAY, end)
        for name, span in (("a day", DAY), ("a week", 7 * DAY), ("a month", 30 * DAY), ("all of it", days * DAY)):
            times = []
            for _ in range(DRAWS):
                until = end - rng.uniform(0, max(0, days * DAY - span))
                quantity = rng.choice(["rtt_s", "loss", "reverse_delay_s", "jitter_s"])
                began_s = time.perf_counter()
                reader.series(rng.choice(paths), quantity, until - span, until)
                times.append(time.perf_counter() - began_s)
            rows.append([name, f"{1e3 * statistics.median(times):.0f}", f"{1e3 * max(times):.0f}"])
    said = fill(f"{DRAWS} draws of each span: any path, time and quantity of delay or loss, in 2,000 points.")
    return f"{said}\n\n{table(['span', 'ms, median', 'ms, largest'], rows)}"


def measure(folder: Path, days: int) -> Mapping[str, str]:
    """Return the parts."""
    place = str(folder / "results.sqlite")
    fill_store(place, paths=PATHS, days=days, seed=1)
    return {"size": size(place, days), "drawing": drawing(place, days)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write; return the exit code."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument(
        "--days", type=int, default=DAYS, help="days of samples; prints, and writes no page, unless 365"
    )
    options = parser.parse_args(arguments)

    def work() -> None:
        with tempfile.TemporaryDirectory(prefix="elephan-monitor-") as folder:
            parts = measure(Path(folder), options.days)
        if options.days == DAYS:
            write_parts(PAGE, COMMAND, parts)
        else:
            print("\n\n".join(parts.values()))

    return exit_code(COMMAND, work)


if __name__ == "__main__":
    sys.exit(main())
