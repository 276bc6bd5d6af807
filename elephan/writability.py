"""Test that a run may write its results to a place, before it begins and without leaving a trace."""

from __future__ import annotations

import errno
import os
from pathlib import Path

DISK_FAULTS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})
"""A disk that is full or broken, a quota or a limit that is used up."""


def why_not_writable(folder: Path) -> str | None:
    """Return why no file can be written in `folder` (made when it is missing), None when one can."""
    error = problem(folder)
    return None if error is None else reason_of(error)


def problem(folder: Path) -> OSError | None:
    """Return the error of writing a file in `folder` (or, when it is missing, of making it), None when one can be.

    Nothing is made: what one command makes to try, and removes, another one may be about to use.
    """
    import tempfile

    try:
        os.stat(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        return error
    there = next((part for part in (folder, *folder.absolute().parents) if os.path.lexists(part)), folder)
    try:
        with tempfile.TemporaryFile(dir=there):
            return None
    except OSError as error:
        return error


def is_disk_fault(error: BaseException) -> bool:
    """Return True if a disk is full or broken: no other path would have been right."""
    return isinstance(error, OSError) and error.errno in DISK_FAULTS


def reason_of(error: OSError) -> str:
    """Return the system's words for a folder that cannot be made or used."""
    return "not a folder" if isinstance(error, NotADirectoryError) else error.strerror or str(error)
