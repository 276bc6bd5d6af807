"""Traces that a scenario names: found, and read through once by the core before anything runs."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from elephan.core import native
from elephan.run_spec.types import TraceFormatSpec
from elephan.scenario.problem import Location, Problem


def check_trace(
    path: Path, form: str, loop: bool, where: Location, *, reads: bool = False
) -> tuple[Path, TraceFormatSpec]:
    """The absolute path of a trace that exists, parses and has writes (or, with `reads`, requests), and its format.

    Raises `Problem`, with the trace's line where that is at fault.
    """
    path = path.resolve()
    try:
        status = path.stat()
    except OSError as error:
        raise Problem(where, f"a trace file that can be read; {path}: {error.strerror}") from None
    try:
        found, writes, duration_ns = _read(path, form, status.st_mtime_ns, status.st_size)
    except (ValueError, OSError) as error:
        raise Problem(where, f"a trace that parses; {error}") from None
    if writes == 0 and not reads:
        raise Problem(where, "a trace with writes; this one only reads")
    if loop and duration_ns == 0:
        raise Problem(where, "a trace that lasts some time, because loop is true; here all requests come at once")
    return path, found


@lru_cache(maxsize=64)
def _read(path: Path, form: str, _mtime_ns: int, _size: int) -> tuple[TraceFormatSpec, int, int]:
    """Format, number of writes, duration in ns."""
    # A sweep of a thousand points reads its trace once; a changed file is read again.
    found = native.check_trace(str(path), form)
    return found["format"], found["writes"], found["span_ns"]
