"""Rows of a monitor in the store: on SQLite and on servers, in the same words.

Ids are made of what a row is of. So rows that were written twice, here and on a server that was away, are one row, and
no id has to be asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from elephan.store.place import Place, data_folder
from elephan.store.sql import Execute, id_of

SECONDS = (60, 3600, 86_400)
"""Lengths of the summaries."""
PATH = ("id", "monitor", "name", "settings", "created", "state", "changed")
SUMMARY = ("path_id", "quantity", "seconds", "start", "count", "lost", "min", "p05", "p50", "p95", "max", "mean")
OUTCOME = ("id", "path_id", "test", "at", "outcome")
ALERT = (
    "id", "path_id", "quantity", "kind", "since", "found", "ended", "text", "evidence", "cause", "forecast",
)  # fmt: skip
KEYS = {
    "monitor_path": (PATH, ("id",)),
    "monitor_summary": (SUMMARY, ("path_id", "quantity", "seconds", "start")),
    "monitor_outcome": (OUTCOME, ("id",)),
    "monitor_alert": (ALERT, ("id",)),
}
"""Columns and primary key of each table, those first that others point to."""


def path_id(monitor: str, name: str) -> int:
    """Return the id of a monitor's path."""
    return id_of("path", monitor, name)


def monitor_folder(place: Place) -> Path:
    """Return the folder of raw samples and state beside the database; for a server, in the user's data folder."""
    if place.file is not None:
        return place.file.with_name(f"{place.file.stem}.monitor")
    return data_folder() / "monitor" / place.series.name


def path_folder(place: Place, identity: int) -> Path:
    """Return the folder of one path."""
    return monitor_folder(place) / str(identity)


def put(execute: Execute, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows in place of those with their keys."""
    columns, key = KEYS[table]
    if not rows:
        return
    if table == "monitor_path":
        return _put_paths(execute, rows)
    conditions = " and ".join(f"{name} = :{name}" for name in key)
    execute(f"delete from {table} where {conditions}", [{name: row[name] for name in key} for row in rows])
    insert(execute, table, rows)


def insert(execute: Execute, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows whose keys are new."""
    columns, _ = KEYS[table]
    execute(f"insert into {table} ({', '.join(columns)}) values ({', '.join(f':{name}' for name in columns)})", [*rows])


def _put_paths(execute: Execute, rows: Iterable[Mapping[str, Any]]) -> None:
    # Not deleted first: the rows that point to it would go too.
    for row in rows:
        if execute("select id from monitor_path where id = :id", {"id": row["id"]}):
            execute(
                "update monitor_path set settings = :settings, state = :state, changed = :changed where id = :id",
                {name: row[name] for name in ("settings", "state", "changed", "id")},
            )
        else:
            insert(execute, "monitor_path", [row])
