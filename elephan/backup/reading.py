"""Reader of what backups have stored, for commands and the web page: read only, also while the jobs run."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import Any, Literal

from elephan.backup.ages import AHEAD_S
from elephan.backup.spec import JobSpec, Spec
from elephan.backup.tables import job_id, rows
from elephan.backup.texts import age, moment, next_text, period
from elephan.backup.timetable import next_due
from elephan.store.reader import StoreReader

State = Literal["good", "running", "waiting", "failed", "late", "faults", "ended", "new"]
LATE_S = 120.0
"""Time after which a job that was due and does not run counts as late, s."""
QUIET_S = 120.0
"""Age of a run's newest sign beyond which its program counts as gone, s: it writes progress each second."""
TROUBLE = ("failed", "late", "faults", "new")
"""States of a job that somebody should look at."""

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
    """The newest run that has left a complete copy: a run with entries that could not be copied has not."""
    at_risk_s: float | None
    """Age of the oldest data that stands for an entry in the newest copy; None: an entry is in no copy."""
    faults: dict[str, Any] | None
    """Of the newest copy if some entries could not be copied: `elephan.backup.outcome.summary`."""
    notes: tuple[str, ...]
    """Dates that the clock of this machine does not explain."""

    @property
    def has_trouble(self) -> bool:
        """True if somebody should look. A job that has never run has all its data at risk."""
        return bool(self.notes) or self.state in TROUBLE or self.faults is not None

    @property
    def has_run(self) -> bool:
        """True if a run of it has begun; a restore is none."""
        return self.running is not None or self.last is not None


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

    def jobs_of(self, spec: Spec, now_s: float | None = None) -> list[JobView]:
        """Return the jobs of a backup's file, also those that the store does not know yet, in the file's order.

        Jobs that have run and that the file has no longer follow.
        """
        now = time.time() if now_s is None else now_s
        stored = {view.name: view for view in self.jobs(spec.name, now)}
        found = []
        for job in spec.jobs:
            view = stored.pop(job.name, None) or _unseen(spec.name, job)
            if view.next_due_s is None and view.running is None:
                view = replace(view, next_due_s=self._next_due_s(view, job, now))
            found.append(view)
        return [*found, *(view for view in stored.values() if view.has_run)]

    def _next_due_s(self, view: JobView, job: JobSpec, now: float) -> float | None:
        """Return the next time of a job of which the store has none, as the program that runs it will have it."""
        past = "due is not null and due <= :latest"
        newest = self._rows(
            "backup_run", f"where job_id = :job and {past} order by due desc limit 1", job=view.id, latest=now + AHEAD_S
        )
        stored = self._rows("backup_job", "where id = :job", job=view.id)
        since_s = min(now, float(stored[0]["created"])) if stored else now
        return next_due(job.schedule, newest[0]["due"] if newest else None, since_s)

    def job(self, backup: str, name: str) -> JobView | None:
        """Return one job."""
        found = self._rows("backup_job", "where backup = :backup and name = :name", backup=backup, name=name)
        return self._job(found[0], time.time()) if found else None

    def _job(self, row: Row, now: float) -> JobView:
        running = self._newest(row["id"], "ended is null and kind <> 'restore'")
        last = self._newest(row["id"], "ended is not null and kind <> 'restore'")
        # A date in the future is of a clock that was ahead, and says nothing about the age of data.
        past = "begun <= :latest and kind <> 'restore'"
        complete = self._newest(row["id"], f"{past} and state in ('done', 'attributes')", latest=now + AHEAD_S)
        newest = self._newest(row["id"], "kind <> 'restore' and state in ('done', 'attributes', 'faults')")
        has_faults = newest is not None and newest["state"] == "faults"
        faults = _faults(newest) if newest is not None and has_faults else None
        # Beside a clock that was set back a copy may be complete and none the less of no known age.
        state: State = "new" if last is None else "good"
        notes = _clock_notes(row, [one for one in (running, last) if one is not None], now)
        if running is not None:
            gone = running["state"] == "running" and abs(now - running["changed"] / 1e9) > QUIET_S
            state = "running" if running["state"] == "running" and not gone else "waiting"
        elif row["next_due"] is not None and now - row["next_due"] > LATE_S:
            state = "late"
        elif last is not None and last["state"] == "failed":
            state = "failed"
        elif has_faults:
            state = "faults"
        elif row["state"] == "ended" and last is not None:
            state = "ended"
        return JobView(
            row["id"], row["backup"], row["name"], state, json.loads(row["settings"]),
            json.loads(row["forecast"]) if row["forecast"] else {}, row["next_due"], running, last, complete,
            _at_risk_s(complete, faults, now), faults, notes,
        )  # fmt: skip

    def _newest(self, job: int, condition: str, **values: Any) -> Row | None:
        order = "order by sequence desc limit 1"
        found = self._rows("backup_run", f"where job_id = :job and {condition} {order}", job=job, **values)
        return found[0] if found else None

    def runs(self, job: int | None = None, limit: int = 50, first: int = 0) -> list[Row]:
        """Return runs, newest first."""
        which = "" if job is None else "where job_id = :job "
        values = {} if job is None else {"job": job}
        return self._rows(
            "backup_run", f"{which}order by sequence desc, id limit {int(limit)} offset {int(first)}", **values
        )

    def attempts(self, run: int) -> list[Row]:
        """Return the attempts of a run in order."""
        return self._rows("backup_attempt", "where run_id = :run order by number", run=run)

    def newest_change(self) -> int:
        """Return the time of the newest change, Unix ns; one query, cheap enough for every second."""
        with self._reading() as execute:
            found = [] if execute is None else execute("select max(changed) from backup_job", {})
        return int(found[0][0] or 0) if found else 0


def _unseen(backup: str, job: JobSpec) -> JobView:
    """Return a job of which the store has nothing."""
    return JobView(
        job_id(backup, job.name), backup, job.name, "new", job.settings(), {}, None, None, None, None, None, None, ()
    )


def faults_notes(view: JobView) -> list[str]:
    """Return what the newest copy of a job lacks, in words."""
    faults = view.faults
    if faults is None:
        return []
    texts = []
    if faults.get("older"):
        texts.append(f"{faults['older']} from older versions, the oldest of {moment(faults.get('since_s'))}")
    if lacks := int(faults.get("missing") or 0) + int(faults.get("failed") or 0):
        texts.append(f"{lacks} missing")
    told = f": {', '.join(texts)}" if texts else ""
    return [f"the newest copy has entries that could not be copied{told}; see status {view.name}"]


def never_run_line(view: JobView) -> str:
    """Return a job that has never run in one line."""
    due_s = view.next_due_s
    when = "runs when asked alone" if due_s is None else f"next {next_text(due_s, time.time())} ({moment(due_s)})"
    return f"{view.name}: never run; {when}; all of its data is at risk"


def _faults(row: Row) -> dict[str, Any]:
    receipt = json.loads(row["receipt"] or "{}")
    return dict(receipt.get("backup") or {})


def _at_risk_s(complete: Row | None, faults: dict[str, Any] | None, now: float) -> float | None:
    """Return the age of the oldest data that stands for an entry, s."""
    since_s = None if complete is None else complete["begun"]
    if faults is not None and not faults.get("missing") and not faults.get("failed"):
        # All that was not copied is there, of that time; a time in the future says nothing.
        older_s = faults.get("since_s")
        since_s = older_s if older_s and older_s <= now + AHEAD_S else since_s
    return None if since_s is None else max(0.0, now - since_s)


def _clock_notes(job: Row, runs: list[Row], now: float) -> tuple[str, ...]:
    """Return the dates in the future that no schedule makes."""
    notes = []
    for run in runs:
        for what in ("due", "begun"):
            if run[what] is not None and run[what] > now + AHEAD_S:
                notes.append(
                    f"the run of {moment(run['begun'])} {'was due' if what == 'due' else 'began'} in the future, "
                    f"{age(run[what] - now)} ahead: the clock was set back"
                )
                break
    every_s = json.loads(job["settings"]).get("every_s")
    if job["next_due"] is not None and every_s and job["next_due"] > now + every_s + AHEAD_S:
        notes.append(f"next due in {age(job['next_due'] - now)}, while a run is due every {period(every_s)}")
    return tuple(notes)
