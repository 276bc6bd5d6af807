"""Whether a run may leave its results at a place: asked before it begins, and without leaving a trace."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def why_not_writable(folder: Path) -> str | None:
    """Return why no file can be written in `folder` (made when it is missing), None when one can."""
    # os.path.exists answers where Path.exists raises: a name that is too long.
    made = [part for part in (folder, *folder.parents) if not os.path.exists(part)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return reason_of(error)
    finally:
        for part in made:
            with suppress(OSError):
                part.rmdir()


def reason_of(error: OSError) -> str:
    """Return the system's words for a folder that cannot be made or used."""
    # mkdir says "File exists" of what is a file.
    return "not a folder" if isinstance(error, (FileExistsError, NotADirectoryError)) else error.strerror or str(error)
