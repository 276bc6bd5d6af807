"""Stored runs as text and as files."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from elephan.api import Results, flat_rows, uniform
from elephan.cli.console import failed, say
from elephan.errors import InputError, StoreError
from elephan.record import Record
from elephan.report.metrics import LINKS, metric, present
from elephan.report.points import cc_of, shown
from elephan.scenario.toml import parse_value
from elephan.store.database import Damaged, Filter, Store, open_store
from elephan.store.files import KINDS
from elephan.store.place import Place
from elephan.store.rows import as_text
from elephan.units import pluralize

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

SHORT_ID = 10
"""Digits of an id in lists: two runs of a million share them with probability 40 %, and `get` then asks for more."""

OVERVIEW = ("goodput_bps", "lag_p99_s", "latency_p99_s", "retransmitted_segments", "dropped_packets")


def chosen(
    store: str | None,
    ids: Sequence[str] | None = None,
    scenario: str | None = None,
    where: Sequence[str] | None = None,
    newest: int | None = None,
) -> Results:
    """Return the named runs in that order, or all that the filter passes. Raises `InputError` when there is none."""
    opened = existing(store)
    if ids:
        return Results.of_records([opened.look(prefix) for prefix in ids], opened)
    which = filter_of(scenario, where, newest)
    found = opened.read(which)
    if not found and (scenario or which.parameters):
        raise InputError(f"no run in {opened.location} fits; `elephan results list` shows those there are")
    return Results.of_records(found, opened)


def existing(location: str | None) -> Store:
    """Open a store to read; one that is named and is not there is a slip of the pen. Raises `InputError`."""
    if location is not None and not Place.of(location).exists:
        raise InputError(f"--store {location}: there is no such store; `elephan run --store {location}` would make it")
    return open_store(location)


def filter_of(scenario: str | None, where: Sequence[str] | None, newest: int | None = None) -> Filter:
    """Return the filter that options ask for. Raises `InputError`."""
    parameters = {}
    for text in where or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--where {text}: expected KEY=VALUE, such as path.loss=0.001")
        # As `--set` reads it and as the store writes it, so that 1e-5 finds a stored 1e-05.
        parameters[key.strip()] = as_text(parse_value(value.strip()))
    return Filter(scenario=scenario, parameters=parameters, newest=newest)


def name_damaged(damaged: Sequence[Damaged]) -> None:
    """Name runs that could not be read, after what could, and end with exit code 1 when there are any."""
    for one in damaged:
        failed(str(one), 1)
    if damaged:
        ids = " ".join(one.id[:SHORT_ID] for one in damaged)
        say(f"{pluralize(len(damaged), 'run')} could not be read; to remove them: elephan results delete {ids}")
        raise typer.Exit(1)


def overview(records: Sequence[Record]) -> Table:
    """Return a line per run."""
    from rich.table import Table

    columns = present([record.metrics for record in records], OVERVIEW)
    table = Table(box=None, header_style="bold", pad_edge=False)
    # Only if points differ in it.
    several = any(record.backend != "sim" for record in records)
    settings = differing(records)
    changed = ["differs in"] if any(settings) else []
    for head in ("id", "date", "scenario", *(["backend"] if several else []), "congestion control", "seed", *changed):
        table.add_column(head, overflow="fold")
    for column in columns:
        table.add_column(column.title, justify="right")
    for record, own in zip(records, settings, strict=True):
        table.add_row(
            record.id[:SHORT_ID],
            record.created.replace("T", " ").rstrip("Z"),
            record.scenario.name,
            *([record.backend] if several else []),
            cc_of(record),
            str(record.seed),
            *([own] if changed else []),
            *(column.show(record.metrics.get(column.name)) for column in columns),
        )
    return table


def differing(records: Sequence[Record]) -> list[str]:
    """Return, for each record, its parameters that differ among the records of its scenario, with their values."""
    alike: dict[str, dict[str, Any]] = {}
    """Of each scenario, the parameters that all of its records have with one value."""
    for record in records:
        shared = alike.setdefault(record.scenario.name, record.parameters)
        alike[record.scenario.name] = {
            key: value for key, value in shared.items() if key in record.parameters and record.parameters[key] == value
        }
    return [
        ", ".join(
            f"{key}={shown(value)}"
            for key, value in record.parameters.items()
            # The congestion control has a column of its own.
            if not key.endswith("congestion_control") and key not in alike[record.scenario.name]
        )
        for record in records
    ]


def details(record: Record) -> list[RenderableType]:
    """Return everything about one run, as tables."""
    from rich.text import Text

    head = Text.assemble((f"run {record.id}", "bold"), f"  {record.scenario.name}, {cc_of(record)}")
    facts = _pairs(
        [
            ("scenario file", record.scenario.file or ""),
            ("set", ", ".join(record.scenario.overrides)),
            ("date", record.created),
            ("backend", record.backend),
            ("seed", str(record.seed)),
            ("version", record.version),
            *((name, words_of(value)) for name, value in record.host.items()),
            *(("input", f"{item.path} ({item.bytes} B, sha256 {item.sha256[:16]})") for item in record.inputs),
        ]
    )
    parts: list[RenderableType] = [
        head,
        facts,
        Text("parameters", style="bold"),
        _pairs([(name, shown(value)) for name, value in record.parameters.items()]),
        Text("metrics", style="bold"),
        _pairs([(name, metric(name).show(value), metric(name).text) for name, value in record.metrics.items()]),
    ]
    if len(record.flows) > 1:
        parts += [Text("flows", style="bold"), _columns(record.flows, ("name", "congestion_control"), OVERVIEW)]
    if record.links:
        parts += [Text("links", style="bold"), _columns(record.links, ("name",), tuple(LINKS))]
    parts += [Text(f"note: {note}", style="yellow") for note in record.notes]
    return [*parts, Text("")]


def words_of(value: Any) -> str:
    """Return a fact about a host as words: tables and lists by their parts."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {words_of(part)}" for name, part in value.items())
    if isinstance(value, list):
        return "; ".join(words_of(part) for part in value)
    return str(value)


def _pairs(rows: Sequence[tuple[str, ...]]) -> Table:
    """Return name, value and, where given, what it is; rows without a value are left out."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold", justify="right" if any(len(row) > 2 for row in rows) else "left")
    table.add_column(overflow="fold", style="dim")
    for name, value, *text in rows:
        if value:
            table.add_row(name, Text(value), Text(*text))
    return table


def _columns(rows: Sequence[dict[str, Any]], heads: Sequence[str], names: Sequence[str]) -> Table:
    from rich.table import Table
    from rich.text import Text

    given = [name for name in names if any(row.get(name) is not None for row in rows)]
    items = [LINKS[name] if name in LINKS and heads == ("name",) else metric(name) for name in given]
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 2))
    for head in heads:
        table.add_column(head)
    for item in items:
        table.add_column(item.title, justify="right")
    for row in rows:
        table.add_row(
            *(Text(str(row.get(head, ""))) for head in heads), *(item.show(row.get(item.name)) for item in items)
        )
    return table


def exported(results: Results, form: str) -> bytes:
    """Return runs as "csv", "json" or "parquet"."""
    if form == "json":
        from elephan.cli.run import as_json

        return as_json(results).encode() + b"\n"
    if form == "parquet":
        import pyarrow.parquet

        buffer = io.BytesIO()
        pyarrow.parquet.write_table(results.to_arrow(), buffer, compression="zstd")
        return buffer.getvalue()
    rows = uniform(flat_rows(results.records))
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["id"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def export_series(results: Results, folder: Path) -> tuple[int, list[Damaged]]:
    """Write the series of each run into `folder` as ID.flow.parquet and ID.link.parquet.

    Return of how many runs, and whose cannot be read. Raises `StoreError` when they cannot be written.
    """
    from elephan.store.series import write_parquet

    count, damaged = 0, []
    for record in results.records:
        try:
            series = results.series_of(record)
        except StoreError as error:
            damaged.append(Damaged(record.id, str(error)))
            continue
        if series:
            for kind in KINDS:
                write_parquet(getattr(series, kind), folder / f"{record.id}.{kind}.parquet")
            count += 1
    return count, damaged
