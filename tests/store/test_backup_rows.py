"""Rows of a backup on servers: sent when a run changes, kept on this machine while the server is away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from elephan.backup.ledger import Ledger
from elephan.backup.reading import BackupReader
from elephan.backup.spec import JobSpec, Schedule
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
