"""Run a stored run again and compare to the byte."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from elephan.backends import Job
from elephan.backends.inputs import read_input
from elephan.cli.console import emit
from elephan.cli.listing import existing
from elephan.core import build_digest, version
from elephan.errors import InputError
from elephan.record import InputFile, Record, canonical_json
from elephan.sweep.executor import execute
from elephan.sweep.progress import Bars
from elephan.units import pluralize

MOST_DIFFERENCES = 12
"""Differences that are listed."""


def all_same(ids: Sequence[str], location: str | None) -> bool:
    """Run each again and print the comparison; return whether all were the same. Nothing is stored."""
    store = existing(location)
    same = True
    records = [store.get(prefix) for prefix in ids]
    for record in records:
        if record.backend != "sim":
            raise InputError(
                f"{record.id} ran on the backend {record.backend}, in real time: no two such runs are the same to the "
                "byte; elephan run --again runs its scenario anew"
            )
    for record in records:
        with tempfile.TemporaryDirectory(prefix="elephan-") as folder:
            job, original = job_of(record, Path(folder))
            (outcome,) = execute([job], store=None, watcher=Bars())
        then, now = comparable(record), comparable(renamed(outcome.record, original))
        added: list[str] = []
        if another_build(record):
            # Its notes are its own words on the numbers, which are compared.
            del then["notes"], now["notes"]
            now = without_new(then, now, added)
        differences = list(different(then, now))
        emit(outcome_of(record, differences, len(added)))
        same = same and not differences
    return same


def another_build(record: Record) -> bool:
    """Return True if another elephan than this one stored the record."""
    return record.version != version() or record.host.get("build") != build_digest()


def outcome_of(record: Record, differences: Sequence[str], added: int = 0) -> str:
    """Return the line for a record, or lines; `added` values were compared with nothing, since it lacks them."""
    size = len(canonical_json(comparable(record)).encode())
    rows = record.series.flow_rows + record.series.link_rows if record.series else 0
    versions = ""
    if another_build(record):
        then, now = f"{record.version} core {record.host.get('build')}", f"{version()} core {build_digest()}"
        since = f"; {pluralize(added, 'value')} recorded since" if added else ""
        versions = f" (stored by {then}, now {now}{since})"
    if not differences:
        return f"{record.id}: same to the byte, {size} bytes of record and {rows} rows of series{versions}"
    listed = "\n".join(f"  {line}" for line in differences[:MOST_DIFFERENCES])
    more = len(differences) - MOST_DIFFERENCES
    return f"{record.id}: different{versions}\n{listed}" + (f"\n  and {more} more" if more > 0 else "")


def job_of(record: Record, folder: Path) -> tuple[Job, dict[str, str]]:
    """Return the job that made `record`, and which temporary file stands for which original.

    A congestion control that is gone or has changed is written to `folder` from the record. Raises `InputError` when a
    trace is not the one of then.
    """
    spec = record.spec
    original: dict[str, str] = {}
    for item in record.inputs:
        if unchanged(item):
            continue
        if item.text is None:
            then = f"sha256 {item.sha256[:16]}"
            raise InputError(f"{item.path} is not the file of then ({then}): the run cannot be repeated")
        place = folder / f"{len(original)}-{Path(item.path).name}"
        place.write_text(item.text)
        original[str(place)] = item.path
        spec = replaced(spec, item.path, str(place))
    job = Job(
        index=0,
        spec=spec,
        parameters=record.parameters,
        seed=record.seed,
        scenario=record.scenario,
        backend=record.backend,
    )
    return job, original


def unchanged(item: InputFile) -> bool:
    """Return True if a file is there and has the contents it had."""
    try:
        return read_input(item.path, item.text is not None).sha256 == item.sha256
    except InputError:
        return False


def renamed(record: Record, original: dict[str, str]) -> Record:
    """Return the record with the files' own names."""
    spec = record.spec
    for place, path in original.items():
        spec = replaced(spec, place, path)
    inputs = [item.model_copy(update={"path": original.get(item.path, item.path)}) for item in record.inputs]
    flows = record.flows
    for place, path in original.items():
        flows = [replaced(flow, Path(place).name, Path(path).name) for flow in flows]
    return record.model_copy(update={"spec": spec, "inputs": inputs, "flows": flows})


def replaced(value: Any, old: str, new: str) -> Any:
    """Return `value` with every text equal to `old` replaced, at any depth."""
    if isinstance(value, dict):
        return {key: replaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, old, new) for item in value]
    return new if value == old else value


def comparable(record: Record) -> dict[str, Any]:
    """Return the compared part: all that is reproducible, without the version, which is printed beside it."""
    data = record.reproducible()
    for key in ("id", "version"):
        del data[key]
    return data


def without_new(old: Any, new: Any, added: list[str], place: str = "") -> Any:
    """Return `new` without the keys of tables that `old` lacks, and add their places to `added`.

    A later elephan records more of the same run, which is no difference between the runs.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        added += [f"{place}.{key}" for key in new.keys() - old.keys()]
        return {key: without_new(old[key], new[key], added, f"{place}.{key}") for key in new if key in old}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [without_new(one, other, added, f"{place}[]") for one, other in zip(old, new, strict=True)]
    return new


def different(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """Yield a line per value that differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from different(old.get(key), new.get(key), f"{place}.{key}" if place else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from different(one, other, f"{place}[{index}]")
    elif canonical_json(old) != canonical_json(new):
        yield f"{place}: was {canonical_json(old)[:60]}, now {canonical_json(new)[:60]}"
