"""`elephan iscsi`: the protocol core on real sockets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from elephan.cli.console import console, emit, say
from elephan.errors import InputError, RunError

if TYPE_CHECKING:
    from elephan._native import _Settings
    from elephan.iscsi import Sweep

app = typer.Typer(help="iSCSI on real sockets: serve a file, put a load on a target.", no_args_is_help=True)

SETTINGS = ("initial_r2t", "immediate_data")
SIZES = ("max_recv", "max_burst", "first_burst")
COUNTS = ("max_outstanding_r2t", "max_connections")
MAX_BURST = 1 << 20
"""Default of max_burst, bytes."""
DEPTHS = "1,2,4,8,16,32,64,128"
CONNECTIONS = "1,2,4"
"""Default loads of a sweep; 128 is the command window of most targets."""
LATENCIES = ("p50", "p99")
DIGESTS = ("header_digest", "data_digest")

Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="What this side wants: initial_r2t, immediate_data (yes, no); max_recv, max_burst, first_burst (sizes); "
        "max_outstanding_r2t, max_connections; header_digest, data_digest (off, allowed, preferred, required).",
    ),
]

CongestionControl = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Congestion control of what this side sends: the kernel's own or one of `elephan kernel load`. "
        "Default: the network namespace's.",
    ),
]


@app.command()
def target(
    lun: Annotated[list[Path], typer.Option("--lun", help="A file or block device. May be repeated: LUN 0, 1, ...")],
    portal: Annotated[list[str] | None, typer.Option(help="HOST[:PORT] to listen on. Default: 127.0.0.1:3260.")] = None,
    name: Annotated[str, typer.Option(help="The target's iSCSI name.")] = "iqn.2026-01.elephan:disk",
    chap: Annotated[
        str | None, typer.Option(metavar="USER[=FILE]", help="Who may log in; secret: $ELEPHAN_CHAP_SECRET or FILE.")
    ] = None,
    mutual_chap: Annotated[
        str | None, typer.Option(metavar="USER=FILE", help="Secret with which the target authenticates itself.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse writes.")] = False,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared", help="Share the files with other processes that pass --shared. Default: a file is served once."
        ),
    ] = False,
    block: Annotated[int, typer.Option(help="Bytes of a logical block, 512 or 4096.")] = 512,
    command_window: Annotated[
        int,
        typer.Option(help="Commands that a session may have under way (RFC 7143: MaxCmdSN - ExpCmdSN + 1), 1 to 4096."),
    ] = 128,
    connections_per_address: Annotated[
        int, typer.Option(help="Connections of one address that may be logged in, of 256 in all.")
    ] = 64,
    memory: Annotated[str, typer.Option(help="Memory of the target for all initiators.")] = "256MiB",
    cc: CongestionControl = None,
    set_: Changes = None,
) -> None:
    """Serve files until Ctrl-C. Data that was acknowledged with FUA or SYNCHRONIZE CACHE is on the drive."""
    from elephan.iscsi import secret, serve

    serve(
        lun,
        name=name,
        portals=portal or ["127.0.0.1"],
        say=say,
        read_only=read_only,
        shared=shared,
        command_window=command_window,
        connections_per_address=connections_per_address,
        memory_bytes=_size("--memory", memory),
        block_bytes=block,
        chap=None if chap is None else secret(chap),
        mutual=None if mutual_chap is None else secret(mutual_chap, "--mutual-chap"),
        settings=_settings(set_ or []),
        congestion_control=cc,
    )


@app.command()
def bench(
    url: Annotated[str, typer.Argument(help="iscsi://[USER[%SECRET]@]HOST[:PORT]/TARGET/LUN")],
    size: Annotated[str, typer.Option(help="Of a command.")] = "64KiB",
    depth: Annotated[
        str,
        typer.Option(metavar="LIST", help="Commands under way, of all connections together: one number or several."),
    ] = DEPTHS,
    connections: Annotated[
        str, typer.Option(metavar="LIST", help="Connections of the session: one number or several.")
    ] = CONNECTIONS,
    duration: Annotated[str, typer.Option(help="How long, each depth with each number of connections.")] = "2s",
    reads: Annotated[int, typer.Option(help="Of 100 commands, how many read.")] = 100,
    random: Annotated[
        bool, typer.Option("--random", help="Anywhere on the unit instead of one place after the other.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Allow writes: what is on the unit is lost.")] = False,
    seed: Annotated[int, typer.Option(help="Of random places.")] = 1,
    cc: CongestionControl = None,
    json_: Annotated[bool, typer.Option("--json", help="As JSON, with all that was measured.")] = False,
    set_: Changes = None,
) -> None:
    """Find the knee of a unit's load curve, over any target: throughput and latency by depth and connections.

    Reads alone unless --reads and --overwrite say otherwise.
    """
    from elephan.iscsi import INTERRUPTED, Load, Measured, Url, sweep

    if reads < 100 and not overwrite:
        raise InputError(f"--reads {reads}: writes destroy what is on the unit; add --overwrite if that may be")
    depths, counts = _numbers("--depth", depth), _numbers("--connections", connections)
    load = Load(
        io_bytes=_size("--size", size),
        depth=depths[0],
        duration_ns=_span("--duration", duration),
        read_percent=reads,
        connections=counts[0],
        random=random,
        seed=seed,
        congestion_control=cc,
        settings=_settings(set_ or []),
    )
    place = Url.parse(url)

    def on_progress(point: Measured, number: int, of: int) -> None:
        say(f"{number} of {of}: depth {point.depth}, connections {point.connections}: {point.result.rate()}")

    done = sweep(place, load, depths, counts, on_progress if len(depths) * len(counts) > 1 else None)
    if json_:
        emit(json.dumps(done.as_json(), indent=1))
    elif len(done.points) == 1:
        emit("\n".join([done.points[0].result.text(), *(f"note: {note}" for note in done.notes)]))
    else:
        _show(done)
    if done.ended == INTERRUPTED:
        say("stopped before its time")
        raise typer.Exit(130)
    if done.ended is not None:
        raise RunError(f"{place.place()}: it was over before its time: {done.ended}")
    if any(point.result.core["failed"] or point.result.core["unfinished"] for point in done.points):
        raise RunError(f"{place.place()}: not all commands were done")


def _show(done: Sweep) -> None:
    """Print the table of a sweep, with the knee marked, and its caption."""
    from rich.table import Table
    from rich.text import Text

    from elephan.report.knee import METHOD, beyond
    from elephan.units import NOTHING, count

    kinds = list(dict.fromkeys(kind for point in done.points for kind in point.result.kinds))
    table = Table(box=None, header_style="bold", pad_edge=False)
    heads = ["connections", "depth", "throughput", "per second"]
    heads += [f"{kind.removesuffix('s')} {which}" for kind in kinds for which in LATENCIES]
    for head in heads:
        table.add_column(head, justify="right")
    table.add_column()
    for index, point in enumerate(done.points):
        result = point.result
        cells = [str(point.connections), str(point.depth), result.rate(), count(round(result.commands_per_s))]
        for kind in kinds:
            there = kind in result.kinds
            cells += [result.latency(kind, which) if there else NOTHING for which in LATENCIES]
        is_knee = done.knee is not None and index == done.knee.index
        table.add_row(*cells, "knee" if is_knee else "", style="bold" if is_knee else "")
    console().print(table)
    if done.knee is not None:
        console().print(Text(f"knee: {METHOD}", style="dim"))
        if done.knee.edges:
            console().print(Text(f"note: {beyond(done.knee.edges)}", style="yellow"))
    for note in done.notes:
        console().print(Text(f"note: {note}", style="yellow"))


@app.command()
def discover(
    portal: Annotated[str, typer.Argument(metavar="HOST[:PORT]", help="Where a target listens.")],
    chap: Annotated[
        str | None, typer.Option(metavar="USER[=FILE]", help="As whom; secret: $ELEPHAN_CHAP_SECRET or FILE.")
    ] = None,
) -> None:
    """List the targets of a portal: name and address (SendTargets)."""
    from elephan.iscsi import discover as ask
    from elephan.iscsi import secret

    for name, address in ask(portal, None if chap is None else secret(chap)):
        emit(f"{name}  {address}")


def _numbers(name: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    # As many digits as no number in range has.
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise InputError(f"{name} {text}: a whole number is needed, or several with commas between, such as 1,2,4")
    return [int(part) for part in parts]


def _size(name: str, text: str) -> int:
    from elephan.core import native

    try:
        return int(native.parse_size(text))
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error


def _span(name: str, text: str) -> int:
    from elephan.core import native

    try:
        return int(native.parse_span(text))
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error


def _settings(changes: list[str]) -> _Settings:
    settings: dict[str, Any] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        key, where = key.strip().replace("-", "_"), f"--set {change}"
        if not equals:
            raise InputError(f"{where}: KEY=VALUE is needed")
        if key in SETTINGS:
            if value not in ("yes", "no"):
                raise InputError(f"{where}: yes or no is needed")
            settings[key] = value == "yes"
        elif key in SIZES:
            size = _size(where, value)
            # 16 MiB stand for the most that the keys take, a byte less.
            if not 512 <= size <= 1 << 24:
                raise InputError(f"{where}: 512 B to 16 MiB is needed")
            settings[f"{key}_bytes"] = min(size, (1 << 24) - 1)
        elif key in COUNTS:
            if not value.isdecimal() or not 1 <= int(value) <= 65535:
                raise InputError(f"{where}: 1 to 65535 is needed")
            settings[key] = int(value)
        elif key in DIGESTS:
            if value not in ("off", "allowed", "preferred", "required"):
                raise InputError(f"{where}: off, allowed, preferred or required is needed")
            settings[key] = value
        else:
            known = ", ".join((*SETTINGS, *SIZES, *COUNTS, *DIGESTS))
            raise InputError(f"{where}: there is no key {key}; there are {known}")
    first, burst = settings.get("first_burst_bytes", 0), settings.get("max_burst_bytes", MAX_BURST)
    if first > burst:
        raise InputError(f"--set first_burst: {first} bytes; at most max_burst, {burst} bytes, are possible")
    # By names that the tables above hold: a type checker cannot follow.
    return cast("_Settings", settings)
