"""Files that appear under their name only when they are whole: written beside, then renamed; and those of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from elephan.errors import StoreError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

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

OPEN_AT_ONCE = 128
"""Files that are written, then synced: a process may have 1,024 open by default (RLIMIT_NOFILE)."""


class Syncs:
    """Threads that wait for the disk; they are there from the first time that there are several files until `close`."""

    def __init__(self) -> None:
        """Start none yet."""
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Syncs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads; further files start others."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    @contextmanager
    def opened(self) -> Iterator[list[int]]:
        """Give a list for descriptors, which are synced together where nothing fails, and closed."""
        opened: list[int] = []
        try:
            yield opened
            self._sync(opened)
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _sync(self, descriptors: Sequence[int]) -> None:
        if len(descriptors) < 2:
            return _sync_each(descriptors)
        from concurrent.futures import ThreadPoolExecutor, wait

        self._pool = self._pool or ThreadPoolExecutor(SYNCS_AT_ONCE, "elephan-sync")
        # A task per thread, since a task takes as much CPU time as the sync of a small file.
        shares = [descriptors[first::SYNCS_AT_ONCE] for first in range(min(SYNCS_AT_ONCE, len(descriptors)))]
        tasks = [self._pool.submit(_sync_each, share) for share in shares]
        # All of them, before a descriptor is closed.
        wait(tasks)
        for task in tasks:
            task.result()


def replace_together(contents: Sequence[tuple[Path, bytes]], syncs: Syncs) -> None:
    """Have files take the places of others, each whole and all on the disk when this returns.

    The disk is waited for once for many of them (docs/results/sweeps.md). Raises `StoreError`; none that was
    not there before is then left, unless it had its name already.
    """
    temporaries = [f"{path}.{os.getpid()}.tmp" for path, _ in contents]
    folders = list(dict.fromkeys(path.parent for path, _ in contents))
    at = Path()
    try:
        for at in folders:
            at.mkdir(parents=True, exist_ok=True)
        for first in range(0, len(contents), OPEN_AT_ONCE):
            several = slice(first, first + OPEN_AT_ONCE)
            with syncs.opened() as files:
                for (path, content), temporary in zip(contents[several], temporaries[several], strict=True):
                    at = path
                    files.append(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666))
                    _write(files[-1], content)
        for (at, _), temporary in zip(contents, temporaries, strict=True):
            os.replace(temporary, at)
        for first in range(0, len(folders), OPEN_AT_ONCE):
            with syncs.opened() as renamed:
                for at in folders[first : first + OPEN_AT_ONCE]:
                    renamed.append(os.open(at, os.O_RDONLY))
    except BaseException as error:
        for temporary in temporaries:
            with suppress(OSError):
                os.unlink(temporary)
        if isinstance(error, OSError):
            raise StoreError(f"cannot write {at}: {error.strerror or error}") from error
        raise


def _sync_each(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.fsync(descriptor)


def _write(descriptor: int, content: bytes) -> None:
    """Write all: one call of the kernel's takes 2 GiB at most (write(2))."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _sync(path: Path) -> None:
    """Make a file's content, or a rename in a folder, last through a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
