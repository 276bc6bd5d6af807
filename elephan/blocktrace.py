"""Summary of a block trace in any format that the core reads."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from elephan.core import native
from elephan.errors import InputError
from elephan.run_spec.types import TraceFormatSpec

AUTO = "auto"
"""The beginning of the file tells the format."""


MINOR_BITS = 20
"""Bits of a minor device number in Linux (MINORBITS)."""
MINOR_MAX = (1 << MINOR_BITS) - 1
DEVICE_MAX = 2**32 - 1
"""Largest number of a device, of any format."""


class BlockTrace(TypedDict):
    """The counts of one pass over a trace, as the core hands them back."""

    format: TraceFormatSpec
    """As asked for, or as the content tells."""
    requests: int
    reads: int
    writes: int
    read_bytes: int
    written_bytes: int
    smallest_bytes: int
    largest_bytes: int
    first_ns: int
    """First arrival, ns since the trace's own origin."""
    span_ns: int
    """From the first arrival to the last."""
    sequential: int
    """Requests that begin where the one before on the same device ended."""
    end_lba: int
    """One past the last sector of 512 bytes that is touched."""
    responses: int
    """Requests whose response time the trace holds."""
    response_ns: int
    """Sum of these response times."""
    devices: dict[int, int]
    """Requests by device."""


def device_text(device: int, form: str) -> str:
    """Return a device's number as the trace's format writes it: "8,16" for blkparse and FIU, else one number."""
    return f"{device >> MINOR_BITS},{device & MINOR_MAX}" if form in ("blkparse", "fiu") else str(device)


def device_number(text: str) -> int:
    """Return the number of a device, of "8,16" (major,minor) or of one number. Raises `ValueError`."""
    major, comma, minor = text.strip().partition(",")
    if not (major.isdecimal() and major.isascii() and (not comma or (minor.isdecimal() and minor.isascii()))):
        raise ValueError(text)
    number = int(major) << MINOR_BITS | int(minor) if comma else int(major)
    if number > DEVICE_MAX or (comma and int(minor) > MINOR_MAX):
        raise ValueError(text)
    return number


def read(path: Path, form: str = AUTO, columns: str | None = None) -> BlockTrace:
    """Read a trace once, in constant memory; `columns` names the fields of format "columns".

    Raises `InputError` with file, line or byte, and what would be right.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; a trace is a file")
    try:
        return native.check_trace(str(path), form, columns)
    except ValueError as error:
        raise InputError(str(error)) from None


def formats() -> list[str]:
    """Names of all formats."""
    return native.trace_formats()
