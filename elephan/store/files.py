"""Files that appear under their name only when they are whole: written beside, then renamed; and those of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
    return tuple(folder / f"{stem}.{kind}.parquet" for kind in KINDS)


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


def _sync(folder: Path) -> None:
    """Make a rename in `folder` last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
