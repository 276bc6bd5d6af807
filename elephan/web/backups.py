"""The pages of backups: jobs with their state, a job with its runs and attempts."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from elephan import units
from elephan.backup.reading import BackupReader, JobView, Row, faults_notes
from elephan.backup.texts import (
    STATE_WORDS,
    STATES,
    age,
    forecast_of,
    kept,
    next_text,
    progress_text,
    schedule,
    verdict_of,
    verdict_text,
)
from elephan.web.guard import Visit
from elephan.web.pages import page
from elephan.web.window import ago

PAGE = 50
"""Runs on one page of a job."""

SIGNS = {
    "good": "good", "running": "good", "waiting": "paused", "failed": "alert", "late": "alert", "faults": "alert",
    "ended": "paused", "new": "silent",
}  # fmt: skip
"""Sign of a job's state; the word beside it says which."""

RUN_SIGNS = {
    "running": "good", "waiting": "paused", "interrupted": "paused", "done": "good",
    "attributes": "good", "faults": "alert", "failed": "alert",
}  # fmt: skip


def address(view: JobView) -> str:
    """Return the URL of a job's page."""
    return f"/backups/{quote(view.backup, safe='')}/{quote(view.name, safe='')}"


def _band(told: dict[str, Any]) -> str:
    """Return a forecast time with its band, in few words."""
    low, middle, high = (units.duration(told[name]) for name in ("seconds_low", "seconds", "seconds_high"))
    return middle if low == high else f"{middle} ({low} to {high})"


@dataclass(frozen=True)
class RunRow:
    """A run for a page."""

    row: Row
    sign: str
    state: str
    took: str
    forecast: str
    verdict: str
    is_off: bool
    """True if it was slower than forecast."""
    progress: str
    attempts: list[Row]


def _run(row: Row, attempts: list[Row] | None = None) -> RunRow:
    told, verdict = forecast_of(row), verdict_of(row)
    return RunRow(
        row,
        RUN_SIGNS[row["state"]],
        STATES[row["state"]],
        units.duration(row["seconds"]),
        units.NOTHING if told is None else _band(told.as_json()),
        verdict_text(row),
        verdict is not None and verdict["verdict"] == "slower",
        progress_text(row),
        attempts or [],
    )


@dataclass(frozen=True)
class JobRow:
    """A job in the table."""

    view: JobView
    url: str
    sign: str
    state: str
    run: RunRow | None
    """The one that goes on, or the newest."""
    next: str
    copied: str
    at_risk: str
    rpo: str
    rto: str
    misses_rpo: bool
    """True if more is at risk than was forecast at worst."""


def _job(view: JobView, now_s: float) -> JobRow:
    shown = view.running or view.last
    forecast = view.forecast
    worst_s = forecast.get("rpo_high_s") or forecast.get("rpo_s")
    following = next_text(view.next_due_s, now_s)
    return JobRow(
        view,
        address(view),
        SIGNS[view.state],
        STATE_WORDS[view.state],
        None if shown is None else _run(shown),
        "late" if view.state == "late" else following,
        ago(None if view.complete is None else view.complete["begun"], now_s),
        "all" if view.at_risk_s is None else age(view.at_risk_s),
        units.duration(forecast.get("rpo_s")),
        units.duration(forecast.get("rto_s")),
        worst_s is not None and view.at_risk_s is not None and view.at_risk_s > worst_s,
    )


def backups_page(visit: Visit, reader: BackupReader) -> str:
    """Return the jobs of all backups."""
    now_s = time.time()
    rows = [_job(view, now_s) for view in reader.jobs(now_s=now_s)]
    signs = [row.sign for row in rows]
    counts = [(sign, signs.count(sign), word) for sign, word in
              (("good", "good"), ("alert", "failed, late or with faults"), ("silent", "without a copy"),
               ("paused", "not running"))
              if sign in signs]  # fmt: skip
    several = len({row.view.backup for row in rows}) > 1
    return page("backups.html.j2", visit, "/backups", rows=rows, counts=counts, several=several)


def job_page(visit: Visit, reader: BackupReader, view: JobView, first: int) -> str:
    """Return one job with its runs."""
    now_s = time.time()
    found = reader.runs(view.id, PAGE + 1, first)
    runs = [_run(row, reader.attempts(row["id"]) if row["attempts"] > 1 else None) for row in found[:PAGE]]
    settings = view.settings
    facts = [
        ("backup", view.backup),
        ("kind", settings["kind"]),
        ("from", ", ".join(settings["sources"])),
        ("to", settings["destination"]),
        ("runs", schedule(settings)),
        ("keeps", kept(settings)),
        ("at most", "" if settings.get("rate_bps") is None else units.rate(settings["rate_bps"])),
    ]
    return page(
        "backup_job.html.j2",
        visit,
        "/backups",
        job=_job(view, now_s),
        facts=[(name, value) for name, value in facts if value],
        forecast=_forecast(view.forecast),
        alerts=[*view.notes, *faults_notes(view)],
        notes=list(view.forecast.get("notes", ())),
        runs=runs,
        receipt=None if view.complete is None or not view.complete["receipt"] else _receipt(view.complete),
        first=first,
        size=PAGE,
        more=len(found) > PAGE,
    )


def _forecast(told: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what was simulated of a job, as name and value."""
    rows = []
    for key, name in (("first", "first copy"), ("run", "a run"), ("restore", "restore (RTO)")):
        one = told.get(key)
        if one:
            rows.append((name, f"{_band(one)} for {units.size(one['bytes'])}, {one['source']}"))
    if told.get("rpo_s") is not None:
        high = told.get("rpo_high_s")
        worst = "" if high is None or high == told["rpo_s"] else f", at worst {units.duration(high)}"
        rows.append(("data at risk (RPO)", units.duration(told["rpo_s"]) + worst))
    if told.get("first_done_s"):
        rows.append(("first copy done after", units.duration(told["first_done_s"])))
    return rows


def _receipt(row: Row) -> list[tuple[str, str]]:
    held = json.loads(row["receipt"])
    rows = [
        ("root", str(held.get("root") or "")),
        ("files", units.count(row["files"])),
        ("size", units.size(row["bytes"])),
        ("goodput", units.rate(held.get("goodput_bps"))),
        ("version", str(row["version"] or "")),
    ]
    return [(name, value) for name, value in rows if value]
