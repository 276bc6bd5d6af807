"""Find what may go from a store: runs by age, number or version, and files that belong to no run."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from elephan.errors import InputError, StoreError
from elephan.store.database import Filter, Store, Summary
from elephan.store.files import paths_of, stem_of

SETTLED_S = 600.0
"""Least age of a stray file, s: a run's series are written before its row is."""

_AGE = re.compile(r"^\s*(\d+)\s*([hdw])\s*$")
_HOURS = {"h": 1, "d": 24, "w": 24 * 7}


def moment(age: str, now: datetime | None = None) -> str:
    """Return the moment that an age such as "30d" or a date stands for, as records write it. Raises `InputError`."""
    given = _AGE.match(age)
    try:
        if given:
            found = (now or datetime.now(UTC)) - timedelta(hours=int(given[1]) * _HOURS[given[2]])
        else:
            found = datetime.fromisoformat(age.strip())
            found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InputError(
            f'--older-than {age}: a number of hours, days or weeks such as "12h", "30d" or "4w", or a date such as '
            "2026-01-31"
        ) from None
    return found.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Rule:
    """Selection of runs to remove: those that match every part that is set."""

    before: str | None = None
    """Runs of before this moment, as records write it."""
    keep: int | None = None
    """All but the newest so many of each point: equal scenario, backend, parameters and seed."""
    not_version: str | None = None
    """Runs of other versions than this one."""
    without_series: bool = False
    """Runs whose series were stored and are missing."""

    def __bool__(self) -> bool:
        return self != Rule()


def runs(store: Store, rule: Rule, which: Filter) -> list[Summary]:
    """Return the runs that may go, newest first. Raises `StoreError`, `InputError`."""
    found = store.summaries(which)
    if rule.keep is not None:
        found = _beyond(found, store.parameters(), rule.keep)
    if rule.before is not None:
        found = [one for one in found if one.created < rule.before]
    if rule.not_version is not None:
        found = [one for one in found if one.version != rule.not_version]
    if rule.without_series:
        _must_be_own(store)
        found = [one for one in found if any(not (store.series_folder / name).exists() for name in one.series)]
    return found


def _beyond(found: Sequence[Summary], parameters: dict[str, dict[str, str]], keep: int) -> list[Summary]:
    """Return what comes after the newest `keep` of each point."""
    seen: dict[tuple[object, ...], int] = defaultdict(int)
    result = []
    for one in found:
        point = {name: value for name, value in parameters.get(one.id, {}).items() if name != "run.seed"}
        key = (one.scenario, one.backend, one.seed, *sorted(point.items()))
        seen[key] += 1
        if seen[key] > keep:
            result.append(one)
    return result


def stray_files(store: Store, now_s: float | None = None) -> Iterator[Path]:
    """Yield files in the folder of series that belong to no run of the store. Raises `StoreError`, `InputError`."""
    _must_be_own(store)
    settled_s = (time.time() if now_s is None else now_s) - SETTLED_S
    folder = store.series_folder
    files = [path for path in sorted(folder.glob("*/*")) if path.suffix in (".parquet", ".tmp")]
    # After the files: runs stored meanwhile have a row by now.
    ids = {one.id for one in store.summaries(Filter())}
    expected = {path for run_id in ids for path in paths_of(folder, stem_of(run_id))}
    for path in files:
        try:
            if path not in expected and path.stat().st_mtime < settled_s:
                yield path
        except FileNotFoundError:
            continue


def remove(files: Sequence[Path]) -> None:
    """Remove files. Raises `StoreError`."""
    for path in files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot remove {path}: {error.strerror}") from error


def _must_be_own(store: Store) -> None:
    """The files of a server's store lie on each machine that runs: a file that is missing here may be there."""
    if store.place.file is None:
        raise InputError(
            f"--store {store.location}: the series of a server's store lie on the machines that made them, so that no "
            "file here can be told to be missing or nobody's"
        )
