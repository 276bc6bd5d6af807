"""Disks of the core: their descriptions, traces played to them, drives compared with measurements of them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from elephan.blocktrace import AUTO
from elephan.core import native
from elephan.errors import InputError

OutOfRange = Literal["refuse", "skip", "wrap"]
"""Treatment of a request that goes beyond the disk."""


def names() -> list[str]:
    """Return the disks that are built in."""
    return list(native.disk_names())


def schedulers() -> list[str]:
    """Return the orders of requests."""
    return list(native.disk_schedulers())


def describe(disk: str) -> dict[str, Any]:
    """Return the description of a disk: one of `names()`, or a .parv or .diskspecs file of DiskSim (FILE:DRIVE of
    several).

    Times in ns, sizes in blocks of 512 bytes. Raises `InputError` with file, line and what would be right.
    """
    try:
        return dict(native.disk_describe(disk))
    except ValueError as error:
        raise InputError(str(error)) from None


def replay(
    trace: Path,
    disk: str,
    *,
    form: str = AUTO,
    columns: str | None = None,
    scheduler: str | None = None,
    closed: int | None = None,
    device: int | None = None,
    out_of_range: OutOfRange = "refuse",
    time_scale: Fraction = Fraction(1),
) -> dict[str, Any]:
    """Play a trace to a disk, one for each device of the trace, and return response and service times in ns by kind.

    `closed` keeps that many requests under way and leaves the trace's times aside. Raises `InputError`.
    """
    _file(trace)
    time_scale_e6 = max(1, round(time_scale * 10**6))
    try:
        return dict(
            native.disk_replay(
                str(trace), form, columns, disk, scheduler, closed, device, out_of_range, time_scale_e6
            )
        )
    except ValueError as error:
        raise InputError(str(error)) from None


def validate(trace: Path, disk: str) -> dict[str, Any]:
    """Issue a validation trace as it was measured; return mean service times and demerit figures, ns.

    Raises `InputError`.
    """
    _file(trace)
    try:
        return dict(native.disk_validate(str(trace), disk))
    except ValueError as error:
        raise InputError(str(error)) from None


def _file(trace: Path) -> None:
    if trace.is_dir():
        raise InputError(f"{trace}: is a folder; a trace is a file")
