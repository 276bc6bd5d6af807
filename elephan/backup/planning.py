"""The forecast of a whole backup: first copies, runs, RPO and RTO of each job."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

from elephan.advise.forecast import FileSet
from elephan.backup.forecasts import CopyForecast, Played, play
from elephan.backup.history import History
from elephan.backup.ledger import Ledger
from elephan.backup.outcome import COPIED
from elephan.backup.running import copy_forecast, file_set, request_of
from elephan.backup.spec import JobSpec, Spec
from elephan.backup.timetable import least_rate
from elephan.copy.api import Place, dry_run
from elephan.errors import ElephanError
from elephan.printable import one_line
from elephan.units import duration


@dataclass
class JobForecast:
    """Forecast of a job."""

    job: JobSpec
    first: CopyForecast | None = None
    run: CopyForecast | None = None
    restore: CopyForecast | None = None
    played: Played | None = None
    high: Played | None = None
    """With each copy as slow as 95 % of them are at most."""
    notes: list[str] = field(default_factory=list)
    first_data: FileSet | None = None
    run_data: FileSet | None = None
    history: History = field(default_factory=History)

    def as_json(self) -> dict[str, Any]:
        """Return it for the store and for scripts. Times are in s."""
        played, high = self.played, self.high
        return {
            "job": self.job.name,
            "first": None if self.first is None else self.first.as_json(),
            "run": None if self.run is None else self.run.as_json(),
            "restore": None if self.restore is None else self.restore.as_json(),
            "first_done_s": None if played is None else played.first_s,
            "first_age_s": None if played is None else played.first_age_s,
            "rpo_s": None if played is None else played.rpo_s,
            "rpo_high_s": None if high is None else high.rpo_s,
            "rto_s": None if self.restore is None else self.restore.seconds,
            "rto_low_s": None if self.restore is None else self.restore.seconds_low,
            "rto_high_s": None if self.restore is None else self.restore.seconds_high,
            "missed": None if played is None else played.missed,
            "notes": self.notes,
        }


def forecast_backup(spec: Spec, ledger: Ledger, count_sources: bool = True) -> list[JobForecast]:
    """Return the forecast of each job, and keep it in the store. `count_sources`: ask hosts for sources whose size the
    file does not say.
    """
    found = [_of_job(job, ledger, count_sources) for job in spec.jobs]
    known = {one.job.name: one for one in found if one.first is not None and one.run is not None}
    playable = replace(spec, jobs=tuple(one.job for one in known.values()))
    copied = frozenset(name for name in known if _has_copy(ledger, name))

    asked: dict[tuple[str, bool, int | None], CopyForecast] = {}

    def takes(job: JobSpec, is_first: bool, rate_bps: int | None) -> CopyForecast:
        key = (job.name, is_first, rate_bps)
        if key not in asked:
            asked[key] = _at_rate(known[job.name], is_first, rate_bps)
        return asked[key]

    if playable.jobs:
        start_s = time.time()
        middle, high = (play(playable, takes, start_s, copied, is_high) for is_high in (False, True))
        for name, one in known.items():
            one.played, one.high = middle.get(name), high.get(name)
            _note(one, middle.get(name), name in copied)
    for one in found:
        ledger.put_forecast(one.job, one.as_json())
    return found


def _has_copy(ledger: Ledger, name: str) -> bool:
    return any(row["kind"] != "restore" and row["state"] in COPIED for row in ledger.runs(name))


def _of_job(job: JobSpec, ledger: Ledger, count_sources: bool) -> JobForecast:
    one = JobForecast(job)
    rate_bps = _rate_of(job)
    try:
        data, _ = file_set(job, ledger, True)
        history = one.history = History.of_rows(ledger.history(job.name))
        if data is None and count_sources:
            told = dry_run(request_of(job, [Place.parse(text) for text in job.sources], Place.parse(job.destination),
                                      {}, None))  # fmt: skip
            data = FileSet(max(1, int(told["files"])), int(told["bytes"]))
        if data is None:
            one.notes.append("data.first: missing, and the sources could not be counted")
            return one
        one.first_data = data
        one.first = copy_forecast(job, data, rate_bps, history)
        # As fast as possible: without the job's limits.
        one.restore = copy_forecast(job, data, None, history)
        if job.kind == "full":
            one.run, one.run_data = one.first, data
        else:
            change, _ = file_set(job, ledger, False)
            if change is None:
                one.notes.append("data.change: missing, and no earlier run gives it")
            else:
                one.run_data = change
                one.run = copy_forecast(job, change, rate_bps, history)
        if one.first is None or (one.run is None and one.run_data is not None):
            one.notes.append(_no_rate(bool(history.runs)))
    except ElephanError as error:
        one.notes.append(f"no forecast: {one_line(str(error))}")
    return one


def _no_rate(has_runs: bool) -> str:
    """Return why there is no forecast."""
    if not has_runs:
        return "path: missing, and no earlier run gives its rate"
    return "path: missing, and no earlier run tells its rate: each took little longer than start, connect and commit"


def _rate_of(job: JobSpec) -> int | None:
    """Return the limit under which a job is shown: its own, or that of its only window."""
    rates = {one.rate_bps for one in job.windows}
    return least_rate(job.rate_bps, rates.pop()) if len(rates) == 1 else job.rate_bps


def _at_rate(one: JobForecast, is_first: bool, rate_bps: int | None) -> CopyForecast:
    """Return the forecast of a job's first copy, or of a later run, at a limit."""
    told, data = (one.first, one.first_data) if is_first else (one.run, one.run_data)
    assert told is not None and data is not None, "it is known"
    if rate_bps == _rate_of(one.job):
        return told
    if told.source == "simulation":
        again = copy_forecast(one.job, data, rate_bps, one.history)
        assert again is not None, "its path is known"
        return again
    if rate_bps is None or told.goodput_bps <= rate_bps:
        return told
    more = told.goodput_bps / rate_bps - 1
    low, middle, high = (
        seconds + more * max(0.0, seconds - told.fixed_s)
        for seconds in (told.seconds_low, told.seconds, told.seconds_high)
    )
    return replace(told, seconds_low=low, seconds=middle, seconds_high=high, goodput_bps=float(rate_bps))


def _note(one: JobForecast, played: Played | None, has_copy: bool) -> None:
    if played is None:
        one.notes.append("no schedule: the RPO is the age of the last run that was started by hand")
        return
    if not has_copy and played.first_s is None:
        one.notes.append("no first copy ends within the simulated time: it needs a higher rate or more hours")
    elif played.rpo_s is None:
        one.notes.append("no third copy ends within the simulated time: it needs a higher rate or more hours")
    if played.first_age_s is not None and played.rpo_s is not None and played.first_age_s > 1.5 * played.rpo_s:
        one.notes.append(f"until its second copy is complete, its data is up to {duration(played.first_age_s)} old")
    if played.missed:
        one.notes.append(f"{played.missed} of its times pass while the previous run still runs")
