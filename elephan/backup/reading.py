"""Reader of what backups have stored, for commands and the web page: read only, also while the jobs run."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Literal

from elephan.backup.tables import rows
from elephan.store.reader import StoreReader

State = Literal["good", "running", "waiting", "failed", "late", "ended", "new"]
LATE_S = 120.0
"""Time after which a job that was due and does not run counts as late, s."""
QUIET_S = 120.0
"""Age of a run's newest sign beyond which its program counts as gone, s: it writes progress each second."""
COMPLETE = ("done", "faults")

Row = dict[str, Any]


@dataclass(frozen=True)
class JobView:
    """A job and how it is now. Times are Unix s."""

    id: int
    backup: str
    name: str
    state: State
    settings: dict[str, Any]
    forecast: dict[str, Any]
    """RPO and RTO by simulation; empty: none was made."""
    next_due_s: float | None
    running: Row | None
    """The run that goes on."""
    last: Row | None
    """The newest run that has ended."""
    complete: Row | None
    """The newest run that has left a complete copy."""
    at_risk_s: float | None
    """Age of the data of the newest complete copy; None: there is none."""

    @property
    def has_trouble(self) -> bool:
        """True if somebody should look."""
        return self.state in ("failed", "late") or (self.last is not None and self.last["state"] == "faults")


class BackupReader(StoreReader):
    """Reads what backups have stored. Raises `StoreError` where the store cannot be read."""

    def _rows(self, table: str, condition: str, **values: Any) -> list[Row]:
        with self._reading() as execute:
            return [] if execute is None else rows(execute, table, condition, **values)

    def jobs(self, backup: str | None = None, now_s: float | None = None) -> list[JobView]:
        """Return the jobs of all backups, or of one, by backup and name."""
        now = time.time() if now_s is None else now_s
        which = "" if backup is None else "where backup = :backup "
        values = {} if backup is None else {"backup": backup}
        return [self._job(row, now) for row in self._rows("backup_job", f"{which}order by backup, name", **values)]

    def job(self, backup: str, name: str) -> JobView | None:
        """Return one job."""
        found = self._rows("backup_job", "where backup = :backup and name = :name", backup=backup, name=name)
        return self._job(found[0], time.time()) if found else None

    def _job(self, row: Row, now: float) -> JobView:
        running = self._newest(row["id"], "ended is null and kind <> 'restore'")
        last = self._newest(row["id"], "ended is not null and kind <> 'restore'")
        complete = self._newest(row["id"], "state in ('done', 'faults') and kind <> 'restore'")
        state: State = "good" if complete is not None else "new"
        if running is not None:
            gone = running["state"] == "running" and now - running["changed"] / 1e9 > QUIET_S
            state = "running" if running["state"] == "running" and not gone else "waiting"
        elif row["next_due"] is not None and now - row["next_due"] > LATE_S:
            state = "late"
        elif last is not None and last["state"] == "failed":
            state = "failed"
        elif row["state"] == "ended":
            state = "ended"
        at_risk_s = None if complete is None else max(0.0, now - complete["begun"])
        return JobView(
            row["id"], row["backup"], row["name"], state, json.loads(row["settings"]),
            json.loads(row["forecast"]) if row["forecast"] else {}, row["next_due"], running, last, complete, at_risk_s,
        )  # fmt: skip

    def _newest(self, job: int, condition: str) -> Row | None:
        found = self._rows("backup_run", f"where job_id = :job and {condition} order by begun desc limit 1", job=job)
        return found[0] if found else None

    def runs(self, job: int | None = None, limit: int = 50, first: int = 0) -> list[Row]:
        """Return runs, newest first."""
        which = "" if job is None else "where job_id = :job "
        values = {} if job is None else {"job": job}
        return self._rows(
            "backup_run", f"{which}order by begun desc, id limit {int(limit)} offset {int(first)}", **values
        )

    def attempts(self, run: int) -> list[Row]:
        """Return the attempts of a run in order."""
        return self._rows("backup_attempt", "where run_id = :run order by number", run=run)

    def newest_change(self) -> int:
        """Return the time of the newest change, Unix ns; one query, cheap enough for every second."""
        with self._reading() as execute:
            found = [] if execute is None else execute("select max(changed) from backup_job", {})
        return int(found[0][0] or 0) if found else 0
