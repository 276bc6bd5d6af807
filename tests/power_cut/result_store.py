"""The store: runs that `elephan run` reported as stored."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet

from tests.copy.model import command
from tests.power_cut import places

if TYPE_CHECKING:
    from tests.power_cut.recording import Recorder

COMMANDS = 8
SCENARIO = """\
[run]
duration = "2s"

[path]
bandwidth = "5Mbit/s"
rtt = "40ms"
queue = "30 packets"

[[flow]]
congestion_control = "reno"

[sweep]
"path.queue" = ["20 packets", "30 packets"]
"""
RUNS = 2
"""Of each command."""
LIMIT_S = 900.0
STORE = places.DISK / "results.sqlite"


def run_words(folder: Path, seed: int) -> list[list[bytes]]:
    """Return a command that stores `RUNS` runs."""
    file = folder / "scenario.toml"
    file.write_text(SCENARIO)
    return [[str(word).encode() for word in ("run", file, "--store", STORE, "--seed", seed, "--no-report")]]


class ResultStore:
    """A store that gets runs."""

    def prepare(self, work: Path, draw: random.Random) -> None:
        """Nothing is drawn."""

    def record(self, recorder: Recorder) -> None:
        """Run, and mark the end of each command."""
        command.load(places.ROOT, LIMIT_S)
        recorder.mark("done 0")
        for number in range(1, COMMANDS + 1):
            result = command.start(run_words(places.ROOT, number), places.ROOT / "state").wait(LIMIT_S)
            if result.code != 0:
                raise RuntimeError(result.output)
            recorder.mark(f"done {number}")

    def judge(self, work: Path, marks: list[str]) -> list[str]:
        """Runs of commands that have ended are there with their series, and the store takes further ones."""
        count = int(marks[-1].split()[1]) * RUNS if marks else 0
        lines = []
        database = places.database_copy(STORE)
        if count or database.exists():
            lines += stored(database, count)
        if lines:
            return lines
        state = places.ROOT / "state"
        for words in ([[b"results", b"check", b"--store", bytes(STORE)]] if count else []), run_words(places.ROOT, 999):
            result = command.start(words, state).wait()
            if result.code != 0:
                lines.append(f"elephan {words[0][0].decode()}: exit code {result.code}: {result.output.strip()[-400:]}")
        return lines


def stored(database: Path, count: int) -> list[str]:
    """Return what is wrong with a database that has at least `count` runs, as SQLite and Arrow see it."""
    connection = sqlite3.connect(database)
    try:
        if (found := connection.execute("pragma integrity_check").fetchall()) != [("ok",)]:
            return [f"integrity_check: {found}"]
        rows = list(_runs(connection))
    finally:
        connection.close()
    lines = [f"{len(rows)} runs, should be {count} at least"] if len(rows) < count else []
    for run, *names in rows:
        for name in names:
            if name is None:
                continue
            try:
                pyarrow.parquet.read_table(STORE.with_suffix(".series") / name)
            except Exception as error:
                lines.append(f"run {run}: {name}: {error}")
    return lines


def _runs(connection: sqlite3.Connection) -> Iterator[tuple[str, str | None, str | None]]:
    tables = {name for (name,) in connection.execute("select name from sqlite_master")}
    if "run" in tables:
        yield from connection.execute("select id, flow_series, link_series from run")
