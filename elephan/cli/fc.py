"""`elephan fc`: a Fibre Channel port of its own, to look at a fabric and to measure the way to its ports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elephan.cli.console import console, emit, say
from elephan.errors import InputError, RunError
from elephan.units import NOTHING, count, duration, pluralize, rate

if TYPE_CHECKING:
    from elephan.fc import End
    from elephan.fc.ping import Answer

app = typer.Typer(
    help="A Fibre Channel port of its own, on a gateway's Ethernet or socket: list ports, measure round trips, put a "
    "load on the way to another port.",
    no_args_is_help=True,
)

Interface = Annotated[
    str | None, typer.Option(metavar="NAME", help="Ethernet interface behind which a forwarder is.", show_default=False)
]
Socket = Annotated[
    str | None,
    typer.Option(
        metavar="LOCAL:REMOTE",
        help="UNIX datagram socket of a gateway: its `remote` path, where this port listens, and its `local` path.",
        show_default=False,
    ),
]
Vlan = Annotated[int | None, typer.Option(help="Virtual LAN of FCoE and FIP. Default: no tag.", show_default=False)]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="WWN",
        help="This port's world wide name. Default: 20:00 and the interface's address.",
        show_default=False,
    ),
]
Within = Annotated[str, typer.Option(help="Longest wait for the fabric and for the other port.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one object, and nothing else.")]
Port = Annotated[
    str,
    typer.Argument(metavar="PORT", help="The other port: six hexadecimal digits, or a name.", show_default=False),
]

LATENCIES = ("mean", "p50", "p90", "p99", "p999", "max")


@app.command()
def ports(
    interface: Interface = None,
    socket: Socket = None,
    vlan: Vlan = None,
    name: Name = None,
    within: Within = "10s",
    json_: AsJson = False,
) -> None:
    """Log in to the fabric, and list the ports that its name server shows."""
    from elephan.fc import ports as list_ports
    from elephan.signals import termination_requested

    end = _end(interface, socket, vlan, name, within)
    with _interruptible(), termination_requested() as wait_for_termination:
        found = list_ports(end, wait_for_termination, say)
    if json_:
        emit(json.dumps([asdict(port) for port in found], indent=1))
        return
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("address", "port", "node", "SCSI", ""):
        table.add_column(title)
    for port in found:
        names = (port.port or NOTHING, port.node or NOTHING)
        table.add_row(port.id, *names, ", ".join(port.roles) or NOTHING, "this port" if port.is_own else "")
    console().print(table)


@app.command()
def ping(
    port: Port,
    interface: Interface = None,
    socket: Socket = None,
    vlan: Vlan = None,
    name: Name = None,
    number: Annotated[int, typer.Option("--count", "-c", help="Pings.")] = 5,
    interval: Annotated[str, typer.Option(help="Time between an answer and the next ping.")] = "1s",
    size: Annotated[int, typer.Option(help="Bytes that ECHO carries there and back.")] = 64,
    adisc: Annotated[bool, typer.Option("--adisc", help="Send ADISC, for a port that does not answer ECHO.")] = False,
    within: Within = "10s",
    json_: AsJson = False,
) -> None:
    """Log in to a port, and measure round trips to it: by ECHO, which Linux's libfc and most adapters answer, or ADISC.

    A reject counts as an answer: the port is there. Exit code 1 where an answer is missing.
    """
    from elephan.fc import ping as send
    from elephan.signals import termination_requested

    if number < 1:
        raise InputError(f"--count {number}: 1 or more is needed")
    if not 1 <= size <= ECHO_BYTES_MAX:
        raise InputError(f"--size {size}: 1 to {ECHO_BYTES_MAX} bytes are needed")
    service = "ADISC" if adisc else "ECHO"

    def on_answer(which: int, answer: Answer | None) -> None:
        if not json_:
            text = "no answer" if answer is None else duration(answer.rtt_ns / 1e9)
            emit(f"{service} {which + 1}: {text}{', rejected' if answer is not None and answer.is_reject else ''}")

    end = _end(interface, socket, vlan, name, within)
    with _interruptible(), termination_requested() as wait_for_termination:
        done = send(
            end,
            port,
            count=number,
            interval_ns=_span("--interval", interval),
            echo_bytes=None if adisc else size,
            wait_for_termination=wait_for_termination,
            say=say,
            on_answer=on_answer,
        )
    rtts_ns = done.rtts_ns()
    if json_:
        summary = _summary(rtts_ns)
        emit(json.dumps({**asdict(done), **summary}, indent=1))
    else:
        answered = f"{done.port} at {done.id}: {len(rtts_ns)} of {pluralize(len(done.answers), 'ping')} answered"
        emit(answered + "".join(f", {key[4:-3]} {duration(value / 1e9)}" for key, value in _summary(rtts_ns).items()))
    if len(rtts_ns) < len(done.answers):
        raise RunError(f"{port}: {len(done.answers) - len(rtts_ns)} of {len(done.answers)} pings had no answer")


@app.command()
def load(
    port: Annotated[
        str | None,
        typer.Argument(
            metavar="[PORT]",
            help="The receiver: six hexadecimal digits, or a name. Default: send nothing, and count the loads of "
            "others.",
            show_default=False,
        ),
    ] = None,
    interface: Interface = None,
    socket: Socket = None,
    vlan: Vlan = None,
    name: Name = None,
    speed: Annotated[
        str | None, typer.Option(help="Speed of the port, 1GFC to 32GFC. Default: 1GFC.", show_default=False)
    ] = None,
    rate_: Annotated[
        str | None,
        typer.Option(
            "--rate", help="Rate of frames, delimiters and fill words, in place of a speed.", show_default=False
        ),
    ] = None,
    share: Annotated[str, typer.Option(help="Share of the port's rate.")] = "90%",
    size: Annotated[
        str, typer.Option(metavar="LIST", help="Payload of a frame, or a mix: SIZE:WEIGHT with commas between.")
    ] = "2048",
    length: Annotated[
        str | None,
        typer.Option("--duration", help="Default: 10s, and without PORT until a signal.", show_default=False),
    ] = None,
    within: Within = "10s",
    json_: AsJson = False,
) -> None:
    """Send frames to another `elephan fc load`, and report rate, loss and the latency of every frame at both ends.

    The latency of one way is by the clock of the day of both machines: on one machine, or with clocks as near as the
    latency is to be exact. Exit code 1 where frames are lost.
    """
    from elephan.fc import Load, put
    from elephan.signals import termination_requested

    asked = None
    # Options of a load are checked without one too.
    values = (_rate(speed, rate_), _per_mille(share), _sizes(size), _span("--duration", length or "10s"))
    Load(port or "010100", *values).check()
    if port is not None:
        asked = Load(port, *values)
    own_ns = None if length is None else _span("--duration", length)
    end = _end(interface, socket, vlan, name, within)
    with _interruptible(), termination_requested() as wait_for_termination:
        done = put(end, asked, own_ns, wait_for_termination=wait_for_termination, say=say)
    if json_:
        emit(json.dumps(done.as_json(), indent=1))
    else:
        if done.sent is not None:
            sent, held_ns = done.sent, done.sent["left_out_ns"]
            emit(f"sent: {_flow(sent)}{f'; held back for {duration(held_ns / 1e9)}' if held_ns else ''}")
            emit(f"  there: {_result(sent['result'])}" if sent["result"] else "  there: no result came back")
        for one in done.received:
            emit(f"from {one['from']}: {_flow(one)}")
            emit(f"  here: {_result(one)}")
        if done.sent is None and not done.received:
            emit("no load came")
    if done.ended == "told to stop":
        say("stopped before its time")
        raise typer.Exit(130)
    if done.ended is not None:
        raise RunError(f"it was over before its time: {done.ended}")
    if done.sent is not None and done.sent["result"] is None:
        raise RunError(f"{port}: the receiver gave no result: is it elephan fc load?")
    if done.lost():
        raise RunError(f"{pluralize(done.lost(), 'frame')} lost")


ECHO_BYTES_MAX = 1024
"""Bytes of an ECHO, so that it is one frame whatever the port takes."""


def _flow(one: Mapping[str, Any]) -> str:
    """Return frames and rate of a direction."""
    seconds = one["span_ns"] / 1e9
    flow = rate(one["payload_bytes"] * 8 / seconds) if seconds else NOTHING
    return f"{count(one['frames'])} frames, {flow} of payload in {duration(seconds)}"


def _result(one: Mapping[str, Any]) -> str:
    """Return what a receiver counted."""
    parts = [f"{count(one['frames'])} frames, {count(one['lost'])} lost"]
    for key in ("out_of_order", "duplicates", "too_late", "from_the_future"):
        parts += [f"{count(one[key])} {key.replace('_', ' ')}"] if one[key] else []
    text = ", ".join(parts)
    if "latency_mean_ns" not in one:
        return text
    shown = (f"{which.replace('p999', 'p99.9')} {duration(one[f'latency_{which}_ns'] / 1e9)}" for which in LATENCIES)
    return f"{text}; latency {', '.join(shown)}"


def _summary(rtts_ns: list[int]) -> dict[str, float]:
    if not rtts_ns:
        return {}
    return {
        "rtt_min_ns": min(rtts_ns),
        "rtt_mean_ns": round(sum(rtts_ns) / len(rtts_ns)),
        "rtt_max_ns": max(rtts_ns),
    }


@contextmanager
def _interruptible() -> Iterator[None]:
    """End as a program that a signal stopped; the port has logged out by then."""
    from elephan.core import native

    try:
        yield
    except native.Stopped:
        say("stopped")
        raise typer.Exit(130) from None


def _end(interface: str | None, socket: str | None, vlan: int | None, name: str | None, within: str) -> End:
    from elephan.fc import End

    return End.of(interface, socket, vlan, name, _span("--within", within))


def _rate(speed: str | None, text: str | None) -> int:
    from elephan.core import native

    if speed is not None and text is not None:
        raise InputError("--speed and --rate: one of the two is needed")
    speeds = dict(native.fc_port_speeds())
    if text is None:
        named = speed or "1GFC"
        if named not in speeds:
            raise InputError(f"--speed {named}: one of {', '.join(speeds)} is needed")
        return speeds[named]
    try:
        return int(native.parse_rate(text))
    except ValueError as error:
        raise InputError(f"--rate: {error}") from error


def _per_mille(text: str) -> int:
    number, sign, rest = text.partition("%")
    try:
        value = float(number) * 10
    except ValueError:
        value = -1.0
    if not sign or rest or not 1 <= value <= 1000 or round(value, 6) != round(value):
        raise InputError(f"--share {text}: a part of 100 with at most one decimal is needed, such as 90% or 12.5%")
    return round(value)


def _sizes(text: str) -> list[tuple[int, int]]:
    from elephan.core import native

    sizes = []
    for part in text.split(","):
        size, colon, weight = part.strip().partition(":")
        if colon and not (weight.isdecimal() and len(weight) < 9):
            raise InputError(f"--size {text}: SIZE or SIZE:WEIGHT is needed, such as 64:1,2048:5")
        try:
            # Bytes where there is no unit, as frames have them.
            payload = int(size) if size.isdecimal() and len(size) < 9 else int(native.parse_size(size))
        except ValueError as error:
            raise InputError(f"--size: {error}") from error
        sizes.append((payload, int(weight) if colon else 1))
    return sizes


def _span(option: str, text: str) -> int:
    from elephan.core import native

    try:
        return int(native.parse_span(text))
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error
