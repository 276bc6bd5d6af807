"""Rows of a backup on servers: sent when a run changes, kept on this machine while the server is away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from elephan.backup.ledger import Ledger
from elephan.backup.reading import BackupReader
from elephan.backup.spec import JobSpec, Schedule
from elephan.backup.tables import job_id
from elephan.store import migrate
from elephan.store.place import as_url
from tests.store.servers import Server

JOB = JobSpec("records", "incremental", ("/srv/records/",), "osc:/backup", Schedule(every_s=7200.0))


@pytest.fixture(params=["postgresql", "mariadb"])
def running(request: pytest.FixtureRequest, server_of: Callable[[str], Server]) -> Iterator[Server]:
    """Give a server; one that a test has stopped runs again after it."""
    found = server_of(request.param)
    yield found
    if found.running is None:
        found.begin()


def test_rows_reach_a_server_also_one_that_was_away(
    running: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    location = running.database()
    ledger = Ledger(location, "dr")
    ledger.put_job(JOB, "active", time.time() + 5000)
    first = ledger.new_run(JOB.name, "incremental", "version-20261126T060000Z", 10.5, 2)
    # More than MariaDB's TEXT holds, with signs that Latin-1 lacks.
    receipt = f'"…{"x" * 70_000}"'
    ledger.put_run(first, state="done", ended=first["begun"] + 5, attempts=1, bytes=2 * 10**13, receipt=receipt)
    assert ledger.send() is None
    with BackupReader(location) as reader:
        (view,) = reader.jobs()
        assert view.state == "good" and view.complete is not None and view.complete["missed"] == 2
        assert view.complete["bytes"] == 2 * 10**13 and len(view.complete["receipt"]) == 70_003
        before = reader.newest_change()
    running.stop()
    second = ledger.new_run(JOB.name, "incremental", None, None, 0)
    attempt = ledger.new_attempt(second, 1)
    ledger.put_attempt(attempt, outcome="lost", ended=second["begun"] + 1, text="osc: no route")
    ledger.put_run(second, state="failed", ended=second["begun"] + 1, attempts=1)
    assert "cannot" in (ledger.send() or "") or "store" in (ledger.send() or "")
    ledger.close()
    running.begin()
    # Another process, as after a kill: it knows all that the server lacks.
    again = Ledger(location, "dr")
    assert again.last_due_s(JOB.name) == 10.5 and again.send() is None
    again.close()
    with BackupReader(location) as reader:
        (view,) = reader.jobs("dr")
        assert view.state == "failed" and view.last is not None and view.complete is not None
        assert [one["text"] for one in reader.attempts(view.last["id"])] == ["osc: no route"]
        assert reader.newest_change() > before and len(reader.runs(view.id)) == 2


def of_revision_5(location: str) -> None:
    """Make a store of that revision with three runs, and begin its upgrade on a database that commits each step."""
    job = {"id": job_id("dr", JOB.name), "changed": 5}
    engine = create_engine(as_url(location))
    with engine.begin() as connection:
        migrate.upgrade(connection, "0005")
        connection.execute(
            text("insert into backup_job (id, backup, name, settings, created, state, changed) "
                 "values (:id, 'dr', 'records', '{}', 1.5, 'active', :changed)"),
            job,
        )  # fmt: skip
        for number, begun in enumerate((1.75e9, 1.77e9, 1.76e9)):
            connection.execute(
                text("insert into backup_run (id, job_id, kind, missed, begun, ended, state, attempts, changed) "
                     "values (:number, :id, 'mirror', 0, :begun, :begun, 'done', 1, :changed)"),
                {**job, "number": number, "begun": begun},
            )  # fmt: skip
    engine.dispose()


def orders(location: str) -> list[tuple[int, int]]:
    """Id and sequence of the runs, newest first."""
    with BackupReader(location) as reader:
        (view,) = reader.jobs("dr")
        return [(run["id"], run["sequence"]) for run in reader.runs(view.id)]


UPGRADED = [(1, 1_770_000_000 * 10**9), (2, 1_760_000_000 * 10**9), (0, 1_750_000_000 * 10**9)]


def test_runs_of_an_older_store_are_in_the_order_of_their_clock_and_new_ones_after_them(tmp_path: Path) -> None:
    location = str(tmp_path / "store.sqlite")
    of_revision_5(location)
    assert orders(location) == UPGRADED
    ledger = Ledger(location, "dr")
    with pytest.MonkeyPatch.context() as patch:
        # A clock that was set back by decades.
        patch.setattr(time, "time_ns", lambda: 10**9)
        first, second = (ledger.new_run(JOB.name, "mirror", None, None, 0) for _ in range(2))
    third = ledger.new_run(JOB.name, "mirror", None, None, 0)
    assert [run["id"] for run in ledger.runs(JOB.name)] == [third["id"], second["id"], first["id"], 1, 2, 0]
    ledger.close()


def test_a_server_s_runs_are_put_in_order_also_when_the_upgrade_was_cut_short(running: Server) -> None:
    location = running.database()
    of_revision_5(location)
    if not location.startswith("postgresql"):
        # Its upgrade commits each step.
        engine = create_engine(as_url(location))
        with engine.begin() as connection:
            connection.execute(text("alter table backup_run add column sequence bigint not null default 0"))
            connection.execute(text("update backup_run set sequence = 1770000000000000000 where id = 1"))
        engine.dispose()
    assert orders(location) == UPGRADED
