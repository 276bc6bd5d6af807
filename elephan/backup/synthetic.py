"""A made-up backup in a store, for pages and tests: a job that is well, one that failed, one that runs."""

from __future__ import annotations

import json
import time
from typing import Any

from elephan.backup.forecasts import CopyForecast, judged
from elephan.backup.ledger import Ledger
from elephan.backup.retention import name_of
from elephan.backup.spec import JobSpec, Keep, Schedule, Window
from elephan.backup.tables import job_id
from elephan.store.sql import id_of

NAME = "synthetic"
DAY_S = 86_400.0


def fill(location: str, days: int = 3) -> None:
    """Write jobs, runs and attempts of some days up to now. Raises `StoreError`."""
    ledger = Ledger(location, NAME)
    try:
        _archive(ledger, days)
        _images(ledger)
        _mirror(ledger)
    finally:
        ledger.close()


def _archive(ledger: Ledger, days: int) -> None:
    window = Window(22 * 60, 6 * 60, rate_bps=40_000_000)
    job = JobSpec(
        "archive", "incremental", ("/srv/data/",), "nyc:/backup/data", Schedule(at_min=(22 * 60,)), (window,),
        Keep(age_s=7 * DAY_S),
    )  # fmt: skip
    ledger.put_job(job, "active", time.time() + 6 * 3600)
    told = CopyForecast("simulation", 12, 300_000_000, 58.0, 60.5, 66.0, 39_700_000.0, ["bound by the line"])
    first = CopyForecast("simulation", 1_000_000, 2 * 10**12, 396_000.0, 400_000.0, 405_000.0, 40_000_000.0)
    forecast = {
        "job": "archive", "first": first.as_json(), "run": told.as_json(), "restore": first.as_json(),
        "first_done_s": 14 * DAY_S, "rpo_s": DAY_S + 60, "rpo_high_s": DAY_S + 66, "rto_s": 400_000.0,
        "rto_low_s": 396_000.0, "rto_high_s": 405_000.0, "missed": 0, "notes": ["13 of its times come while the run "
        "before is not done"],
    }  # fmt: skip
    ledger.put_forecast(job, forecast)
    for day in range(days, 0, -1):
        begun = time.time() - day * DAY_S + 3600
        sent, seconds = 290_000_000 + 9_000_000 * day, 57.0 + 2 * day
        held = {"told": told.as_json(), "rate_bps": None, "judged": judged(told, sent, seconds, None)}
        receipt = {"root": f"{day:064x}", "goodput_bps": 8 * sent / seconds, "sent_bytes": sent}
        _run(
            ledger, "archive", "incremental", begun, state="done", version=name_of(begun), ended=begun + seconds,
            attempts=1, files=1_000_000, bytes=2 * 10**12, sent_bytes=sent, seconds=seconds,
            receipt=json.dumps(receipt), forecast=json.dumps(held), removed=begun + DAY_S if day == days else None,
        )  # fmt: skip


def _images(ledger: Ledger) -> None:
    job = JobSpec("images", "mirror", ("/srv/images/",), "nyc:/backup/images", Schedule(every_s=2 * 3600.0))
    ledger.put_job(job, "active", time.time() + 3600)
    begun = time.time() - 3500
    text = "nyc: <b>no route</b> to host"
    row = _run(
        ledger, "images", "mirror", begun, state="failed", ended=begun + 900, attempts=2, sent_bytes=5_000_000,
        seconds=40.0, text=text, missed=1,
    )  # fmt: skip
    for number in (1, 2):
        attempt = ledger.new_attempt(row, number)
        ledger.put_attempt(attempt, ended=begun + 20 * number, outcome="lost", sent_bytes=2_500_000, text=text)


def _mirror(ledger: Ledger) -> None:
    job = JobSpec("volume", "mirror", ("/dev/vg/data",), "nyc:/dev/vg/copy", Schedule(every_s=6 * 3600.0))
    ledger.put_job(job, "active", time.time() + 3600)
    progress = {"bytes_done": 4 * 10**9, "bytes_total": 10**10, "sent_bytes": 10**8, "rate_bps": 9.1e8}
    _run(ledger, "volume", "mirror", time.time() - 60, state="running", progress=json.dumps(progress))


def _run(ledger: Ledger, job: str, kind: str, begun: float, **values: Any) -> dict[str, Any]:
    row = ledger.new_run(job, kind, None, begun, 0)
    # Written in its own place in time.
    with ledger._file.transaction(writing=True) as execute:
        execute("delete from backup_run where id = :id", {"id": row["id"]})
    row["id"] = id_of("run", job_id(NAME, job), begun)
    ledger.put_run(row, begun=begun, due=begun, **values)
    return row
