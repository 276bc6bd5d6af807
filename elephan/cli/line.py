"""`elephan line`: frames on an Ethernet interface, to prove a line before storage is put on it."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from elephan.cli.console import emit, say
from elephan.cli.line_options import (
    Address,
    AsJson,
    Asked,
    Far,
    Force,
    Interface,
    LineRate,
    Method,
    MixOf,
    Payload,
    Pcp,
    Ramp,
    Rate,
    To,
    Vlan,
    Within,
    check_payload,
)
from elephan.errors import InputError, RunError
from elephan.units import duration, pluralize, rate

app = typer.Typer(
    help="Prove a line with frames of one's own: send and receive, RFC 2544, service activation, bit errors, a soak.",
    no_args_is_help=True,
)


@app.command()
def receive(
    interface: Interface,
    vlan: Vlan = None,
    method: Method = None,
    address: Address = None,
    force: Force = False,
    length: Annotated[
        str | None, typer.Option("--duration", help="Default: until a signal.", show_default=False)
    ] = None,
    json_: AsJson = False,
) -> None:
    """Be the receiver: answer senders, and count their streams, until a signal."""
    import time

    from elephan.cli.line_text import received_text
    from elephan.core import native
    from elephan.line.rates import parse_span
    from elephan.line.session import SLICE_NS
    from elephan.line.trial import received_of
    from elephan.signals import termination_requested

    span_ns = None if length is None else parse_span("--duration", length)
    end, _ = Asked(interface, vlan=vlan, method=method, address=address, force=force).ends()
    end = end.check()
    told: set[tuple[str, int]] = set()

    def tell(ended: bool) -> None:
        for one in json.loads(port.streams()):
            key = (str(one["from"]), int(one["stream"]))
            if key not in told and (ended or one["is_over"]) and not json_:
                told.add(key)
                over = "" if one["is_over"] else " (not over)"
                emit(f"from {key[0]}, stream {key[1]}{over}: {received_text(received_of(one['received']))}")

    with termination_requested() as wait_for_termination:
        port = end.open(wait_for_termination)
        info = json.loads(port.info())
        say(f"{interface}: {info['method']} ({info['reason']}), receives at {info['address']}")
        end_s = None if span_ns is None else time.monotonic() + span_ns / 1e9
        try:
            while end_s is None or time.monotonic() < end_s:
                port.serve(SLICE_NS)
                tell(ended=False)
        except native.Stopped:
            pass
        except OSError as error:
            raise RunError(f"{interface}: {error}") from error
        finally:
            for line in port.take_log():
                say(line)
    if json_:
        emit(json.dumps({"port": info, "streams": json.loads(port.streams())}, indent=1))
    else:
        tell(ended=True)


@app.command()
def send(
    interface: Interface,
    to: To = "auto",
    far: Far = None,
    line: LineRate = None,
    rate_: Rate = "100%",
    mix: MixOf = "paper",
    length: Annotated[str | None, typer.Option("--duration", help="Default: 10s.", show_default=False)] = None,
    number: Annotated[
        int | None,
        typer.Option("--count", "-c", help="Frames to send, in place of a duration.", show_default=False, min=1),
    ] = None,
    payload: Payload = "crpat",
    ramp: Ramp = "1s",
    series: Annotated[
        str | None, typer.Option(metavar="TIME", help="Print counts of each interval.", show_default=False)
    ] = None,
    vlan: Vlan = None,
    pcp: Pcp = None,
    method: Method = None,
    address: Address = None,
    force: Force = False,
    within: Within = "5s",
    json_: AsJson = False,
) -> None:
    """Send one stream of frames, and report loss, order, bit errors and one-way latency as the receiver counted them.

    Frames that the generator could not send in their time are counted apart from those that the line lost. Exit code 1
    where the line lost frames or changed bits.
    """
    from elephan.cli.line_text import outcome_lines, row_text
    from elephan.line.mix import parse_mix
    from elephan.line.rates import parse_line, parse_rate, parse_span
    from elephan.line.session import STOPPED
    from elephan.line.trial import Trial

    if length is not None and number is not None:
        raise InputError("--duration and --count: one of the two is needed")
    duration_ns = parse_span("--duration", length or "10s") if number is None else None
    ramp_ns = parse_span("--ramp", ramp, least_ns=0)
    series_ns = None if series is None else parse_span("--series", series, least_ns=10**8)
    parse_mix("--mix", mix)
    check_payload(payload)
    with Asked(interface, to, far, method, address, vlan, pcp, force, within).session() as session:
        line_bps = parse_line("--line", line, session.info["rate_bps"], interface)
        frames = parse_mix("--mix", mix, session.mtu_bytes)
        session.check("--mix", frames)
        trial = Trial(
            frames,
            parse_rate("--rate", rate_, line_bps),
            duration_ns,
            number,
            payload,
            ramp_ns,
            series_ns,
            pcp=pcp,
        )
        asked = f"{rate(trial.rate_bps)} of the line" + ("" if number else f" for {duration((duration_ns or 0) / 1e9)}")
        say(f"sending {frames} frames at {asked}")
        on_row = None if json_ or series_ns is None else (lambda row: emit(row_text(row)))
        outcome = session.send(trial, on_row)
        facts = {"port": session.info, "receiver": session.far}
    if json_:
        emit(json.dumps({**facts, "line_bps": line_bps, "rate_bps": trial.rate_bps, **outcome.as_json()}, indent=1))
    else:
        for text in outcome_lines(outcome):
            emit(text)
    if outcome.ended == STOPPED:
        say("stopped before its time")
        raise typer.Exit(130)
    if outcome.ended is not None:
        raise RunError(f"it was over before its time: {outcome.ended}")
    got = outcome.received
    if got is None:
        raise RunError(f"{session.to}: the receiver gave no counts: does elephan line receive still run there?")
    # Frames that the receiver's own kernel dropped are not the line's.
    lost = max(0, got.lost - got.ring_drops)
    if lost or got.bit_errors:
        faults = [pluralize(lost, "frame") + " lost"] if lost else []
        faults += [pluralize(got.bit_errors, "bit error")] if got.bit_errors else []
        raise RunError(" and ".join(faults))
