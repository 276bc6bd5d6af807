"""`elephan measure`: one path test now, and the reflector that it needs at the far end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elephan.cli.console import emit, say
from elephan.errors import InputError, RunError

if TYPE_CHECKING:
    from elephan.measure.target import Target
    from elephan.measure.test import WaitForTermination

app = typer.Typer(
    help="Measure a path: delay, loss and order by STAMP (RFC 8762), and what packet trains tell of it.",
    no_args_is_help=True,
)

Towards = Annotated[
    str,
    typer.Argument(
        metavar="TOWARDS",
        help="The reflector, HOST:PORT (port 862 where none is named), or a host of `elephan hosts`.",
        show_default=False,
    ),
]
TowardsOrScenario = Annotated[
    str,
    typer.Argument(
        metavar="TOWARDS|FILE.toml",
        help="The reflector, HOST:PORT (port 862 where none is named), or a host of `elephan hosts`. A scenario: the "
        "test is simulated beside its traffic, on the route of its first flow.",
        show_default=False,
    ),
]
SCENARIO = ".toml"
"""End of a scenario's name."""
KeyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Key of both ends (HMAC-SHA-256), a line of hexadecimal digits. Default: no authentication.",
        show_default=False,
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="NAME",
        help="Host of `elephan hosts` that measures. Default: this machine.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, and nothing else.")]


@app.command()
def stamp(
    towards: Towards,
    packets: Annotated[int, typer.Option("--count", "-c", help="Packets to send.", min=1)] = 10,
    interval: Annotated[str, typer.Option(metavar="TIME", help="Time between two packets, 1ms or more.")] = "100ms",
    size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Of a packet, from the IP header on. Default: the least, 72 B (IPv4) or 92 B (IPv6), with a key 68 B "
            "more.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[str, typer.Option(metavar="TIME", help="A packet without a reply is lost after it.")] = "2s",
    dscp: Annotated[int, typer.Option(help="Class of the packets (RFC 2474).", min=0, max=63)] = 0,
    time_format: Annotated[str, typer.Option(metavar="ntp|ptp", help="Form of the time stamps.")] = "ntp",
    each: Annotated[bool, typer.Option("--each", help="Print a line for each packet.")] = False,
    key_file: KeyFile = None,
    from_: From = None,
    json_: AsJson = False,
) -> None:
    """Delay in both directions, jitter, loss with its runs, reordering, duplicates and TTL, by STAMP (RFC 8762).

    One-way delays take the reflector's clock as the packets tell it: their interval has the error of that. Exit code 1
    where no packet has a reply.
    """
    keys = {
        "count": packets,
        "interval_ns": _span("--interval", interval, 10**6),
        "packet_bytes": 0 if size is None else _size("--size", size),
        "timeout_ns": _span("--timeout", timeout, 10**6),
        "traffic_class": dscp << 2,
        "time_format": time_format,
    }
    if time_format not in ("ntp", "ptp"):
        raise InputError(f"--time-format {time_format}: ntp or ptp is needed")
    if each and (json_ or from_ is not None):
        raise InputError("--each: is neither for --json nor for --from")
    on_sample: Callable[[dict[str, Any]], None] | None = None
    if each:
        from elephan.measure.text import sample_line

        def on_sample(told: dict[str, Any]) -> None:
            emit(sample_line(told["sample"]))

    outcome = _measured("stamp", towards, keys, key_file, from_, json_, on_sample)
    loss = next((one["value"] for one in outcome["estimates"] if one["quantity"] == "loss"), None)
    if outcome.get("stopped"):
        say("stopped before its time")
        raise typer.Exit(130)
    if loss == 1:
        raise RunError(f"{towards}: no packet has a reply")


@app.command()
def reflect(
    address: Annotated[
        str | None,
        typer.Argument(metavar="ADDRESS", help="Where to listen. Default: all addresses.", show_default=False),
    ] = None,
    port: Annotated[int, typer.Option(help="UDP port; 0: any that is free.", min=0, max=65535)] = 862,
    key_file: KeyFile = None,
    stateless: Annotated[
        bool, typer.Option("--stateless", help="Number replies as their packets, and keep nothing about senders.")
    ] = False,
    short_replies: Annotated[
        bool,
        typer.Option(
            "--short-replies", help="Answer packet trains that ask for it by short packets (RFC 10052), never longer."
        ),
    ] = False,
    json_: AsJson = False,
) -> None:
    """Be the far end of path tests until a signal: answer STAMP's packets, and TWAMP Light's of 41 octets or more.

    No reply is longer than its packet, and TWAMP's has 41 octets: a sender of shorter ones needs 27 octets of padding.
    With a key, packets without it have no answer.
    """
    from elephan.core import native
    from elephan.measure.target import in_brackets
    from elephan.signals import termination_requested

    key = _key(key_file)
    hosts = ["0.0.0.0", "[::]"] if address is None else [in_brackets(address)]
    with termination_requested() as wait_for_termination:
        try:
            reflector = native.PathReflector(
                [f"{host}:{port}" for host in hosts],
                key=key,
                is_stateful=not stateless,
                short_replies=short_replies,
            )
        except ValueError as error:
            raise InputError(f"{address}: an IPv4 or IPv6 address of this machine is needed") from error
        except OSError as error:
            raise RunError(str(error)) from error
        say(f"reflecting at {', '.join(reflector.addresses())}{' with a key' if key else ''}, until a signal")
        reflector.serve(wait_for_termination)
    counts = json.loads(reflector.counts())
    short = " (TWAMP needs 27 octets of padding)" if counts["too_short"] and not key else ""
    if json_:
        emit(json.dumps({"addresses": reflector.addresses(), **counts}, indent=1))
    else:
        emit(
            f"{counts['replies']} replies; not answered: {counts['too_short']} too short for a reply{short}, "
            f"{counts['wrong_hmac']} "
            f"with a wrong HMAC, {counts['no_reply_wanted']} that asked for none, {counts['are_replies']} "
            "that are replies themselves"
        )


@app.command()
def throughput(
    server: Annotated[
        str,
        typer.Argument(metavar="HOST[:PORT]", help="An iperf3 server (`iperf3 -s`), port 5201.", show_default=False),
    ],
    max_bytes: Annotated[str, typer.Option("--bytes", metavar="SIZE", help="Data to carry at most.")] = "100MB",
    seconds: Annotated[float, typer.Option("--seconds", metavar="SECONDS", help="Time to carry it at most.")] = 30.0,
    streams: Annotated[int, typer.Option("--streams", help="TCP connections.", min=1, max=128)] = 1,
    congestion_control: Annotated[
        str | None,
        typer.Option(
            "--congestion-control",
            metavar="NAME",
            help="Of the sender's kernel. Default: that kernel's own.",
            show_default=False,
        ),
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="The server sends.")] = False,
    json_: AsJson = False,
) -> None:
    """Measure throughput: the goodput of one TCP transfer by iperf3, which fills the path while it lasts.

    The bytes or the seconds end it, whichever come first. Exit code 1: no such server, or it is busy.
    """
    from elephan.measure import throughput as iperf3

    host, port = iperf3.target(server)
    bound = _size("--bytes", max_bytes)
    if bound < 1:
        raise InputError(f"--bytes {max_bytes}: 1 B or more is needed")
    if not 0.1 <= seconds <= 86_400:
        raise InputError(f"--seconds {seconds:g}: 0.1 to 86400 are needed")
    transfer = iperf3.Transfer(host, port, bound, seconds, streams, congestion_control, reverse)
    _shown("throughput", f"{host}:{port}", json_, lambda wait: iperf3.run(transfer, wait))


def _estimator(name: str) -> Callable[..., None]:
    """Return the command of an estimator."""

    def measure(
        towards: TowardsOrScenario,
        set_: Annotated[
            list[str] | None,
            typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the test. May be repeated."),
        ] = None,
        key_file: KeyFile = None,
        from_: From = None,
        json_: AsJson = False,
    ) -> None:
        keys = _changes(set_ or [])
        if towards.endswith(SCENARIO):
            if key_file is not None or from_ is not None:
                raise InputError(f"{towards}: a scenario is simulated here: neither --key-file nor --from is for it")
            outcome = _simulated(name, towards, keys, json_)
        else:
            outcome = _measured(name, towards, keys, key_file, from_, json_, None)
        if outcome["refused"] is not None:
            from elephan.measure.refusals import advice_on

            raise RunError(f"{name}: refused: {outcome['refused']}{advice_on(outcome['refused'])}")

    measure.__doc__ = f"{ESTIMATORS[name]} Exit code 1 where the method refuses."
    return measure


# Not from the core, which the help would have to load.
ESTIMATORS = {
    "capacity": "Rate of the narrowest link, by packet trains.",
    "available": "Rate that other traffic leaves, by packet trains.",
    "queue": "Depth of the narrowest link's queue, by packet trains.",
    "policer": "Rate and burst of a policer, by packet trains.",
    "loss": "Loss of a steady stream, and the part that no full queue explains.",
    "hops": "Routers of the path, and rate, delay and queue of the link to each.",
    "mtu": "Path MTU, also where no router reports it (RFC 8899).",
}
"""Path tests with what each estimates."""
for _name in ESTIMATORS:
    app.command(_name)(_estimator(_name))


def _measured(
    name: str,
    towards: str,
    keys: dict[str, Any],
    key_file: Path | None,
    from_: str | None,
    json_: bool,
    on_progress: Callable[[dict[str, Any]], None] | None,
) -> dict[str, Any]:
    """Make a test, print its outcome, and return it."""
    from elephan.measure import test

    with _target(towards, key_file) as target:

        def made(wait_for_termination: WaitForTermination) -> dict[str, Any]:
            if from_ is not None:
                return test.run_from(from_, name, target, keys, wait_for_termination)
            return test.run(name, target, keys, wait_for_termination, on_progress)

        return _shown(name, target.towards, json_, made)


def _simulated(name: str, scenario: str, keys: dict[str, Any], json_: bool) -> dict[str, Any]:
    """Simulate a test beside a scenario's traffic, print its outcome and the truth, and return the outcome."""
    from elephan.measure.simulated import simulate_test
    from elephan.measure.text import outcome_lines, truth_line

    found = simulate_test(scenario, {"test": name, **keys})
    if json_:
        emit(json.dumps({"test": name, "scenario": scenario, **found.outcome, "truth": found.truth}, indent=1))
    else:
        emit("\n".join([f"{name}, simulated in {scenario}", *outcome_lines(found.outcome), truth_line(found.truth)]))
    return found.outcome


def _shown(
    name: str, towards: str, json_: bool, made: Callable[[WaitForTermination], dict[str, Any]]
) -> dict[str, Any]:
    """Make a test that a signal stops, print its outcome, and return it."""
    from elephan.core import native
    from elephan.measure.text import outcome_lines
    from elephan.signals import termination_requested

    with termination_requested() as wait_for_termination:
        try:
            outcome = made(wait_for_termination)
        except native.Stopped:
            say("stopped before its time")
            raise typer.Exit(130) from None
    if json_:
        emit(json.dumps({"test": name, "towards": towards, **outcome}, indent=1))
    else:
        emit("\n".join([f"{name} towards {towards}", *outcome_lines(outcome)]))
    return outcome


@contextmanager
def _target(towards: str, key_file: Path | None) -> Iterator[Target]:
    from elephan.measure.target import reached

    with reached(towards, _key(key_file)) as target:
        yield target


def _key(file: Path | None) -> bytes | None:
    from elephan.measure.target import read_key

    return None if file is None else read_key("--key-file", file)


def _span(option: str, text: str, least_ns: int) -> int:
    from elephan.line.rates import parse_span

    return parse_span(option, text, least_ns)


def _size(option: str, text: str) -> int:
    from elephan.core import native

    try:
        return native.parse_size(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error


def _changes(changes: list[str]) -> dict[str, Any]:
    """Return keys and values of a test: JSON, else text."""
    keys = {}
    for change in changes:
        key, found, value = change.partition("=")
        if not (found and key):
            raise InputError(f"--set {change}: KEY=VALUE is needed")
        if key in ("test", "towards", "key"):
            raise InputError(f"--set {change}: the command's name, TOWARDS and --key-file say it")
        try:
            keys[key] = json.loads(value)
        except ValueError:
            keys[key] = value
    return keys
