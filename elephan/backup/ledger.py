"""Writing of a backup's rows: to a file of this machine, and from there to a server where the store is one.

The file is the database itself, or for a server the spool of unsent runs (`elephan.store.spool`), which has the same
tables and keeps these rows. So no run waits for a server, and a server that is away gets its rows later.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elephan.backup.ages import AHEAD_S
from elephan.backup.forecasts import HISTORY
from elephan.backup.outcome import COPIED
from elephan.backup.spec import JobSpec
from elephan.backup.tables import job_id, put, rows
from elephan.backup.timetable import next_due
from elephan.errors import ElephanError, StoreError
from elephan.store.place import Place, reason_of
from elephan.store.revision import HEAD
from elephan.store.sql import Fault, File, id_of

OPEN = ("running", "waiting", "interrupted")
"""States of runs that go on."""


class Ledger:
    """The rows of one backup; for any thread."""

    def __init__(self, location: str, backup: str) -> None:
        """Open the store, and make or upgrade its tables. Raises `StoreError`, `InputError`."""
        self.location = location
        self.backup = backup
        self.place = Place.of(location)
        self.place.prepare()
        path = self.place.spool or self.place.file
        if path is None:
            raise StoreError(
                f"--store {self.place.given}: a backup needs a store that lasts; right are a file or a server's URL"
            )
        self._sending = threading.Lock()
        try:
            _prepared(path)
            self._file = File(path)
        except Fault as fault:
            raise self.place.failed(fault) from fault

    @property
    def is_served(self) -> bool:
        """Return True if the rows go to a server too."""
        return self.place.spool is not None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, table: str, row: Mapping[str, Any]) -> None:
        try:
            with self._file.transaction(writing=True) as execute:
                put(execute, table, row)
        except Fault as fault:
            raise StoreError(f"cannot write to the store {self.place.location}: {reason_of(fault)}") from fault

    def _read(self, table: str, condition: str, **values: Any) -> list[dict[str, Any]]:
        try:
            with self._file.transaction() as execute:
                return rows(execute, table, condition, **values)
        except Fault as fault:
            raise StoreError(f"cannot read the store {self.place.location}: {reason_of(fault)}") from fault

    def job(self, name: str) -> dict[str, Any] | None:
        """Return the row of a job."""
        found = self._read("backup_job", "where id = :id", id=job_id(self.backup, name))
        return found[0] if found else None

    def put_job(self, job: JobSpec, state: str, next_due_s: float | None) -> dict[str, Any]:
        """Write the row of a job; return it. What was forecast of it stays."""
        before = self.job(job.name)
        row = {
            "id": job_id(self.backup, job.name),
            "backup": self.backup,
            "name": job.name,
            "settings": json.dumps({**job.settings(), "identity": job.identity()}),
            "created": time.time() if before is None else before["created"],
            "state": state,
            "next_due": next_due_s,
            "forecast": None if before is None else before["forecast"],
            "changed": time.time_ns(),
        }
        same = before is not None and all(row[name] == before[name] for name in row if name != "changed")
        if not same:
            self._write("backup_job", row)
        return before if same and before is not None else row

    def put_forecast(self, job: JobSpec, forecast: dict[str, Any]) -> None:
        """Keep what is forecast of a job."""
        row = self.job(job.name)
        if row is not None:
            self._write("backup_job", {**row, "forecast": json.dumps(forecast), "changed": time.time_ns()})

    def runs(self, name: str, limit: int = 50) -> list[dict[str, Any]]:
        """Return the runs of a job, newest first: in the order in which they began, whatever the clock was then."""
        return self._read(
            "backup_run", f"where job_id = :job order by sequence desc, id limit {int(limit)}",
            job=job_id(self.backup, name),
        )  # fmt: skip

    def history(self, name: str, before: Mapping[str, Any] | None = None, limit: int = 50) -> list[dict[str, Any]]:
        """Return runs of a job, newest first, without restores: the newest, and of all those that sent most.

        A first copy stays among them however many small runs follow. `before`: those before this run alone.
        """
        values: dict[str, Any] = {"job": job_id(self.backup, name)}
        which = "where job_id = :job and kind <> 'restore'"
        if before is not None:
            which, values = f"{which} and sequence < :sequence", {**values, "sequence": before["sequence"]}
        newest = self._read("backup_run", f"{which} order by sequence desc limit {int(limit)}", **values)
        states = ", ".join(f"'{state}'" for state in COPIED)
        largest = self._read(
            "backup_run",
            f"{which} and state in ({states}) and sent_bytes > 0 order by sent_bytes desc limit {HISTORY}", **values,
        )  # fmt: skip
        found = {row["id"]: row for row in (*newest, *largest)}
        return sorted(found.values(), key=lambda row: -int(row["sequence"]))

    def open_run(self, name: str) -> dict[str, Any] | None:
        """Return the run of a job that goes on, restores apart."""
        found = self._read(
            "backup_run", "where job_id = :job and ended is null and kind <> 'restore' order by sequence desc",
            job=job_id(self.backup, name),
        )  # fmt: skip
        return found[0] if found else None

    def last_due_s(self, name: str, latest_s: float = math.inf) -> float | None:
        """Return the newest due time, up to `latest_s`, of which there was a run."""
        latest_s = min(latest_s, 1e18)
        found = self._read(
            "backup_run", "where job_id = :job and due is not null and due <= :latest order by due desc limit 1",
            job=job_id(self.backup, name), latest=latest_s,
        )  # fmt: skip
        return found[0]["due"] if found else None

    def next_due_s(self, job: JobSpec, now_s: float) -> float | None:
        """Return when a job is due next by its runs; a time ahead of the clock is of a clock that was set back."""
        row = self.job(job.name)
        since_s = now_s if row is None else min(now_s, float(row["created"]))
        return next_due(job.schedule, self.last_due_s(job.name, now_s + AHEAD_S), since_s)

    def attempts(self, run: int) -> list[dict[str, Any]]:
        """Return the attempts of a run in order."""
        return self._read("backup_attempt", "where run_id = :run order by number", run=run)

    def new_run(self, name: str, kind: str, version: str | None, due_s: float | None, missed: int) -> dict[str, Any]:
        """Write a run that begins now; return its row."""
        begun = time.time()
        job = job_id(self.backup, name)
        newest = self._read("backup_run", "where job_id = :job order by sequence desc limit 1", job=job)
        row: dict[str, Any] = {
            "id": id_of("run", job, begun, time.time_ns()),
            "job_id": job,
            "kind": kind,
            "version": version,
            "due": due_s,
            "missed": missed,
            # A number of the clock and not a count: another file's runs of this job may be on the server.
            "sequence": max(time.time_ns(), newest[0]["sequence"] + 1 if newest else 0),
            "begun": begun,
            "state": "running",
            "attempts": 0,
            **dict.fromkeys(("ended", "files", "bytes", "sent_bytes", "seconds", "removed")),
            **dict.fromkeys(("text", "progress", "receipt", "forecast")),
        }
        self.put_run(row)
        return row

    def put_run(self, row: dict[str, Any], **changes: Any) -> None:
        """Change a run and write it; its job counts as changed too."""
        row.update(changes, changed=time.time_ns())
        try:
            with self._file.transaction(writing=True) as execute:
                put(execute, "backup_run", row)
                execute(
                    "update backup_job set changed = :changed where id = :id",
                    {"changed": row["changed"], "id": row["job_id"]},
                )
        except Fault as fault:
            raise StoreError(f"cannot write to the store {self.place.location}: {reason_of(fault)}") from fault

    def new_attempt(self, run: Mapping[str, Any], number: int) -> dict[str, Any]:
        """Write an attempt that begins now; return its row."""
        row = {
            "id": id_of("attempt", run["id"], number),
            "run_id": run["id"],
            "number": number,
            "begun": time.time(),
            "ended": None,
            "outcome": "running",
            "sent_bytes": None,
            "text": None,
        }
        self._write("backup_attempt", row)
        return row

    def put_attempt(self, row: dict[str, Any], **changes: Any) -> None:
        """Change an attempt and write it."""
        row.update(changes)
        self._write("backup_attempt", row)

    def note_removed(self, name: str, versions: list[str]) -> None:
        """Write that versions of a job were removed."""
        for version in versions:
            for row in self._read(
                "backup_run", "where job_id = :job and version = :version and kind <> 'restore'",
                job=job_id(self.backup, name), version=version,
            ):  # fmt: skip
                self.put_run(row, removed=time.time())

    def send(self) -> str | None:
        """Send rows that the server lacks; return why it could not be done. Without a server there is nothing to do."""
        if not self.is_served or not self._sending.acquire(blocking=False):
            return None
        try:
            self._sent()
            return None
        except ElephanError as error:
            return str(error)
        except Fault as fault:
            return f"the store {self.place.location}: {reason_of(fault)}"
        finally:
            self._sending.release()

    def _sent(self) -> None:
        from elephan.store.database import Store

        with Store(self.location, say=lambda _: None) as store:
            for job in self._read("backup_job", "where backup = :backup", backup=self.backup):
                runs = self._read("backup_run", "where job_id = :job", job=job["id"])
                with store._database.transaction(writing=True) as execute:
                    put(execute, "backup_job", job)
                    query = "select id, changed from backup_run where job_id = :job"
                    there: dict[Any, Any] = dict(execute(query, {"job": job["id"]}))
                    for run in runs:
                        if there.get(run["id"]) == run["changed"]:
                            continue
                        put(execute, "backup_run", run)
                        for attempt in self.attempts(run["id"]):
                            put(execute, "backup_attempt", attempt)


def _prepared(path: Path) -> None:
    """Make or upgrade the tables of the file where they are not this elephan's."""
    if path.exists():
        file = File(path)
        try:
            with file.transaction() as execute:
                if execute("select version_num from alembic_version", {}) == [(HEAD,)]:
                    return
        except Fault:
            pass
        finally:
            file.close()
    from elephan.store.migrate import bring_up_to_date

    path.parent.mkdir(parents=True, exist_ok=True)
    bring_up_to_date(Place.of(str(path)))
