"""Traces that a scenario names: found, and read through once by the core before anything runs."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from elephan.core import native
from elephan.run_spec.types import TraceFormatSpec, TraceSpec
from elephan.scenario.problem import Location, Problem


class TraceKeys(Protocol):
    """The keys of a scenario's table that names a trace."""

    @property
    def format(self) -> TraceFormatSpec: ...
    @property
    def columns(self) -> str | None: ...
    @property
    def time_scale(self) -> Fraction: ...
    @property
    def loop(self) -> bool: ...


def trace_spec(
    path: Path, keys: TraceKeys, where: Location, *, header_bytes: int = 0, reads: bool = False
) -> TraceSpec:
    """Return the trace at `path`, which exists, parses and has writes (or, with `reads`, requests), and its replay.

    `where` is the table. Raises `Problem`, with the trace's line where that is at fault.
    """
    if keys.columns is not None:
        if keys.format != "auto":
            raise Problem((*where, "columns"), f'absent beside format = "{keys.format}"')
        try:
            native.check_trace_columns(keys.columns)
        except ValueError as error:
            raise Problem((*where, "columns"), str(error)) from None
    path = path.resolve()
    loop = keys.loop
    try:
        status = path.stat()
    except OSError as error:
        raise Problem((*where, "trace"), f"a trace file that can be read; {path}: {error.strerror}") from None
    try:
        form, writes, duration_ns = _read(path, keys.format, keys.columns, status.st_mtime_ns, status.st_size)
    except (ValueError, OSError) as error:
        raise Problem((*where, "trace"), f"a trace that parses; {error}") from None
    if writes == 0 and not reads:
        raise Problem((*where, "trace"), "a trace with writes; this one only reads")
    if loop and duration_ns == 0:
        expected = "a trace that lasts some time, because loop is true; all requests of this one arrive at once"
        raise Problem((*where, "trace"), expected)
    spec: TraceSpec = {
        "path": str(path),
        "format": form,
        "time_scale_e6": max(1, round(keys.time_scale * 10**6)),
        "looped": loop,
        "header_bytes": header_bytes,
    }
    return spec if keys.columns is None else {**spec, "columns": keys.columns}


@lru_cache(maxsize=64)
def _read(
    path: Path, form: str, columns: str | None, _mtime_ns: int, _size: int
) -> tuple[TraceFormatSpec, int, int]:
    """Format, number of writes, duration in ns."""
    # A sweep of a thousand points reads its trace once; a changed file is read again.
    found = native.check_trace(str(path), form, columns)
    return found["format"], found["writes"], found["span_ns"]
