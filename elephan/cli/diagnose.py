"""`elephan diagnose`: what limits the TCP flows that are there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from elephan.cli.console import emit, say
from elephan.errors import InputError

if TYPE_CHECKING:
    from elephan.diagnose.forecast import Policer

FORECASTS = 3
"""Flows that get a forecast, those of most bytes."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(diagnose)


def diagnose(
    port: Annotated[int | None, typer.Option(metavar="N", help="Port at either end.", show_default=False)] = None,
    pid: Annotated[
        int | None, typer.Option(metavar="P", help="A process that has the connection open.", show_default=False)
    ] = None,
    peer: Annotated[
        str | None, typer.Option(metavar="ADDR", help="Address of the far end.", show_default=False)
    ] = None,
    seconds: Annotated[float, typer.Option(metavar="S", help="How long to watch.")] = 5.0,
    line_rate: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="What the path carries, for the forecast. Default: the rate of the interface towards the peer.",
            show_default=False,
        ),
    ] = None,
    policer: Annotated[
        str | None,
        typer.Option(
            metavar="RATE,BURST",
            help="A policer on the path, for the forecast, as `elephan measure policer` finds it: 50Mbit/s,64KiB.",
            show_default=False,
        ),
    ] = None,
    no_forecast: Annotated[bool, typer.Option("--no-forecast", help="Simulate nothing.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one object, and nothing else.")] = False,
) -> None:
    """Watch TCP flows that are there, and say what limits each, without a byte of load.

    The application, the receiving application, the sender's buffer, the receiver's window, a pacing limit, losses of
    the path, its bottleneck and queue, a policer, or the flow's own start. Then a simulation says what the flows of
    most bytes would get with other settings. Connections are those of this network namespace: `ip netns exec NAME
    elephan diagnose` for another.
    """
    from elephan.core import native
    from elephan.diagnose import Selection, watch
    from elephan.diagnose.forecast import forecast
    from elephan.diagnose.text import as_json, lines
    from elephan.signals import termination_requested

    rate_bps = None if line_rate is None else _quantity("--line-rate", line_rate, line_rate, native.parse_rate)
    known = None if policer is None else _policer(policer)
    with termination_requested() as wait_for_termination:
        watched = watch(Selection(port, pid, peer), seconds, wait_for_termination)
    forecasts = [
        None if no_forecast or place >= FORECASTS else forecast(flow, rate_bps, known, say)
        for place, flow in enumerate(watched.flows)
    ]
    if json_:
        emit(json.dumps(as_json(watched, forecasts), indent=1))
        return
    for line in lines(watched, forecasts):
        emit(line)


def _policer(text: str) -> Policer:
    from elephan.core import native
    from elephan.diagnose.forecast import Policer

    rate, comma, burst = text.partition(",")
    if not comma:
        raise InputError(f"--policer {text}: a rate and a burst are needed, such as 50Mbit/s,64KiB")
    rate_bps = _quantity("--policer", text, rate, native.parse_rate)
    return Policer(rate_bps, _quantity("--policer", text, burst.strip(), native.parse_size))


def _quantity(option: str, text: str, part: str, parse: Callable[[str], int]) -> int:
    try:
        found = parse(part)
    except ValueError as error:
        raise InputError(f"{option} {text}: {error}") from None
    if found <= 0:
        raise InputError(f"{option} {text}: more than nothing")
    return found
