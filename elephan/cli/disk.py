"""`elephan disk`: drives and SSDs of the simulator, alone."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from elephan.cli.console import console, emit
from elephan.cli.trace import TraceColumns, TraceFormat
from elephan.errors import InputError
from elephan.units import NOTHING, count, digits, duration, pluralize, rate, share, size

app = typer.Typer(
    help="Disks whose times are those of measured ones: show, play traces, validate.", no_args_is_help=True
)

DiskOption = Annotated[
    str,
    typer.Option(
        "--disk",
        metavar="DISK",
        help="cheetah-9lp, nvme, or a .parv or .diskspecs file of DiskSim (FILE:DRIVE where it has several).",
    ),
]

TraceFile = Annotated[Path, typer.Argument(metavar="TRACE", help="A block trace.", show_default=False)]

AsJson = Annotated[bool, typer.Option("--json", help="Print one object, and nothing else.")]


@app.command("list")
def list_() -> None:
    """List the disks that are built in."""
    from elephan.disks import describe, names

    for name in names():
        emit(f"{name}  {_one_line(describe(name))}")


@app.command()
def show(
    disk: Annotated[str, typer.Argument(metavar="DISK", help="A name, or a DiskSim file.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Print what a disk is."""
    from elephan.disks import describe

    found = describe(disk)
    if as_json:
        emit(json.dumps(found, indent=2))
        return
    emit(f"{found['name']}  {_one_line(found)}")
    if found["kind"] != "drive":
        return
    seeks = " / ".join(duration(found[key] / 1e9) for key in ("seek_one_ns", "seek_third_ns", "seek_full_ns"))
    emit(f"seek to the next cylinder / over a third / over all: {seeks}")
    reads, writes = (
        rate(512 * 8e9 / ns) if ns else "takes no time" for ns in (found["read_block_ns"], found["write_block_ns"])
    )
    emit(f"bus: {reads}" if reads == writes else f"bus: {reads} for reads, {writes} for writes")
    back = "acknowledged from the buffer" if found["write_back"] else "acknowledged from the medium"
    room = size(found["segment_blocks"] * 512)
    emit(f"buffer: {pluralize(found['segments'], 'segment')} of {room}; writes {back}")
    emit(f"order of requests: {found['scheduler']}")
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("zone", "cylinders", "sectors per track", "slips", "remaps"):
        table.add_column(title, justify="right")
    for number, (first, last, sectors, slips, remaps) in enumerate(found["zones"]):
        table.add_row(str(number), f"{first} to {last}", str(sectors), str(slips), str(remaps))
    console().print(table)


def _one_line(found: dict[str, Any]) -> str:
    """Return the description of a disk, in a line."""
    room = size(found["blocks"] * 512)
    if found["kind"] == "drive":
        surfaces = pluralize(found["surfaces"], "surface")
        return f"drive, {room}, {found['rpm']:,} rpm, {found['cylinders']:,} cylinders, {surfaces}"
    times = f"reads a page in {duration(found['read_ns'] / 1e9)}, programs one in {duration(found['program_ns'] / 1e9)}"
    return f"SSD, {room}, {found['channels']} channels, {found['dies']} dies, {times}"


@app.command()
def replay(
    trace: TraceFile,
    disk: DiskOption = "cheetah-9lp",
    form: TraceFormat = "auto",
    columns: TraceColumns = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="fcfs, sstf, look, c-look, sptf. Default: the disk's.", show_default=False),
    ] = None,
    closed: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Keep N requests under way and leave the trace's times aside.", show_default=False
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Only requests to this device, as `elephan trace` names it: 0, or 8,16. Default: all.",
            show_default=False,
        ),
    ] = None,
    out_of_range: Annotated[
        Literal["refuse", "skip", "wrap"],
        typer.Option(help="Requests beyond the disk: an error, left out, or taken modulo its size."),
    ] = "refuse",
    time_scale: Annotated[str, typer.Option(metavar="FACTOR", help="On all times: 2 is half as fast.")] = "1",
    as_json: AsJson = False,
) -> None:
    """Play a trace to a disk, one for each of its devices, and print response and service times by kind."""
    from elephan.disks import replay as play

    factor = _factor(time_scale)
    found = play(
        trace,
        disk,
        form=form,
        columns=columns,
        scheduler=scheduler,
        closed=closed,
        device=None if device is None else _device(device),
        out_of_range=out_of_range,
        time_scale=factor,
    )
    if as_json:
        emit(json.dumps(found, indent=2))
        return
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    for title in ("requests", "response mean", "p50", "p95", "p99", "max", "service mean", "p50", "p99"):
        table.add_column(title, justify="right")
    for name in ("reads", "writes", "all"):
        kind = found[name]
        response = [_ms(kind[f"response_{key}_ns"]) for key in ("mean", "p50", "p95", "p99", "max")]
        service = [_ms(kind[f"service_{key}_ns"]) for key in ("mean", "p50", "p99")]
        table.add_row(name, count(kind["requests"]), *response, *service)
    console().print(table)
    seconds = found["span_ns"] / 1e9
    emit(
        f"{pluralize(found['disks'], 'disk')} {found['disk']}, order of requests {found['scheduler']}, "
        f"{duration(seconds)}"
    )
    busy = "" if found["busy"] is None else f"; busy {share(found['busy'])} of the time"
    depth = f"under way: {digits(found['mean_outstanding'])} on average, {found['most_outstanding']} at most on a disk"
    emit(f"{depth}{busy}")
    if seconds > 0:
        emit(f"{digits(found['all']['requests'] / seconds)} requests/s, {rate(found['bytes'] * 8 / seconds)}")
    if found["recorded_response_ns"] is not None:
        emit(f"response as recorded in the trace: {_ms(found['recorded_response_ns'])} on average")
    if found["out_of_range"]:
        what = "left out" if out_of_range == "skip" else "taken modulo its size"
        emit(f"{pluralize(found['out_of_range'], 'request')} beyond the disk, {what}")


@app.command()
def validate(
    trace: TraceFile,
    disk: DiskOption = "cheetah-9lp",
    as_json: AsJson = False,
) -> None:
    """Hold a drive against a DiskSim validation trace: requests with measured service times.

    Each request is issued when the one before was done and the recorded pause had passed. The demerit figure is the
    root mean square of the horizontal distance between the two distributions (Ruemmler and Wilkes 1994).
    """
    from elephan.disks import validate as hold

    found = hold(trace, disk)
    if as_json:
        emit(json.dumps(found, indent=2))
        return
    emit(f"{found['disk']}, {count(found['requests'])} requests")
    emit(f"mean service time: simulated {_ms(found['simulated_ns'])}, measured {_ms(found['measured_ns'])}")
    part = share(found["demerit_ns"] / found["measured_ns"])
    emit(f"demerit figure: {found['demerit_ns'] / 1e6:.4f} ms ({part} of the mean)")
    emit(f"the same as DiskSim's program rms computes it, in classes: {found['disksim_rms_ns'] / 1e6:.4f} ms")
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("share of requests", "simulated", "measured"):
        table.add_column(title, justify="right")
    for number, (simulated, measured) in enumerate(found["percentiles_ns"]):
        table.add_row(f"{5 * number} %", _ms(simulated), _ms(measured))
    console().print(table)


def _ms(ns: float | None) -> str:
    """Return a time as a table of disks has it."""
    return NOTHING if ns is None else duration(ns / 1e9)


def _device(text: str) -> int:
    """Return the number of a device. Raises `InputError`."""
    from elephan.blocktrace import device_number

    try:
        return device_number(text)
    except ValueError:
        raise InputError(
            f"--device {text}: expected a device's number from 0, or major,minor such as 8,16; elephan trace names them"
        ) from None


def _factor(text: str) -> Fraction:
    """Return a factor above zero. Raises `InputError`."""
    try:
        factor = Fraction(text)
    except (ValueError, ZeroDivisionError):
        factor = Fraction(0)
    if not 0 < factor <= 1_000_000:
        raise InputError(f"--time-scale {text}: expected a number above 0, at most 1000000, such as 4.5")
    return factor
