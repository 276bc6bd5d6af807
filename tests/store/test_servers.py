"""Stores on servers: two writers at once, a server that goes away in mid sweep, and stores of format 1 upgraded."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from elephan.api import run
from elephan.cli.main import call
from elephan.errors import StoreError
from elephan.record import Record
from elephan.store import Series, Store, database
from elephan.store import migrate as migrations
from elephan.store.place import Place, as_url, is_conflict, spool_folder, waiting_locations
from elephan.store.revision import HEAD, REVISIONS
from elephan.sweep import executor
from elephan.sweep.progress import NoProgress
from tests.store.kills import forked, record, series, told_by
from tests.store.servers import Server

Make = Callable[..., Record]

SWEEP = """
name = "away"
[run]
duration = "{duration}"
[path]
bandwidth = "20Mbit/s"
rtt = "20ms"
[[flow]]
name = "copy"
[sweep]
"path.rtt" = {{ from = "10ms", to = "{last}ms", step = "1ms" }}
"""

FORMAT_1 = Path(__file__).parent / "formats" / "by-0.1.0" / "results.sqlite"


@pytest.fixture(params=["postgresql", "mariadb"])
def running(request: pytest.FixtureRequest, server_of: Callable[[str], Server]) -> Iterator[Server]:
    """Give a server; one that a test has stopped runs again after it."""
    found = server_of(request.param)
    yield found
    if found.running is None:
        found.begin()


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder of the user's data, empty at first."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("ELEPHAN_STORE", raising=False)
    # So that a server goes away between two transactions of a short sweep.
    monkeypatch.setattr(executor, "STORED_AT_ONCE", 2)
    return tmp_path / "data" / "elephan"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try a server that is away again at once."""
    monkeypatch.setattr(database, "RETRY_S", 0.0)


def scenario(folder: Path, last: int, duration: str = "1s") -> Path:
    """Write a sweep of a run for each RTT from 10 ms to `last` ms."""
    file = folder / "away.toml"
    file.write_text(SWEEP.format(last=last, duration=duration))
    return file


# Two writers


def write_several(location: str, folder: Path, numbers: list[int], told: int) -> None:
    """Store runs in batches of random sizes, and tell of each."""
    draw = random.Random(os.getpid())
    draw.shuffle(numbers)
    with Store(location, folder) as store:
        while numbers:
            several = [numbers.pop() for _ in range(min(len(numbers), draw.randint(1, 7)))]
            store.save_all([(record(number), series(number)) for number in several])
            os.write(told, bytes(several))


def test_two_writers_of_different_and_equal_runs_lose_and_double_nothing(running: Server, tmp_path: Path) -> None:
    location = running.database()
    # Both write 40 to 79, in different orders.
    shares = [list(range(80)), list(range(40, 120))]
    started = [forked(partial(write_several, location, tmp_path / "series", share)) for share in shares]
    told = [told_by(pipe) for _, pipe in started]
    assert [os.waitpid(pid, 0)[1] for pid, _ in started] == [0, 0]
    assert [sorted(one) for one in told] == [list(range(80)), list(range(40, 120))]
    with Store(location, tmp_path / "series") as store:
        found = store.list()
        assert sorted(int(one.id, 16) for one in found) == list(range(120))
        for one in found:
            taken = store.series(one.id)
            assert taken is not None and one.series is not None and taken.digest() == one.series.sha256
        assert set(store.parameters()) == {one.id for one in found if one.parameters}
    assert not spool_folder().exists()


def test_a_run_that_another_command_has_just_stored_is_a_conflict_and_no_error(running: Server) -> None:
    engine = create_engine(as_url(running.database()))
    with engine.connect() as connection:
        connection.execute(text("create table t (id integer primary key)"))
        connection.execute(text("insert into t values (1)"))
        with pytest.raises(Exception, match=r"(?i)duplicate") as found:
            connection.execute(text("insert into t values (1)"))
    engine.dispose()
    assert is_conflict(found.value)


# A server that goes away


class Stopping(NoProgress):
    """Stops a server after some runs, and starts it after some more."""

    def __init__(self, server: Server, stop_after: int, begin_after: int | None) -> None:
        """Do nothing yet."""
        self.server, self.stop_after, self.begin_after, self.count = server, stop_after, begin_after, 0

    def ended(self, number: int) -> None:
        """Count."""
        self.count += 1
        if self.count == self.stop_after:
            self.server.stop()
        elif self.count == self.begin_after:
            self.server.begin()


def ids_in(location: str) -> list[str]:
    """Return the ids of a server's runs, without opening it as a store."""
    engine = create_engine(as_url(location))
    with engine.connect() as connection:
        found = [row[0] for row in connection.execute(text("select id from run order by id"))]
    engine.dispose()
    return found


@pytest.mark.usefixtures("impatient")
def test_a_server_that_comes_back_in_the_sweep_has_all_runs(
    running: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    location = running.database()
    done = run(scenario(tmp_path, last=39), store=location, workers=1, watcher=Stopping(running, 5, 20))
    assert ids_in(location) == sorted(outcome.record.id for outcome in done.outcomes)
    assert len(ids_in(location)) == 30
    error = capsys.readouterr().err
    away, sent = error.splitlines()
    assert away.startswith("cannot ") and "runs are kept in" in away
    assert "have been sent" in sent
    assert all(done.series_of(one) is not None for one in done)


def test_a_server_that_stays_away_gets_its_runs_from_the_next_command(
    running: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], own_folder: Path
) -> None:
    location = running.database()
    done = run(scenario(tmp_path, last=39), store=location, workers=1, watcher=Stopping(running, 5, None))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "runs are kept in" in lines[0] and "results send" in lines[1]
    (spool,) = (own_folder / "unsent").glob("*.sqlite")
    assert list(waiting_locations().values()) == [spool]
    assert call(["results", "send", "--store", location]) == 1
    error = capsys.readouterr().err
    assert f"in {spool}: " in error and len(error.splitlines()) == 1

    running.begin()
    assert 5 <= len(ids_in(location)) < 30
    assert call(["results", "list", "--json", "--store", location]) == 0
    assert "have been sent" in capsys.readouterr().err
    assert ids_in(location) == sorted(one.id for one in done)
    with Store(location) as store:
        assert store.unsent() == 0
        for one in done:
            taken = store.series(one.id)
            assert taken is not None and one.series is not None and taken.digest() == one.series.sha256
            assert store.get(one.id).to_json() == one.to_json()
    assert call(["results", "send", "--store", location]) == 0
    assert "no run waits" in capsys.readouterr().err
    again = run(tmp_path / "away.toml", store=location)
    assert all(outcome.reused for outcome in again.outcomes)


def test_results_send_sends(running: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    location = running.database()
    with Store(location) as store:
        running.stop()
        store.save(record(1), series(1))
        assert store.find(record(1).id) == record(1)
        assert store.series(record(1).id) is not None
    running.begin()
    capsys.readouterr()
    assert call(["results", "send", "--store", f"sqlite:///{tmp_path}/other.sqlite"]) == 0
    assert "1 run waits for another store: elephan results send --store " in capsys.readouterr().err
    assert call(["results", "send", "--store", location]) == 0
    assert "1 run that has waited for the store" in capsys.readouterr().err
    assert ids_in(location) == [record(1).id]


def test_a_later_record_on_the_server_is_not_replaced_by_one_that_waited(running: Server) -> None:
    location = running.database()
    with Store(location) as store:
        running.stop()
        store.save(record(1), None)
    running.begin()
    later = record(1).model_copy(update={"created": "2030-01-01T00:00:00Z"})
    with Store(location, say=lambda _: None) as store:
        assert store.get(later.id).created == record(1).created
        store.save(later, None)
        running.stop()
        store.save(record(1), None)
    running.begin()
    with Store(location) as store:
        assert store.get(later.id).created == later.created


@pytest.mark.usefixtures("impatient")
def test_kills_while_a_server_is_away_lose_nothing(running: Server, tmp_path: Path) -> None:
    """Runs that a killed command has told of are on the server in the end, each once."""
    location = running.database()
    Store(location).close()
    draw = random.Random(5)
    told: set[int] = set()
    for first in range(0, 18, 6):

        def work(pipe: int, first: int = first) -> None:
            with Store(location, say=lambda _: None) as store:
                running.stop()
                for number in range(first, first + 6):
                    store.save(record(number), series(number))
                    os.write(pipe, bytes([number]))

        pid, pipe = forked(work)
        # The first kill falls at any time, the others behind two and four runs told of, however slow the machine is.
        for _ in range(first // 3):
            told.update(os.read(pipe, 1))
        time.sleep(draw.uniform(0.05, 0.6))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        told.update(told_by(pipe))
        # The child may have stopped it, or been killed before.
        running.stop()
        running.begin()
    with Store(location, say=lambda _: None) as store:
        found = [int(one.id, 16) for one in store.list()]
        assert told and told <= set(found) and len(found) == len(set(found))
        assert store.unsent() == 0


def test_a_spool_that_cannot_be_written_ends_the_sweep(
    running: Server, tmp_path: Path, own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    location = running.database()
    own_folder.mkdir(parents=True)
    (own_folder / "unsent").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match=r"the store .*; cannot make .*unsent, for runs to be sent") as found:
        run(scenario(tmp_path, last=39), store=location, workers=1, watcher=Stopping(running, 5, None))
    assert found.value.exit_code == 1
    assert "\n" not in str(found.value)


def test_the_name_of_a_spool_has_no_password() -> None:
    url = "postgresql://me:secret@db.example:5433/sweeps?password=hidden&sslmode=require"
    spool = Place.of(url).spool
    assert spool is not None
    assert "secret" not in spool.name and "hidden" not in spool.name
    for part in ("me", "db.example", "5433", "sweeps", "sslmode"):
        assert part in spool.name
    assert Place.of(url.replace("sweeps", "x" * 300)).spool != spool
    assert len(str(Place.of(url.replace("sweeps", "x" * 300)).spool.name)) < 255
    assert Place.of("results.sqlite").spool is None and Place.of("sqlite:///x.sqlite").spool is None


# Stores of format 1


def test_a_store_of_format_1_is_upgraded_with_its_runs(running: Server, tmp_path: Path) -> None:
    """The runs that 0.1.0 wrote, in the tables that it made on a server."""
    location = running.database()
    engine = create_engine(as_url(location))
    old = sqlite3.connect(f"file:{FORMAT_1}?mode=ro&immutable=1", uri=True)
    with engine.begin() as connection:
        migrations.upgrade(connection, REVISIONS[0])
        for table in ("run", "metric", "parameter"):
            cursor = old.execute(f"select * from {table}")
            names = [column[0] for column in cursor.description]
            query = f"insert into {table} ({', '.join(names)}) values ({', '.join(f':{name}' for name in names)})"
            connection.execute(text(query), [dict(zip(names, row, strict=True)) for row in cursor])
    engine.dispose()
    ids = sorted(row[0] for row in old.execute("select id from run"))
    old.close()
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(FORMAT_1.read_bytes())
    with Store(location, FORMAT_1.with_suffix(".series")) as store, Store(str(copy)) as same:
        assert store.is_up_to_date() and HEAD != REVISIONS[0]
        assert sorted(one.id for one in store.list()) == ids
        for run_id in ids:
            assert store.get(run_id).to_json() == same.get(run_id).to_json()
        with_series = [one for one in store.summaries() if one.series]
        assert with_series
        for one in with_series:
            found: Series | None = store.series(one.id)
            assert found is not None and found.flow.num_rows > 0
        store.save(record(1), None)
        assert store.count() == len(ids) + 1
