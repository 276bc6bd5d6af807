"""Traces that a scenario names: found, and read through once by the core before anything runs."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from elephan.core import native
from elephan.scenario.problem import Location, Problem


def check_trace(path: Path, form: str, where: Location) -> Path:
    """The absolute path of a trace that exists and parses. Raises `Problem` with file and line where it does not."""
    path = path.resolve()
    try:
        status = path.stat()
    except OSError as error:
        raise Problem(where, f"a trace file that can be read; {path}: {error.strerror}") from None
    if not path.is_file():
        raise Problem(where, f"a trace file; {path} is none")
    try:
        _parse(path, form, status.st_mtime_ns, status.st_size)
    except (ValueError, OSError) as error:
        raise Problem(where, f"a trace that parses; {error}") from None
    return path


@lru_cache(maxsize=64)
def _parse(path: Path, form: str, _mtime_ns: int, _size: int) -> None:
    # A sweep of a thousand points reads its trace once; a changed file is read again.
    native().check_trace(str(path), form)
