"""Making and upgrading a store: killed at any statement, raced for, half made before; on every database there is."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.engine import Engine

from elephan.errors import StoreError
from elephan.record import Record
from elephan.store import Store, sql
from elephan.store.place import as_url
from elephan.store.revision import HEAD
from tests.store.kills import FORMATS, forked, told_by
from tests.store.servers import Server

Make = Callable[..., Record]
Fresh = Callable[[], str]

KILLS = int(os.environ.get("ELEPHAN_KILLS", "20"))
"""Random kills in the test of them; `python -m tests.store.kills 200` prints their results."""

RACERS = 6


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "mariadb"])
def fresh(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, server_of: Callable[[str], Server]
) -> Fresh:
    """Give places where no store is, one after the other."""
    if request.param == "sqlite":
        folder, made = tmp_path_factory.mktemp("stores"), iter(range(1000))
        return lambda: str(folder / f"{next(made)}.sqlite")
    return server_of(request.param).database


def save(location: str, folder: Path, made: Record) -> None:
    with Store(location, folder) as store:
        store.save(made, None)


def save_in(location: str, folder: Path, made: Record, _: int) -> None:
    save(location, folder, made)


def kill_before_statement(number: int) -> None:
    """Have this process killed before its n-th statement, on any database."""
    seen = 0

    def before(*_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    prepare = sql.prepare_sqlite

    def prepare_and_trace(connection: sqlite3.Connection, as_it_is: bool = False) -> None:
        connection.set_trace_callback(before)
        prepare(connection, as_it_is)

    sql.prepare_sqlite = prepare_and_trace
    event.listen(Engine, "before_cursor_execute", lambda c, *rest: None if c.dialect.name == "sqlite" else before())


def test_a_command_that_is_killed_before_any_of_its_statements_leaves_a_store_that_opens(
    fresh: Fresh, make_record: Make, tmp_path: Path
) -> None:
    """The first command's creation and first run, killed at each place; the second command is not hindered."""
    first, second = make_record(seed=1), make_record(seed=2)
    number, ended = 0, False
    while not ended:
        number += 1
        location = fresh()

        def work(told: int, location: str = location, number: int = number) -> None:
            kill_before_statement(number)
            save(location, tmp_path, first)
            os.write(told, b"1")

        pid, pipe = forked(work)
        _, status = os.waitpid(pid, 0)
        ended = status == 0
        assert ended or os.WTERMSIG(status) == signal.SIGKILL
        saved = bool(told_by(pipe))
        save(location, tmp_path, second)
        with Store(location, tmp_path) as store:
            found = {record.id for record in store.list()}
        assert found >= ({first.id, second.id} if saved else {second.id}), f"killed before statement {number}"
    assert number > 15, "so few statements make no store"


def test_commands_that_race_for_a_fresh_store_all_store_their_run(
    fresh: Fresh, make_record: Make, tmp_path: Path
) -> None:
    records = [make_record(seed=number) for number in range(RACERS)]
    for _ in range(3):
        location = fresh()
        started = [forked(partial(save_in, location, tmp_path, one)) for one in records]
        statuses = [os.waitpid(pid, 0)[1] for pid, _ in started]
        for _, pipe in started:
            os.close(pipe)
        assert statuses == [0] * RACERS
        with Store(location, tmp_path) as store:
            assert store.count() == RACERS


def changed(location: str, *statements: str) -> None:
    """Change a database by hand."""
    engine = create_engine(as_url(location))
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


@pytest.mark.parametrize(
    "missing",
    [
        ("delete from alembic_version",),
        ("drop table alembic_version",),
        ("delete from alembic_version", "drop table metric", "drop table parameter"),
    ],
)
def test_a_half_made_store_without_runs_is_made_whole(
    fresh: Fresh, make_record: Make, tmp_path: Path, missing: tuple[str, ...]
) -> None:
    location = fresh()
    Store(location, tmp_path).close()
    changed(location, *missing)
    save(location, tmp_path, make_record())
    with Store(location, tmp_path) as store:
        assert store.count() == 1
    engine = create_engine(as_url(location))
    assert {"ix_run_created", "ix_run_scenario"} <= {index["name"] for index in inspect(engine).get_indexes("run")}
    engine.dispose()


@pytest.mark.parametrize("cut", ["delete from alembic_version", "drop table alembic_version"])
def test_a_half_made_store_with_runs_is_refused_and_what_it_says_to_do_helps(
    fresh: Fresh, make_record: Make, tmp_path: Path, cut: str
) -> None:
    location = fresh()
    save(location, tmp_path, make_record())
    changed(location, cut)
    with pytest.raises(StoreError, match=f"holds 1 run, but not the revision.*those of revision {HEAD}") as found:
        Store(location, tmp_path)
    advice = str(found.value).partition("in SQL: ")[2]
    changed(location, *advice.split("; "))
    with Store(location, tmp_path) as store:
        assert store.count() == 1


def test_a_table_of_somebody_else_is_left_alone(fresh: Fresh, tmp_path: Path) -> None:
    location = fresh()
    changed(location, "create table run (id integer primary key, distance integer)")
    with pytest.raises(StoreError, match="has a table run that is not elephan's"):
        Store(location, tmp_path)
    changed(location, "insert into run values (1, 42)")


def test_a_name_in_any_script_is_kept_as_it_is(fresh: Fresh, make_record: Make, tmp_path: Path) -> None:
    """A MariaDB server may be set to Latin-1, and to take "A" and "a" for one name."""
    made = make_record(
        name="象",
        parameters={"flow.A.congestion_control": "reno", "flow.a.congestion_control": "cubic"},
        notes=["µ → ∞"],
    )
    location = fresh()
    save(location, tmp_path, made)
    with Store(location, tmp_path) as store:
        assert store.get(made.id).to_json() == made.to_json()


def test_a_store_of_the_first_revision_is_upgraded_with_its_runs(tmp_path: Path) -> None:
    place = tmp_path / "old.sqlite"
    connection = sqlite3.connect(place)
    connection.executescript((FORMATS / "store-0001.sql").read_text())
    connection.close()
    with Store(str(place)) as store:
        (record,) = store.list()
        assert record.id == "e80063e11f464d34"
        store.save(record, None)


def test_random_kills_lose_nothing_and_leave_nothing_stuck() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.kills", str(KILLS), "--seed", str(os.getpid())],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=20 * KILLS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{KILLS} kills: nothing lost, nothing stuck" in done.stdout
