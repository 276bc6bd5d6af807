"""Stored runs checked and removed, as text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from elephan.cli.console import counted, emit, failed, say
from elephan.cli.listing import SHORT_ID, existing
from elephan.errors import InputError, StoreError
from elephan.printable import printable
from elephan.store.check import Checked, check
from elephan.store.database import Filter, Store, Summary
from elephan.store.place import Place, default_location, waiting_locations
from elephan.store.prune import Rule, remove, runs, stray_files
from elephan.store.spool import Spool
from elephan.units import pluralize, size

LISTED = 20
"""Runs or files that are listed before a question; the rest is counted."""


def all_whole(ids: Sequence[str], location: str | None) -> bool:
    """Check runs, name those that are damaged, and return whether none is. Raises `InputError`, `StoreError`."""
    store = existing(location)
    chosen = [store.id_of(prefix) for prefix in ids] or [one.id for one in store.summaries()]
    summary = Checked()
    with counted("checking") as on_progress:
        for damaged in check(store, chosen, summary, on_progress):
            failed(str(damaged), 1)
    emit(f"{pluralize(summary.runs, 'run')} checked, {summary.damaged} damaged")
    if summary.without_digest:
        old = pluralize(summary.without_digest, "record")
        say(f"{old} of elephan 0.1.0 came without a digest; only the form was checked")
    if not ids and store.place.file is not None:
        strays = len(list(stray_files(store)))
        if strays:
            say(f"{pluralize(strays, 'file')} of series belong to no run: elephan results prune --stray-files")
    return summary.damaged == 0


def send(location: str | None) -> None:
    """Send what waits for a store's server, and name other servers that runs wait for. Raises `StoreError`."""
    place = Place.of(location or default_location())
    waiting = 0 if place.spool is None else Spool(place.spool).count()
    if not waiting:
        say(f"no run waits for the store {place.location}")
    else:
        try:
            # Opening it sends them, and says so.
            Store(location or default_location()).close()
        except StoreError as error:
            verb = "waits" if waiting == 1 else "wait"
            raise StoreError(f"{pluralize(waiting, 'run')} {verb} in {place.spool}: {error}") from error
    for url, path in waiting_locations().items():
        others = 0 if path == place.spool else Spool(path).count()
        if others:
            verb = "waits" if others == 1 else "wait"
            say(f"{pluralize(others, 'run')} {verb} for another store: elephan results send --store {url}")


def delete(ids: Sequence[str], location: str | None, yes: bool) -> None:
    """Remove the named runs. Raises `InputError`, `StoreError`."""
    store = existing(location)
    wanted = dict.fromkeys(store.id_of(prefix) for prefix in ids)
    chosen = [one for one in store.summaries() if one.id in wanted]
    if _agreed(chosen, [], yes):
        _remove(store, chosen, [])


def prune(location: str | None, rule: Rule, which: Filter, with_files: bool, dry_run: bool, yes: bool) -> None:
    """Remove runs that a rule and a filter name, and files of no run. Raises `InputError`, `StoreError`."""
    if not rule and not with_files:
        raise InputError(
            "name what is to be removed: --older-than, --keep, --other-versions, --without-series or --stray-files; "
            "`elephan results delete` removes runs by their ids"
        )
    if not rule and which != Filter():
        raise InputError(
            "--scenario and --where choose among runs: give --older-than, --keep or another one beside them"
        )
    store = existing(location)
    chosen = runs(store, rule, which) if rule else []
    files = list(stray_files(store)) if with_files else []
    if not chosen and not files:
        say("nothing to remove")
    elif dry_run:
        _list(chosen, files, emit)
    elif _agreed(chosen, files, yes):
        _remove(store, chosen, files)


def _list(chosen: Sequence[Summary], files: Sequence[Path], on_progress: object = say, most: int | None = None) -> None:
    assert callable(on_progress)
    for one in chosen[:most]:
        date = one.created.replace("T", " ").rstrip("Z")
        line = f"{one.id[:SHORT_ID]}  {date}  {one.scenario}, {one.backend}, seed {one.seed}, elephan {one.version}"
        on_progress(printable(line))
    for path in files[:most]:
        on_progress(str(path))
    for number, noun in ((len(chosen), "run"), (len(files), "file")):
        if most is not None and number > most:
            on_progress(f"and {pluralize(number - most, 'more ' + noun)}")


def _agreed(chosen: Sequence[Summary], files: Sequence[Path], yes: bool) -> bool:
    """Return whether the terminal's user agrees to the removal. Raises `InputError` without one."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InputError("the question whether to remove them cannot be answered: stdin is no terminal; give --yes")
    _list(chosen, files, most=LISTED)
    return typer.confirm(f"Remove {_counted(chosen, files)}?", err=True)


def _counted(chosen: Sequence[Summary], files: Sequence[Path]) -> str:
    parts = [f"{pluralize(len(chosen), 'run')} and {'its' if len(chosen) == 1 else 'their'} series"] if chosen else []
    if files:
        total = size(sum(path.stat().st_size for path in files if path.exists()))
        parts.append(f"{pluralize(len(files), 'file')} ({total}) of no run")
    return " and ".join(parts)


def _remove(store: Store, chosen: Sequence[Summary], files: Sequence[Path]) -> None:
    what = _counted(chosen, files)
    store.delete([one.id for one in chosen])
    remove(files)
    say(f"removed {what}")
