"""One run of a job: windows, attempts, the version it makes, its forecast, and the older versions that go.

What is durable at the destination stays whatever happens. A run that was killed goes on with its version where it was,
under the same name of the copy.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from elephan.advise.forecast import FileSet
from elephan.backup import versions
from elephan.backup.ages import AHEAD_S, Ages, Moment, longest_gap_s
from elephan.backup.forecasts import CopyForecast, judged, simulated, usual_change
from elephan.backup.history import History
from elephan.backup.ledger import Ledger
from elephan.backup.locks import Runs, locked
from elephan.backup.outcome import COPIED, WHOLE, faults_text, is_lost, state_of, summary
from elephan.backup.owner import Owner, owner_of
from elephan.backup.retention import Version, new_name, newest_ended, since_complete, time_of, to_remove
from elephan.backup.sources import SourceCheck
from elephan.backup.spec import JobSpec, Spec
from elephan.backup.texts import age
from elephan.backup.timetable import least_rate, next_open, open_until
from elephan.copy.api import CopyOutcome, CopyRequest, Place, copy
from elephan.core import native
from elephan.errors import ElephanError, InputError, RunError
from elephan.printable import one_line
from elephan.units import pluralize

LEAST = FileSet(1, 1)
"""The least data of a copy: its simulated time is that of the connections."""

Say = Callable[[str], None]

PROGRESS_S = 1.0
"""Least time between two writings of a run's progress, s."""
PROGRESS = ("bytes_done", "bytes_total", "durable_bytes", "files_done", "files_total", "sent_bytes")
"""Members of the event that a run's row keeps."""


class Wait(Protocol):
    """Waits at most so many seconds; True once the program is to end."""

    def __call__(self, seconds: float | None, /) -> bool:
        """See the class."""


@dataclass
class _Window:
    """A wait that also ends with the hours in which the job may send."""

    wait: Wait
    until_s: float
    """Unix s."""

    def __call__(self, seconds: float | None, /) -> bool:
        left_s = self.until_s - time.time()
        if math.isinf(left_s):
            return self.wait(seconds)
        step_s = max(0.0, left_s if seconds is None else min(seconds, left_s))
        return self.wait(step_s) or time.time() >= self.until_s


def request_of(
    job: JobSpec, sources: list[Place], destination: Place, options: dict[str, Any], rate_bps: int | None
) -> CopyRequest:
    """Return the copy of a run: one attempt, since runs count and space them."""
    return replace(
        CopyRequest(sources, destination, options={**job.options, **options}, rate_bps=rate_bps, patience_s=0.0),
        **job.copy,
    )


class Runner:
    """A run from its beginning, or from where it was left, to its end."""

    def __init__(self, spec: Spec, job: JobSpec, ledger: Ledger, wait: Wait, say: Say) -> None:
        """`wait` tells the end of the program."""
        self.spec, self.job, self.ledger = spec, job, ledger
        self._wait, self._say = wait, say
        self.place = Place.parse(job.destination)
        self.sources = [Place.parse(one) for one in job.sources]
        self.row: dict[str, Any] = {}
        self._notes: list[str] = []
        """Notes on the run beside its faults."""
        self._summary: dict[str, Any] = {}
        """Kept with the receipt: see `elephan.backup.outcome.summary`."""
        self._durable = 0
        """Most bytes that were durable at the destination."""
        self._sent = 0
        """Bytes that this attempt has sent."""
        self._connected_s: float | None = None
        """Time at which both ends of this attempt had met, monotonic."""
        self._progress_s = 0.0
        self._rate: tuple[float, int] | None = None

    @property
    def owner(self) -> Owner:
        """Return the owner of the job's versions. Raises `StoreError`."""
        return owner_of(self.ledger.place, self.spec.name, self.job.name)

    def run(self, due_s: float | None = None, missed: int = 0) -> dict[str, Any]:
        """Run; return the row. Raises `Runs` when a run of the job goes on elsewhere, `StoreError`."""
        with locked(self.ledger.place, self.spec.name, self.job.name):
            return self._run(due_s, missed)

    def run_open(self, due_s: float | None, missed: int) -> dict[str, Any] | None:
        """See `run`; None where another process has done meanwhile what was due, or the unfinished run (no `due_s`)."""
        with locked(self.ledger.place, self.spec.name, self.job.name):
            if self.ledger.open_run(self.job.name) is None:
                last_s = self.ledger.last_due_s(self.job.name, time.time() + AHEAD_S)
                if due_s is None or (last_s is not None and last_s >= due_s):
                    return None
            return self._run(due_s, missed)

    def _run(self, due_s: float | None, missed: int) -> dict[str, Any]:
        row = self._opened()
        if row is None:
            row = self.ledger.new_run(self.job.name, self.job.kind, None, due_s, missed)
        self.row = row
        self._sum = (row["sent_bytes"] or 0, row["seconds"] or 0.0)
        try:
            self._attempts()
        except BaseException as error:
            if row["ended"] is None and not isinstance(error, ElephanError):
                self.ledger.put_run(row, state="interrupted", text=None)
            raise
        return row

    def _opened(self) -> dict[str, Any] | None:
        """Return the run that goes on; one of a job that was changed meanwhile has ended."""
        row = self.ledger.open_run(self.job.name)
        job = self.ledger.job(self.job.name)
        if row is None or job is None:
            return None
        if json.loads(job["settings"]).get("identity") == self.job.identity():
            told = json.loads(row["progress"]) if row["progress"] else {}
            for attempt in self.ledger.attempts(row["id"]):
                if attempt["ended"] is None:
                    # Killed, with no time to say so.
                    sent, seconds = int(told.get("sent_bytes") or 0), float(told.get("seconds") or 0.0)
                    self.ledger.put_attempt(attempt, outcome="stopped", ended=row["changed"] / 1e9, sent_bytes=sent)
                    row["sent_bytes"] = (row["sent_bytes"] or 0) + sent
                    row["seconds"] = (row["seconds"] or 0.0) + seconds
            self.ledger.put_run(row, state="running", text=None, progress=None)
            return row
        self.ledger.put_run(row, state="failed", ended=time.time(), text="its job was changed before it was done")
        return None

    def _attempts(self) -> None:
        row, retry = self.row, self.spec.retry
        failures, wait_s = 0, retry.wait_s
        while True:
            if not self._in_window():
                return
            found = open_until(self.job.windows, time.time())
            if found is None:
                continue
            until_s, rate_bps = found
            number = len(self.ledger.attempts(row["id"])) + 1
            attempt = self.ledger.new_attempt(row, number)
            durable = self._durable
            self._sent, self._rate, self._connected_s = 0, None, None
            try:
                outcome = self._attempt(_Window(self._wait, until_s), least_rate(self.job.rate_bps, rate_bps))
            except native.Stopped:
                kind = "stopped" if self._wait(0) else "window"
                self._note(attempt, kind, None)
                if kind == "stopped":
                    self.ledger.put_run(row, state="interrupted", text=None)
                    return
                continue
            except InputError as error:
                self._note(attempt, "lost", str(error))
                return self._failed(str(error))
            except ElephanError as error:
                self._note(attempt, "lost", str(error))
                self.ledger.put_run(row, attempts=row["attempts"] + 1)
                if self._durable > durable:
                    failures, wait_s = 0, retry.wait_s
                failures += 1
                if failures >= retry.attempts:
                    return self._failed(str(error))
                text = f"attempt {row['attempts']} failed: {one_line(str(error))}; the next in {wait_s:.0f} s"
                self.ledger.put_run(row, state="waiting", text=text)
                self._say(f"{self.job.name}: {text}")
                if self._wait(wait_s):
                    self.ledger.put_run(row, state="interrupted", text=None)
                    return
                wait_s = min(2 * wait_s, retry.longest_wait_s)
                self.ledger.put_run(row, state="running", text=None)
            except BaseException as error:
                self._note(attempt, "stopped", str(error))
                raise
            else:
                self._sent = int(outcome.receipt.get("sent_bytes", self._sent))
                self._note(attempt, "done", None)
                return self._done(outcome)

    def _in_window(self) -> bool:
        """Wait until the job may send; return False when the program is to end."""
        while (opens_s := next_open(self.job.windows, time.time())) > time.time():
            if self.row["state"] != "waiting":
                at = time.strftime("%Y-%m-%d %H:%M", time.localtime(opens_s))
                self.ledger.put_run(self.row, state="waiting", text=f"waits for its hours, from {at}")
            if self._wait(min(60.0, max(0.0, opens_s - time.time()))):
                self.ledger.put_run(self.row, state="interrupted", text=None)
                return False
        if self._wait(0):
            self.ledger.put_run(self.row, state="interrupted", text=None)
            return False
        if self.row["state"] != "running":
            self.ledger.put_run(self.row, state="running", text=None)
        return True

    def _note(self, attempt: dict[str, Any], outcome: str, text: str | None) -> None:
        """Write the end of an attempt, and the sums of the run."""
        sent, seconds = self._sum[0] + self._sent, self._sum[1] + self._moving_s()
        self._sum = (sent, seconds)
        self.ledger.put_attempt(attempt, ended=time.time(), outcome=outcome, sent_bytes=self._sent, text=text)
        self.ledger.put_run(self.row, sent_bytes=sent, seconds=seconds)

    def _moving_s(self) -> float:
        """Return the time since both ends of this attempt had met."""
        return 0.0 if self._connected_s is None else time.monotonic() - self._connected_s

    def _attempt(self, wait: Wait, rate_bps: int | None) -> CopyOutcome:
        """Copy once. Raises `InputError`, `RunError`, `native.Stopped`."""
        if not self.job.has_versions:
            return self._mirror(wait, rate_bps)
        check = SourceCheck(self.job, self.sources)
        owner = self.owner
        with versions.opened(self.place, owner) as there:
            found = there.look()
            check.against([(one.name, one.facts) for one in since_complete(found.own)])
            ended = {one.name for one in found.own if one.has_ended}
            if self.row["version"] is None or self.row["version"] in ended:
                # An attempt was killed after its version had ended: that version stays, and the run makes another one.
                self.ledger.put_run(self.row, version=self._version(found))
            version = str(self.row["version"])
            moment = Moment.now(time.time())
            told = {"backup": self.spec.name, "job": self.job.name, **moment.as_facts()}
            there.begin(version, told)
        self._note_clock(version, moment)
        begun = next((one for one in found.own if one.name == version), None)
        if begun is not None and "began_s" in begun.facts:
            # Of the attempt that began it: the time of its oldest data.
            told |= {name: begun.facts.get(name) for name in moment.as_facts()}
        older = newest_ended([one for one in found.own if one.name < version])
        options: dict[str, Any] = {}
        if older is not None and self.job.kind == "incremental":
            options["link_to"] = f"{found.path}/{older.name}"
        destination = Place(self.place.host, f"{self.place.path.rstrip('/')}/{version}/")
        if self.row["forecast"] is None:
            self._forecast(older is None or self.job.kind == "full", rate_bps)
        outcome = copy(request_of(self.job, self.sources, destination, options, rate_bps), self._watch, wait)
        self._complete(outcome, {**told, "sources": check.facts(outcome.receipt["mounts"])}, found.own)
        return outcome

    def _complete(self, outcome: CopyOutcome, facts: dict[str, Any], older: Sequence[Version]) -> None:
        """Link what could not be copied from older versions, and mark the version complete or partial."""
        version, receipt = str(self.row["version"]), outcome.receipt
        lost = [str(fault["path"]) for fault in outcome.faults if is_lost(fault)]
        facts |= {name: receipt.get(name) for name in ("root", "files", "bytes")}
        facts |= {"faults": len(outcome.faults), "faults_more": int(receipt.get("faults_more") or 0)}
        with versions.opened(self.place, self.owner) as there:
            there.carry(version, lost, lambda: self._wait(0))
            carried = there.complete(version, facts, int(receipt.get("faults_more") or 0))
        self._summary = {"sources": facts["sources"], **summary(carried, older, version)}

    def _mirror(self, wait: Wait, rate_bps: int | None) -> CopyOutcome:
        """Make the destination what the sources are."""
        earlier = [row for row in self.ledger.runs(self.job.name) if row["kind"] != "restore" and row["ended"]]
        earlier = [row for row in earlier if row["state"] in COPIED]
        check = SourceCheck(self.job, self.sources)
        receipts = []
        for row in earlier:
            receipts.append(json.loads(row["receipt"] or "{}").get("backup") or {})
            if row["state"] in WHOLE:
                break
        check.against([("the run before" if one is receipts[0] else "an earlier run", one) for one in receipts])
        try:
            found = versions.look(self.place)
        except InputError:
            # A device, or a file: the copy reports what is wrong.
            pass
        else:
            if found.versions:
                raise InputError(
                    f"{self.place}: it has versions of another job, and a mirror would remove them: give the mirror a "
                    "destination of its own"
                )
        if self.row["forecast"] is None:
            self._forecast(not earlier, rate_bps)
        options: dict[str, Any] = {"mirror": True}
        if self.job.max_removals is not None:
            options["max_removals"] = self.job.max_removals
        outcome = copy(request_of(self.job, self.sources, self.place, options, rate_bps), self._watch, wait)
        self._summary = {"sources": check.facts(outcome.receipt["mounts"])}
        return outcome

    def _note_clock(self, version: str, now: Moment) -> None:
        """Note that a version's name is ahead of the clock: an older one was made while the clock was ahead."""
        ahead_s = time_of(version) - now.wall_s
        if ahead_s > AHEAD_S and self.row["begun"] < now.wall_s + AHEAD_S:
            self._notes.append(f"its name is {age(ahead_s)} ahead of the clock, as that of an older version is")

    def _version(self, found: versions.Found) -> str:
        """Return the name of the version that this run makes: that of a run which has failed, or a new one.

        A first copy of terabytes is not begun again because the line was down for a day.
        """
        ended = newest_ended(found.own)
        begun = [one.name for one in found.own if one.state == "begun" and (ended is None or one.name > ended.name)]
        return max(begun) if begun else new_name(time.time(), found.versions)

    # The forecast.

    def _forecast(self, is_first: bool, rate_bps: int | None) -> None:
        """Write what is forecast of this run, before its first byte."""
        try:
            told = forecast_of_run(self.job, self.ledger, is_first, rate_bps)
        except ElephanError as error:
            self._say(f"{self.job.name}: no forecast: {one_line(str(error))}")
            return
        if told is not None:
            self.ledger.put_run(self.row, forecast=json.dumps({"told": told.as_json(), "rate_bps": rate_bps}))

    def _judge(self, seconds: float) -> None:
        """Write how the run compares with its forecast."""
        if not self.row["forecast"]:
            return
        held = json.loads(self.row["forecast"])
        told = CopyForecast.from_json(held["told"])
        sent = int(self.row["sent_bytes"] or 0)
        again = None
        try:
            if sent:
                # A forecast by earlier runs has no number of files of a run after the first.
                files = max(1, round((told.files or 1) * sent / max(told.bytes, 1)))
                history = History.of_rows(self.ledger.history(self.job.name, self.row))
                again = copy_forecast(self.job, FileSet(files, sent), held["rate_bps"], history)
        except ElephanError:
            again = None
        held["judged"] = judged(told, sent, seconds, again)
        self.ledger.put_run(self.row, forecast=json.dumps(held))

    # The copy's events.

    def _watch(self, event: dict[str, Any]) -> None:
        if event["event"] == "connected" and self._connected_s is None:
            self._connected_s = time.monotonic()
        if event["event"] != "progress":
            return
        self._durable = max(self._durable, int(event.get("durable_bytes", 0)))
        self._sent = int(event.get("sent_bytes", self._sent))
        now_s = time.monotonic()
        if now_s - self._progress_s < PROGRESS_S:
            return
        told = {name: event.get(name) for name in PROGRESS}
        told["seconds"] = self._moving_s()
        if self._rate is not None:
            told["rate_bps"] = 8 * (self._sent - self._rate[1]) / (now_s - self._rate[0])
        self._rate, self._progress_s = (now_s, self._sent), now_s
        self.ledger.put_run(self.row, progress=json.dumps(told))

    # The end.

    def _failed(self, text: str) -> None:
        self.ledger.put_run(self.row, state="failed", ended=time.time(), text=one_line(text), progress=None)

    def _done(self, outcome: CopyOutcome) -> None:
        receipt = {**outcome.receipt, "backup": self._summary}
        more = int(outcome.receipt.get("faults_more") or 0)
        texts = [faults_text(outcome.faults, more, self._summary), *self._notes]
        self.ledger.put_run(
            self.row,
            state=state_of(outcome.faults, more),
            ended=time.time(),
            attempts=self.row["attempts"] + 1,
            files=receipt.get("files"),
            bytes=receipt.get("bytes"),
            text="; ".join(filter(None, texts)) or None,
            progress=None,
            receipt=json.dumps(receipt),
        )
        self._judge(float(self.row["seconds"] or 0.0))
        if self.job.has_versions:
            self._remove_older()

    def _remove_older(self) -> None:
        """Remove the versions that may go. A fault of it is no fault of the run."""
        try:
            # A restore may need one of these: it holds the lock, and the next run removes them.
            with locked(self.ledger.place, self.spec.name, f"{self.job.name}.restore"):
                self._remove()
        except (Runs, native.Stopped):
            return
        except (InputError, RunError) as error:
            self._add_text(f"an older version could not be removed: {one_line(str(error))}")

    def _remove(self) -> None:
        keep, current = self.job.keep, str(self.row["version"])
        with versions.opened(self.place, self.owner) as there:
            own = there.look().own
            now = Moment.now(time.time())
            moments = [(one.name, Moment.of(one.began_s, one.facts)) for one in own if one.has_ended]
            ages = Ages.by_history(moments, now, longest_gap_s(self.job))
            names = to_remove(own, keep, now.wall_s, current, ages)
            waiting = set(to_remove(own, keep, now.wall_s, current)) - set(names)
            if waiting:
                self._add_text(
                    f"{pluralize(len(waiting), 'older version')} {'stays' if len(waiting) == 1 else 'stay'}: the clock "
                    f"went forward by {age(ages.unexplained_s)} more than the runs explain"
                )
            for name in names:
                there.remove(name, lambda: self._wait(0))
                self.ledger.note_removed(self.job.name, [name])

    def _add_text(self, text: str) -> None:
        self.ledger.put_run(self.row, text="; ".join(filter(None, (self.row["text"], text))))


def forecast_of_run(job: JobSpec, ledger: Ledger, is_first: bool, rate_bps: int | None) -> CopyForecast | None:
    """Return the forecast of a run; None where neither the file nor earlier runs say enough. Raises `ElephanError`."""
    data, _ = file_set(job, ledger, is_first)
    return None if data is None else copy_forecast(job, data, rate_bps, History.of_rows(ledger.history(job.name)))


def copy_forecast(job: JobSpec, data: FileSet, rate_bps: int | None, history: History) -> CopyForecast | None:
    """Return the forecast of a copy: by simulation of the job's path with the fixed part of earlier runs, or by
    these alone; None if they do not say enough. Raises `ElephanError`.
    """
    told = simulated(job, data, rate_bps) if data.bytes else None
    if told is None:
        return history.forecast(data.bytes, data.files)
    least = simulated(job, LEAST, rate_bps)
    return history.with_fixed(told, 0.0 if least is None else least.seconds)


def file_set(job: JobSpec, ledger: Ledger, is_first: bool) -> tuple[FileSet | None, list[dict[str, Any]]]:
    """Return what a run is expected to send, and the job's runs."""
    runs = [row for row in ledger.runs(job.name) if row["kind"] != "restore"]
    if is_first:
        if job.data.first is not None:
            return FileSet.of_text(job.data.first), runs
        whole = next((row for row in runs if row["bytes"] is not None and row["files"]), None)
        if whole is not None:
            return FileSet(whole["files"], whole["bytes"]), runs
        places = [Place.parse(one) for one in job.sources]
        if all(place.host is None and Path(place.path).exists() for place in places):
            return FileSet.of_trees([place.path for place in places]), runs
        return None, runs
    if job.data.change is not None:
        return FileSet.of_text(job.data.change), runs
    change = usual_change(runs)
    return (None if change is None else FileSet(1, change)), runs
