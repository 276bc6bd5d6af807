"""Kill commands at random moments while they make a store, upgrade one, and write their first runs.

    python -m tests.store.kills 200            # on SQLite; with --server postgresql or mariadb on a server of its own

Each round forks a process that opens a store and saves runs, tells of each run that it saved, and is killed at a moment
drawn over the time that this takes. Another process then has to find every run that was told of, and to save one more.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

# Here and not in the processes that are killed, where it would take most of their time.
import alembic.command
import numpy as np
from sqlalchemy import create_engine

from elephan.record import Record
from elephan.store import Series, Store
from elephan.store import migrate as migrations
from elephan.store.place import as_url
from elephan.store.revision import REVISIONS
from tests.store.servers import server

FORMATS = Path(__file__).parent / "formats"
RUNS = 3
"""Runs that each process saves."""

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)


def series(number: int) -> Series:
    """Return short series that differ from run to run."""
    values = np.arange(200) * float(number + 1)
    return Series.from_columns({"time_s": values, "cwnd_packets": values}, {"time_s": values})


def record(number: int) -> Record:
    """Return a run."""
    made = Record.from_json((FORMATS / "record-1.json").read_text())
    taken = series(number)
    info = {"flow_rows": taken.flow.num_rows, "link_rows": taken.link.num_rows, "sha256": taken.digest()}
    return Record.model_validate(made.model_dump() | {"id": f"{number:016x}", "series": info})


def writer(location: str, folder: Path, first: int, told: int) -> None:
    """Open the store, save runs, and tell of each; the process ends here."""
    with Store(location, folder) as store:
        for number in range(first, first + RUNS):
            store.save(record(number), series(number))
            os.write(told, bytes([number]))


def forked(work: Callable[[int], None]) -> tuple[int, int]:
    """Do `work` in a process of its own; return its id and the pipe that it tells by."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            work(write)
            status = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    os.close(write)
    return pid, read


def told_by(pipe: int) -> list[int]:
    """Return the runs that a process reported until it ended."""
    with os.fdopen(pipe, "rb") as file:
        return list(file.read())


def look(location: str, folder: Path, expected: list[int]) -> None:
    """Check that the reported runs are whole, and that the store takes another one."""
    with Store(location, folder) as store:
        found = {int(one.id, 16): one for one in store.list() if one.series is not None}
        assert set(expected) <= set(found), f"told of {sorted(expected)}, found {sorted(found)}"
        for one in found.values():
            taken = store.series(one.id)
            assert taken is not None and taken.digest() == one.series.sha256, one.id
        before = store.count()
        store.save(record(200), series(200))
        assert store.count() == before + 1


def new(locations: Callable[[], str]) -> str:
    """Return a place where no store is."""
    return locations()


def old(locations: Callable[[], str]) -> str:
    """Return the place of a store of the revision before, with a run in it."""
    location = locations()
    if "://" not in location:
        with sqlite3.connect(location) as connection:
            connection.executescript((FORMATS / "store-0001.sql").read_text())
        connection.close()
        return location
    engine = create_engine(as_url(location))
    with engine.begin() as connection:
        migrations.upgrade(connection, REVISIONS[0])
    engine.dispose()
    return location


def round_of(begin: Callable[[], str], draw: random.Random, folder: Path, longest_s: float) -> tuple[str, int]:
    """Kill one process; return the state of the store by then, and the number of reported runs."""
    location = begin()
    pid, pipe = forked(lambda told: writer(location, folder, 0, told))
    time.sleep(draw.uniform(0, longest_s))
    os.kill(pid, draw.choice(SIGNALS))
    _, status = os.waitpid(pid, 0)
    told = told_by(pipe)
    ended = "ended before" if os.WIFEXITED(status) else "killed"
    assert ended == "killed" or os.WEXITSTATUS(status) == 0, f"the writer failed: {status}"
    pid, pipe = forked(lambda _: look(location, folder, told))
    _, status = os.waitpid(pid, 0)
    os.close(pipe)
    assert status == 0, f"{location}: after {told} were told of"
    return ended, len(told)


def how_long(begin: Callable[[], str], folder: Path) -> float:
    """Return the duration of a process that is not killed, s."""
    location = begin()
    began_s = time.monotonic()
    pid, pipe = forked(lambda told: writer(location, folder, 0, told))
    _, status = os.waitpid(pid, 0)
    assert (status, told_by(pipe)) == (0, list(range(RUNS)))
    return time.monotonic() - began_s


def kills(count: int, locations: Callable[[], str], folder: Path, seed: int) -> Counter[str]:
    """Kill `count` processes, half of them on new stores and half on old ones; return the states found, by kind."""
    draw = random.Random(seed)
    found: Counter[str] = Counter()
    for name, kind in (("new store", new), ("old store", old)):

        def begin(kind: Callable[[Callable[[], str]], str] = kind) -> str:
            shutil.rmtree(folder, ignore_errors=True)
            return kind(locations)

        longest_s = how_long(begin, folder)
        for _ in range(count // 2):
            ended, told = round_of(begin, draw, folder, longest_s)
            found[f"{name}, {ended}, {told} runs told of"] += 1
    return found


def main() -> None:
    """Kill, and print the states found; an assertion that fails names the store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", choices=["postgresql", "mariadb"])
    given = parser.parse_args()
    assert alembic.command and series(0) and record(0)
    with tempfile.TemporaryDirectory(prefix="elephan-kills-") as name:
        made = 0

        def file() -> str:
            nonlocal made
            made += 1
            return f"{name}/{made}.sqlite"

        with server(given.server) if given.server else nullcontext() as running:
            locations = file if running is None else running.database
            found = kills(given.count, locations, Path(name) / "series", given.seed)
    for what, number in sorted(found.items()):
        print(f"{number:5d}  {what}")
    print(f"{found.total()} kills: nothing lost, nothing stuck")


if __name__ == "__main__":
    main()
