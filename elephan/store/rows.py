"""Runs as rows of the store's three tables: made of records, read, written and deleted, on any database."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elephan.record import Record, canonical_json
from elephan.store.sql import Execute

AT_ONCE = 500
"""Values in one statement: SQLite takes 999, the other databases more."""

COLUMNS = ("format", "created", "scenario", "backend", "version", "build", "seed")
"""Columns of a run that repeat values of its record."""

RUN = ("id", *COLUMNS, "record", "flow_series", "link_series", "sha256")
"""All columns of a run."""


def columns_of(record: Record) -> dict[str, object]:
    """Return the columns of a record's row."""
    return {
        "format": record.format,
        "created": record.created,
        "scenario": record.scenario.name[:255],
        "backend": record.backend,
        "version": record.version,
        "build": str(record.host.get("build", "")),
        "seed": str(record.seed),
    }


@dataclass(frozen=True)
class Rows:
    """The rows of one run."""

    run: dict[str, Any]
    metrics: list[dict[str, Any]]
    parameters: list[dict[str, Any]]

    @classmethod
    def of(cls, record: Record, series: Mapping[str, str]) -> Rows:
        """Return the rows of a record whose series have these file names by kind."""
        text = record.to_json()
        run = {
            "id": record.id,
            **columns_of(record),
            "record": text,
            "flow_series": series.get("flow"),
            "link_series": series.get("link"),
            "sha256": digest_of(text),
        }
        metrics = [{"run_id": record.id, "name": name, "value": value} for name, value in record.metrics.items()]
        parameters = [
            {"run_id": record.id, "name": name, "value": as_text(value)} for name, value in record.parameters.items()
        ]
        return cls(run, metrics, parameters)

    @property
    def id(self) -> str:
        """The run's id."""
        return str(self.run["id"])


def put(execute: Execute, runs: Iterable[Rows]) -> None:
    """Write runs in place of earlier ones with their ids."""
    # In one order everywhere: two commands that store the same runs do not wait for each other in a circle.
    by_id = {one.id: one for one in runs}
    several = [by_id[name] for name in sorted(by_id)]
    # Rows that are not there are not deleted: MariaDB would lock the gap where others insert theirs.
    delete(execute, [row[0] for row in present(execute, [one.id for one in several], "id")])
    for table, rows in (
        ("run", [one.run for one in several]),
        ("metric", [row for one in several for row in one.metrics]),
        ("parameter", [row for one in several for row in one.parameters]),
    ):
        if rows:
            execute(_insert(table, rows[0]), rows)


def read(execute: Execute, ids: Sequence[str]) -> list[Rows]:
    """Return the rows of runs, by their ids; those that are not there are left out."""
    found: dict[str, Rows] = {}
    for values, names in _chunks(ids):
        for row in execute(f"select {', '.join(RUN)} from run where id in ({names})", values):
            found[row[0]] = Rows(dict(zip(RUN, row, strict=True)), [], [])
        for table in ("metric", "parameter"):
            for run_id, name, value in execute(
                f"select run_id, name, value from {table} where run_id in ({names})", values
            ):
                rows = found[run_id].metrics if table == "metric" else found[run_id].parameters
                rows.append({"run_id": run_id, "name": name, "value": value})
    return list(found.values())


def present(
    execute: Execute, ids: Sequence[str], columns: str, suffix: str = "", also: Mapping[str, Any] | None = None
) -> list[tuple[Any, ...]]:
    """Return `columns` of those of these runs that have a row; `suffix` adds conditions with the values `also`."""
    found: list[tuple[Any, ...]] = []
    for values, names in _chunks(ids):
        found += execute(f"select {columns} from run where id in ({names}){suffix}", {**values, **(also or {})})
    return found


def parameters_of(execute: Execute, ids: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the parameters of runs: id, name, value as text."""
    found: list[tuple[Any, ...]] = []
    for values, names in _chunks(ids):
        found += execute(f"select run_id, name, value from parameter where run_id in ({names})", values)
    return found


def delete(execute: Execute, ids: Sequence[str]) -> None:
    """Delete the rows of runs, those first that point to others."""
    for values, names in _chunks(ids):
        for column, table in (("run_id", "metric"), ("run_id", "parameter"), ("id", "run")):
            execute(f"delete from {table} where {column} in ({names})", values)


def _chunks(ids: Sequence[str]) -> Iterable[tuple[dict[str, str], str]]:
    """Yield named values for a part of the ids, and their names as SQL lists them."""
    for first in range(0, len(ids), AT_ONCE):
        values = {f"id{number}": run_id for number, run_id in enumerate(ids[first : first + AT_ONCE])}
        yield values, ", ".join(f":{name}" for name in values)


def _insert(table: str, row: Mapping[str, Any]) -> str:
    return f"insert into {table} ({', '.join(row)}) values ({', '.join(f':{name}' for name in row)})"


def digest_of(text: str) -> str:
    """Return the SHA-256 of a record's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def as_text(value: Any) -> str:
    """Return a parameter's value as `--where` and the parameter table write it."""
    return value if isinstance(value, str) else canonical_json(value)
