"""Work of a monitor that needs much memory, each in a process that ends: `python -m elephan.monitor.children TASK`.

A task reads one JSON object from stdin and writes one to stdout. An error that a person can act on is a line on stderr,
with the exit code of its class. A child ends with its monitor.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from elephan import user_files
from elephan.errors import ElephanError, StoreAway, StoreError

PR_SET_PDEATHSIG = 1
NICE = 10
"""Of forecasts and files of days: they can wait."""
NOTIFY_S = 60.0
"""Time after which no further message is begun, s: half of the limit of such a child."""
LATE_DAYS = 3
"""Days whose outcomes are summarised again: a server that was away gets them later."""
ROWS_AT_ONCE = 2000
"""Rows that go to a server in one transaction."""


def config(asked: dict[str, Any]) -> dict[str, Any]:
    """Read a monitor's file."""
    from elephan.monitor.config import load

    return {"spec": load(Path(asked["file"])).to_json()}


def upgrade(asked: dict[str, Any]) -> dict[str, Any]:
    """Make or upgrade the tables of the file that the monitor writes to."""
    from elephan.monitor.writing import local_file
    from elephan.store.database import Store
    from elephan.store.migrate import bring_up_to_date
    from elephan.store.place import Place

    place = Place.of(asked["store"])
    if place.spool is None:
        Store(asked["store"]).close()
    else:
        local = local_file(place)
        local.parent.mkdir(parents=True, exist_ok=True)
        bring_up_to_date(Place.of(str(local)))
    return {}


def days(asked: dict[str, Any]) -> dict[str, Any]:
    """Make files of journals that are over, summarise them, and remove what is older than its retention."""
    from elephan.monitor import journal, raw
    from elephan.monitor.tables import monitor_folder
    from elephan.monitor.writing import Database, make_space
    from elephan.store.place import Place
    from elephan.store.sql import Fault

    os.nice(NICE)
    place = Place.of(asked["store"])
    now = time.time()
    # A minute of grace: samples of before midnight are on their way.
    today = journal.day_of(now - 60)
    done, failed = [], None
    database = Database(place)
    # Those too that the file has no more: what is stored of them ages as well.
    asked["paths"] = [one for (one,) in database.rows(
        "select id from monitor_path where monitor = :monitor", monitor=asked["monitor"]
    )]  # fmt: skip
    for identity in asked["paths"]:
        folder = monitor_folder(place) / str(identity)
        for path in sorted(folder.glob("????-??-??.journal")):
            if path.stem >= today:
                continue
            samples = raw.of_journal(path)
            target = raw.parquet_path(folder, path.stem)
            try:
                if len(samples.time_s):
                    if target.exists():
                        # A clock that was set back, or a kill before the journal was removed.
                        samples = raw.merged(raw.read(target), samples)
                    raw.write(samples, target)
                database.add("monitor_summary", raw.summaries(samples, identity, 86_400))
            except StoreError as error:
                failed = str(error)
                make_space(place, asked["free_bytes"])
                continue
            if database.flush():
                path.unlink(missing_ok=True)
                done.append(str(target))
            else:
                failed = database.fault
    gone = _old_files(asked, place, now)
    try:
        _old_rows(asked, place, database, now)
    except (StoreError, Fault) as error:
        failed = failed or f"summaries of outcomes and retention: {error}"
    database.close()
    return {"done": done, "removed": gone, "failed": failed}


def _old_rows(asked: dict[str, Any], place: Any, database: Any, now: float) -> None:
    """Summarise outcomes and remove what is older than its retention, where the rows end up: here or at the server."""
    from elephan.store.database import Store

    if place.spool is None:
        with database._file.transaction(writing=True) as execute:
            _outcome_summaries(execute, asked["paths"], now)
            _retention(execute, asked, now)
        return
    store = Store(asked["store"], say=lambda _: None)
    try:
        with store._database.transaction(writing=True) as execute:
            _outcome_summaries(execute, asked["paths"], now)
            _retention(execute, asked, now)
    finally:
        store.close()


def _outcome_summaries(execute: Any, identities: list[int], now: float) -> None:
    """Summarise the estimates of the last days' outcomes by the hour and the day."""
    from elephan.monitor.tables import put

    today = int(now // 86_400) * 86_400
    for identity in identities:
        put(execute, "monitor_summary", _outcome_rows(execute, identity, today - LATE_DAYS * 86_400, today))


def _outcome_rows(execute: Any, identity: int, start: int, end: int) -> list[dict[str, Any]]:
    from elephan.monitor.reading import STAMP_QUANTITIES
    from elephan.monitor.summaries import row

    values: dict[tuple[str, int, int], list[float]] = {}
    for at, text in execute(
        "select at, outcome from monitor_outcome where path_id = :id and at >= :start and at < :end",
        {"id": identity, "start": start, "end": end},
    ):
        for one in json.loads(text)["estimates"]:
            if one["quantity"] in STAMP_QUANTITIES:
                # Summaries of samples have these rows; one `stamp` by hand would take their place.
                continue
            for seconds in (3600, 86_400):
                key = (one["quantity"], seconds, int(at // seconds) * seconds)
                values.setdefault(key, []).append(one["value"])
    return [row(identity, *key, sorted(several), 0) for key, several in values.items()]


def _old_files(asked: dict[str, Any], place: Any, now: float) -> list[str]:
    """Remove the raw samples that are older than their retention; return the files."""
    from elephan.monitor.journal import day_of
    from elephan.monitor.tables import monitor_folder

    gone = []
    oldest = day_of(now - asked["raw_s"])
    for identity in asked["paths"]:
        for path in (monitor_folder(place) / str(identity)).glob("????-??-??.parquet"):
            if path.stem < oldest:
                path.unlink(missing_ok=True)
                gone.append(str(path))
    return gone


def _retention(execute: Any, asked: dict[str, Any], now: float) -> None:
    """Remove the rows that are older than their retention."""
    for identity in asked["paths"]:
        values = {"id": identity, "minutes": int(now - asked["minutes_s"]), "hours": int(now - asked["hours_s"])}
        for sql in (
            "delete from monitor_summary where path_id = :id and seconds = 60 and start < :minutes",
            "delete from monitor_summary where path_id = :id and seconds > 60 and start < :hours",
            "delete from monitor_outcome where path_id = :id and at < :hours",
            "delete from monitor_alert where path_id = :id and ended < :hours",
        ):
            execute(sql, {name: value for name, value in values.items() if f":{name}" in sql})


def send(asked: dict[str, Any]) -> dict[str, Any]:
    """Send rows that wait to the server; each leaves this machine after the server's commit."""
    from elephan.monitor.tables import KEYS, put
    from elephan.monitor.writing import local_file
    from elephan.store.database import Store
    from elephan.store.place import Place, is_away, reason_of
    from elephan.store.sql import Fault, File

    place = Place.of(asked["store"])
    sent = 0
    local = File(local_file(place))
    try:
        store = Store(asked["store"], say=lambda _: None)
        try:
            for table, (columns, _) in KEYS.items():
                while True:
                    with local.transaction() as execute:
                        found = execute(f"select {', '.join(columns)} from {table} limit {ROWS_AT_ONCE}", {})
                    rows = [dict(zip(columns, row, strict=True)) for row in found]
                    if not rows:
                        break
                    with store._database.transaction(writing=True) as execute:
                        put(execute, table, rows)
                    sent += len(rows)
                    if table == "monitor_path":
                        # The others point to it here too.
                        break
                    conditions = " and ".join(f"{name} is :{name}" for name in columns)
                    with local.transaction(writing=True) as execute:
                        # One that was changed meanwhile stays.
                        execute(f"delete from {table} where {conditions}", rows)
        finally:
            store.close()
    except Fault as fault:
        kind = StoreAway if is_away(fault) else StoreError
        raise kind(f"the store {place.location}: {reason_of(fault)}") from fault
    finally:
        local.close()
    return {"sent": sent}


def notify(asked: dict[str, Any]) -> dict[str, Any]:
    """Send messages by apprise, each to all URLs; return the ids of those that every URL took."""
    try:
        import apprise
    except ImportError:
        raise ElephanError("alerts need apprise: pip install 'elephan[alerts]'") from None
    import logging

    said: list[str] = []

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logging.getLogger("apprise").addHandler(Said(logging.WARNING))
    urls = list(asked["urls"])
    if asked["urls_file"]:
        try:
            lines = user_files.read_text(asked["urls_file"], user_files.TEXT).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ElephanError(f"{asked['urls_file']}: cannot be read: {error}") from error
        urls += [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    sent = []
    until_s = time.monotonic() + NOTIFY_S
    for message in asked["messages"]:
        if time.monotonic() > until_s:
            # Killed later, it could not tell what it has sent. The next child goes on from here.
            break
        took = True
        for number, url in enumerate(urls):
            if number in message.get("done", []):
                continue
            one = apprise.Apprise()
            if not one.add(url):
                raise ElephanError(f"URL {number + 1} of alerts is not one of apprise's")
            kinds = {"alert": apprise.NotifyType.WARNING, "recovered": apprise.NotifyType.SUCCESS}
            kind = kinds.get(message["type"], apprise.NotifyType.INFO)
            if one.notify(title=message["title"], body=message["body"], notify_type=kind):
                message.setdefault("done", []).append(number)
            else:
                took = False
        if took:
            sent.append(message["id"])
    done = {message["id"]: message.get("done", []) for message in asked["messages"]}
    return {"sent": sent, "done": done, "failed": said[-1] if said and len(sent) < len(asked["messages"]) else None}


def forecast(asked: dict[str, Any]) -> dict[str, Any]:
    """Simulate transfers over a path as it was and as it is."""
    from elephan.monitor.forecast import forecast as forecast_one

    os.nice(NICE)
    return {"forecast": [forecast_one(Path(file), asked["before"], asked["after"]) for file in asked["transfers"]]}


def measure(asked: dict[str, Any]) -> dict[str, Any]:
    """Run a path test; its outcome, a refusal too, is no fault."""
    from elephan.monitor.measuring import measure as measure_one

    return {"outcome": measure_one(asked)}


TASKS = {task.__name__: task for task in (config, upgrade, days, send, notify, forecast, measure)}


def main() -> int:
    """Do the task that the command line names."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # Ctrl-C is for the monitor, which ends its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked = json.loads(sys.stdin.read() or "{}")
    try:
        told = TASKS[sys.argv[1]](asked)
    except ElephanError as error:
        print(str(error), file=sys.stderr)
        return error.exit_code
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
