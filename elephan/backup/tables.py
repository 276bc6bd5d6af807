"""Rows of a backup in the store: on SQLite and on servers, in the same words.

Ids are made of what a row is of. So rows that were written twice, here and on a server that was away, are one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elephan.store.place import Place, data_folder
from elephan.store.sql import Execute, id_of

JOB = ("id", "backup", "name", "settings", "created", "state", "next_due", "forecast", "changed")
RUN = (
    "id", "job_id", "kind", "version", "due", "missed", "sequence", "begun", "ended", "state", "attempts", "files",
    "bytes", "sent_bytes", "seconds", "removed", "text", "progress", "receipt", "forecast", "changed",
)  # fmt: skip
ATTEMPT = ("id", "run_id", "number", "begun", "ended", "outcome", "sent_bytes", "text")
COLUMNS = {"backup_job": JOB, "backup_run": RUN, "backup_attempt": ATTEMPT}
"""Columns of each table, those first that others point to."""


def job_id(backup: str, name: str) -> int:
    """Return the id of a backup's job."""
    return id_of("backup", backup, name)


def backup_folder(place: Place) -> Path:
    """Return the folder of locks and manifests beside the database; for a server, in the user's data folder."""
    if place.file is not None:
        return place.file.with_name(f"{place.file.stem}.backup")
    return data_folder() / "backup" / place.series.name


def put(execute: Execute, table: str, row: Mapping[str, Any]) -> None:
    """Write a row; one with its id is changed, and not replaced: rows that point to it would go too."""
    columns = COLUMNS[table]
    values = {name: row[name] for name in columns}
    if execute(f"select id from {table} where id = :id", {"id": row["id"]}):
        changes = ", ".join(f"{name} = :{name}" for name in columns if name != "id")
        execute(f"update {table} set {changes} where id = :id", values)
        return
    names = ", ".join(columns)
    execute(f"insert into {table} ({names}) values ({', '.join(f':{name}' for name in columns)})", values)


def select(table: str, condition: str = "") -> str:
    """Return a query of all columns of a table."""
    return f"select {', '.join(COLUMNS[table])} from {table} {condition}"


def rows(execute: Execute, table: str, condition: str = "", **values: Any) -> list[dict[str, Any]]:
    """Return rows of a table as mappings."""
    found = execute(select(table, condition), values)
    return [dict(zip(COLUMNS[table], row, strict=True)) for row in found]
