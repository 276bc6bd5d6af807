"""Files that copies leave with the user who typed them: receipts, and what is known of copies that are not done.

`$XDG_STATE_HOME/elephan/receipts/NAME-TIME.json`, and `$XDG_STATE_HOME/elephan/unfinished/NAME.json`.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from elephan import user_files
from elephan.errors import InputError, RunError


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


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON as a whole: a reader never sees half of it. Raises `RunError`."""
    made = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(handle)
        os.replace(made, path)
    except OSError as error:
        if made is not None:
            with suppress(OSError):
                os.unlink(made)
        raise RunError(f"{path}: cannot be written: {error.strerror}") from error


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
