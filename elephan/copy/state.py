"""Files that copies leave with the user who typed them: receipts, and what is known of copies that are not done.

`$XDG_STATE_HOME/elephan/receipts/NAME-TIME.json`, and `$XDG_STATE_HOME/elephan/unfinished/NAME.json`.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from elephan import user_files
from elephan.errors import InputError, RunError

PART_BEGIN, PART_END = ".", ".part"
"""Of the names of incomplete files."""


def folder(name: str) -> Path:
    """Return a folder of the user's state."""
    from platformdirs import user_state_path

    return user_state_path("elephan") / name


def receipts() -> Path:
    """Return the folder of receipts."""
    return folder("receipts")


def unfinished() -> Path:
    """Return the folder of copies that are not done."""
    return folder("unfinished")


def write_new(path: Path, content: Mapping[str, Any]) -> Path:
    """Write JSON to `path`, or beside it as NAME-2.json, NAME-3.json ... where a file is there already; return which.

    Raises `RunError`.
    """
    for number in itertools.count(1):
        own = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        if write(own, content, is_new=True):
            return own
    raise AssertionError("the numbers do not end")


def write(path: Path, content: Mapping[str, Any], *, is_new: bool = False) -> bool:
    """Write JSON as a whole: a reader never sees half of it. With `is_new` a file that is there already stays, and this
    returns False. Raises `RunError`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{PART_BEGIN}{path.name}{PART_END}")
        with _locked(part) as file:
            # Another process with the same name would wait for the lock of its part.
            if is_new and os.path.lexists(path):
                os.unlink(part)
                return False
            json.dump(content, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
            os.replace(part, path)
            return True
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror}") from error


@contextmanager
def _locked(part: Path) -> Iterator[IO[str]]:
    """Open a part, empty, that no other process writes; one that a killed process has left is taken over."""
    while True:
        file = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "w", encoding="utf-8")
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # The process that had the lock may have renamed it.
            with suppress(FileNotFoundError):
                if _is_file(part, file.fileno()):
                    file.truncate(0)
                    try:
                        yield file
                    except BaseException:
                        with suppress(OSError):
                            os.unlink(part)
                        raise
                    return


def _is_file(path: Path, handle: int) -> bool:
    return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(handle))


def remove_stale_parts(place: Path) -> None:
    """Remove parts that killed processes have left in a folder of this module."""
    for part in place.glob(f"{PART_BEGIN}*{PART_END}"):
        with suppress(OSError):
            handle = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_file(part, handle):
                    part.unlink()
            finally:
                os.close(handle)


def read(path: Path) -> dict[str, Any]:
    """Return the object of a JSON file. Raises `InputError`."""
    try:
        found = json.loads(user_files.read_text(path, user_files.STATE))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path}: is no JSON object")
    return found


def all_of(place: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Give the JSON files of a folder with their objects, by name; those that are none are passed over."""
    for path in sorted(place.glob("*.json")):
        with suppress(InputError):
            yield path, read(path)
