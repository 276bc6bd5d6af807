"""`elephan trace`: summary of a block trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elephan.cli.console import console, emit
from elephan.units import count, digits, duration, rate, share, size

if TYPE_CHECKING:
    from elephan.blocktrace import BlockTrace

DEVICES_SHOWN = 8
"""Devices that are listed one by one; of more, the busiest."""

TraceFormat = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="alibaba, blkparse, disksim, disksim-validate, fio, fiu, hp-srt, mqsim, msr, spc, systor or tencent. "
        "Default: by the file's content.",
        show_default=False,
    ),
]
TraceColumns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="LIST",
        help="Instead of a format: the fields of a line, such as time:us,device,op,offset:B,size:B; - skips one "
        "(docs/reference/traces.md).",
        show_default=False,
    ),
]


def register(root: typer.Typer) -> None:
    """Add `trace`."""
    root.command()(trace)


def trace(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A block trace.", show_default=False)],
    form: TraceFormat = "auto",
    columns: TraceColumns = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object, and nothing else.")] = False,
) -> None:
    """Print what is in a block trace: format, requests, reads and writes, data, duration, sequentiality."""
    from elephan.blocktrace import device_text, read

    found = read(file, form, columns)
    if as_json:
        devices = {device_text(device, found["format"]): number for device, number in found["devices"].items()}
        emit(json.dumps({"path": str(file), **found, "devices": devices}, indent=2))
        return
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in _rows(found):
        table.add_row(name, value)
    console().print(table)


def _rows(found: BlockTrace) -> list[tuple[str, str]]:
    """Return names and values, as people read them."""
    seconds = found["span_ns"] / 1e9
    data_bytes = found["read_bytes"] + found["written_bytes"]
    requests = found["requests"]
    rows = [
        ("format", found["format"]),
        ("requests", count(requests)),
        ("reads", _part(found["reads"], requests, found["read_bytes"])),
        ("writes", _part(found["writes"], requests, found["written_bytes"])),
        ("data", size(data_bytes)),
        ("duration", duration(seconds)),
    ]
    if seconds > 0:
        rows.append(("mean load", f"{digits(requests / seconds)} requests/s, {rate(data_bytes * 8 / seconds)}"))
    mean = size(data_bytes / requests)
    rows += [
        ("request size", f"mean {mean}, {size(found['smallest_bytes'])} to {size(found['largest_bytes'])}"),
        ("sequential", f"{count(found['sequential'])} ({share(found['sequential'] / requests)})"),
        ("reaches to", f"sector {count(found['end_lba'])} ({size(found['end_lba'] * 512)})"),
    ]
    if found["responses"]:
        mean_s = found["response_ns"] / found["responses"] / 1e9
        rows.append(("response", f"mean {duration(mean_s)}, as recorded with {count(found['responses'])} requests"))
    from elephan.blocktrace import device_text

    busiest = sorted(found["devices"].items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(
        f"{device_text(device, found['format'])}: {count(number)}" for device, number in busiest[:DEVICES_SHOWN]
    )
    more = len(busiest) - DEVICES_SHOWN
    rows.append(("devices", f"{len(busiest)}; requests by device: {shown}" + (f", {more} more" if more > 0 else "")))
    return rows


def _part(number: int, of: int, data: int) -> str:
    """Return a number of requests, its share and its data."""
    return f"{count(number)} ({share(number / of)}), {size(data)}"
