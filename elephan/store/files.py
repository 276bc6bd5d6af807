"""Files that appear under their name only when they are whole: written beside, then renamed; and those of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from elephan.errors import StoreError

KINDS = ("flow", "link")
"""The two tables of a run's series."""


def stem_of(run_id: str) -> str:
    """Return the name of a run's series files below the folder of series, without their endings."""
    return f"{run_id[:2]}/{run_id}"


def paths_of(folder: Path, stem: str) -> tuple[Path, ...]:
    """Return where the tables of a run are, one for each of `KINDS`."""
    return tuple(folder / name for name in names_of(stem))


def names_of(stem: str) -> tuple[str, ...]:
    """Return the names of a run's tables below the folder of series, one for each of `KINDS`."""
    return tuple(f"{stem}.{kind}.parquet" for kind in KINDS)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. Raises `StoreError`."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path, durable: bool = False) -> Iterator[BinaryIO]:
    """Give a file that takes the place of `path` when nothing failed; `durable` waits until it is on the disk.

    Raises `StoreError` (no permission, disk full).
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if durable:
            _sync(path.parent)
    except BaseException as error:
        # There is nothing where the folder itself could not be made.
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
        raise


SYNCS_AT_ONCE = 8
"""Threads that wait for the disk: a file system writes its journal once for those that wait together."""


def replace_together(contents: Sequence[tuple[Path, bytes]]) -> None:
    """Have files take the places of others, each whole and all on the disk when this returns.

    The disk is waited for once for many of them (docs/results/sweeps.md). Raises `StoreError`; none that was
    not there before is then left, unless it had its name already.
    """
    temporaries = [path.with_name(f"{path.name}.{os.getpid()}.tmp") for path, _ in contents]
    folders = dict.fromkeys(path.parent for path, _ in contents)
    at = Path()
    try:
        for at in folders:
            at.mkdir(parents=True, exist_ok=True)
        for (path, content), temporary in zip(contents, temporaries, strict=True):
            at = path
            temporary.write_bytes(content)
        _sync_all(temporaries)
        for (path, _), temporary in zip(contents, temporaries, strict=True):
            at = path
            os.replace(temporary, path)
        _sync_all(folders)
    except BaseException as error:
        for temporary in temporaries:
            with suppress(OSError):
                temporary.unlink()
        if isinstance(error, OSError):
            raise StoreError(f"cannot write {at}: {error.strerror or error}") from error
        raise


def _sync_all(paths: Iterable[Path]) -> None:
    several = list(paths)
    if len(several) < 2:
        return _sync_each(several)
    from concurrent.futures import ThreadPoolExecutor

    # A task per thread, since a task takes as much CPU time as the sync of a small file.
    shares = [several[first::SYNCS_AT_ONCE] for first in range(min(SYNCS_AT_ONCE, len(several)))]
    with ThreadPoolExecutor(len(shares), "elephan-sync") as pool:
        for _ in pool.map(_sync_each, shares):
            pass


def _sync_each(paths: Sequence[Path]) -> None:
    for path in paths:
        _sync(path)


def _sync(path: Path) -> None:
    """Make a file's content, or a rename in a folder, last through a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
