"""A backup's jobs and runs in words."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from elephan import units
from elephan.backup.config import DAYS
from elephan.backup.forecasts import CopyForecast, band_text

STATES = {
    "running": "runs",
    "waiting": "waits",
    "interrupted": "interrupted",
    "done": "done",
    "attributes": "done, without some attributes",
    "faults": "done, with faults",
    "failed": "failed",
}
"""States of a run in words."""

STATE_WORDS = {
    "good": "good",
    "running": "runs",
    "waiting": "waits",
    "failed": "failed",
    "late": "late",
    "faults": "faults",
    "ended": "not running",
    "new": "never run",
}
"""States of a job in words."""


RPO_RTO = "RPO: the greatest age of the newest complete copy; RTO: the time to restore all; both are forecast."
"""The two words of disaster recovery, where they are shown."""


def moment(at_s: float | None) -> str:
    """Return a time as people of this machine read it."""
    return units.NOTHING if at_s is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))


def age(seconds: float | None) -> str:
    """Return an age or a time until something, in its largest unit but for small ones."""
    if seconds is None:
        return units.NOTHING
    for unit_s, unit in ((86_400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if abs(seconds) >= 2 * unit_s:
            return f"{seconds / unit_s:.0f} {unit}"
    return f"{seconds:.0f} s"


def next_text(next_due_s: float | None, now_s: float) -> str:
    """Return the time until a job is due."""
    return units.NOTHING if next_due_s is None else f"in {age(max(0.0, next_due_s - now_s))}"


def period(seconds: float) -> str:
    """Return a period as a file writes it."""
    for unit_s, unit in ((7 * 86_400, "w"), (86_400, "d"), (3600, "h"), (60, "min")):
        if seconds % unit_s == 0:
            return f"{seconds / unit_s:.0f} {unit}"
    return f"{seconds:.0f} s"


def _minute(value: int) -> str:
    return f"{value // 60:02d}:{value % 60:02d}"


def _days(days: list[int]) -> str:
    return "" if len(days) == 7 else f" {', '.join(DAYS[day] for day in days)}"


def schedule(settings: Mapping[str, Any]) -> str:
    """Return when a job runs."""
    if settings.get("every_s"):
        when = f"every {period(settings['every_s'])}"
    elif settings.get("at_min"):
        when = f"at {', '.join(map(_minute, settings['at_min']))}{_days(settings['days'])}"
    else:
        when = "when asked"
    windows = [
        f"{_minute(one['begin_min'])}-{_minute(one['end_min'])}{_days(one['days'])}"
        + ("" if one["rate_bps"] is None else f" at most {units.rate(one['rate_bps'])}")
        for one in settings.get("windows", [])
    ]
    return f"{when}; {', '.join(windows)}" if windows else when


def kept(settings: Mapping[str, Any]) -> str:
    """Return which older versions stay."""
    if settings.get("kind") == "mirror":
        return "no versions"
    if settings.get("keep_age_s"):
        return f"versions of {period(settings['keep_age_s'])}"
    if settings.get("keep_versions"):
        return units.pluralize(settings["keep_versions"], "version")
    return "all versions"


def forecast_of(row: Mapping[str, Any]) -> CopyForecast | None:
    """Return what was forecast of a run."""
    return None if not row["forecast"] else CopyForecast.from_json(json.loads(row["forecast"])["told"])


def verdict_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return how a run compares with its forecast."""
    return None if not row["forecast"] else json.loads(row["forecast"]).get("judged")


def verdict_text(row: Mapping[str, Any]) -> str:
    """Return how a run compares with its forecast, in words."""
    found = verdict_of(row)
    if found is None:
        return ""
    return f"{found['verdict']}: {found['text']}" if found["text"] else str(found["verdict"])


def progress_text(row: Mapping[str, Any]) -> str:
    """Return how far a run is."""
    if not row["progress"]:
        return ""
    told = json.loads(row["progress"])
    total = told.get("bytes_total")
    done = units.size(told.get("bytes_done"))
    share = f" of {units.size(total)} ({100 * told['bytes_done'] / total:.0f} %)" if total else ""
    rate = f", {units.rate(told['rate_bps'])}" if told.get("rate_bps") else ""
    return f"{done}{share}{rate}"


def run_line(job: str, row: Mapping[str, Any]) -> str:
    """Return a run in one line."""
    what = "" if row["version"] is None else f" {row['version']}"
    if row["kind"] == "restore":
        what = f" restore{what}"
    parts = [f"{job}:{what} {STATES[row['state']]}".replace(":  ", ": ")]
    if row["state"] in ("done", "attributes", "faults"):
        took = "" if row["seconds"] is None else f" in {units.duration(row['seconds'])}"
        files = "1 file" if row["files"] == 1 else f"{units.count(row['files'])} files"
        parts.append(f"{units.size(row['sent_bytes'])} of {units.size(row['bytes'])}, {files}{took}")
    elif row["state"] == "running" and row["progress"]:
        parts.append(progress_text(row))
    told = forecast_of(row)
    if told is not None:
        parts.append(f"forecast {band_text(told)}" + (f", {verdict_text(row)}" if verdict_of(row) else ""))
    if row["attempts"] > 1:
        parts.append(f"{row['attempts']} attempts")
    if row["missed"]:
        parts.append(f"for {units.pluralize(row['missed'], 'missed time')} too")
    if row["text"]:
        parts.append(str(row["text"]))
    return "; ".join(parts)
