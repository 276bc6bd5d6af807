"""`elephan line`: frames on an Ethernet interface, to prove a line before storage is put on it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elephan.cli import line_test
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
    facts_of,
    frames_of,
)
from elephan.cli.options import Group
from elephan.errors import InputError, RunError
from elephan.units import duration, pluralize, rate

if TYPE_CHECKING:
    from elephan.line.page import Page
    from elephan.line.soak import Soak
    from elephan.line.trial import Row

PROGRESS_NS = 3600 * 10**9
"""Time between two lines about a soak without faults."""
TELL_S = 2.0
"""Time between two looks for streams that are over: a list of thousands takes the receiver's time."""

app = typer.Typer(
    help="Prove a line with frames of one's own: send and receive, RFC 2544, service activation, bit errors, a soak.",
    no_args_is_help=True,
)


app.add_typer(line_test.app, name="test", cls=Group)


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
    """Be the receiver: answer senders, and count their streams, until a signal.

    The counts of the last 16 streams are kept: --json has those, and the number of earlier ones as not_shown.
    """
    import time

    from elephan.core import native
    from elephan.line.rates import parse_span
    from elephan.line.session import SLICE_NS
    from elephan.line.text import received_text
    from elephan.line.trial import received_of
    from elephan.signals import termination_requested

    span_ns = None if length is None else parse_span("--duration", length)
    end, _ = Asked(interface, vlan=vlan, method=method, address=address, force=force).ends()
    end = end.check("receive")
    told: set[tuple[str, int]] = set()
    seen: set[tuple[str, int]] = set()

    def tell(ended: bool) -> None:
        for one in json.loads(port.streams()):
            key = (str(one["from"]), int(one["stream"]))
            seen.add(key)
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
            told_s = time.monotonic()
            while end_s is None or time.monotonic() < end_s:
                port.serve(SLICE_NS)
                if time.monotonic() - told_s > TELL_S:
                    tell(ended=False)
                    told_s = time.monotonic()
        except native.Stopped:
            pass
        except OSError as error:
            raise RunError(f"{interface}: {error}") from error
        finally:
            for line in port.take_log():
                say(line)
    tell(ended=True)
    if json_:
        streams = json.loads(port.streams())
        emit(json.dumps({"port": info, "streams": streams, "not_shown": len(seen) - len(streams)}, indent=1))


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
    within: Within = "2s",
    json_: AsJson = False,
) -> None:
    """Send one stream of frames, and report loss, order, bit errors and one-way latency as the receiver counted them.

    Frames that the generator could not send in their time are counted apart from those that the line lost. Exit code 1
    where the line lost frames or changed bits.
    """
    from elephan.line.mix import parse_mix
    from elephan.line.rates import parse_line, parse_rate, parse_span
    from elephan.line.session import BUSY, STOPPED
    from elephan.line.text import faults, outcome_lines, row_text
    from elephan.line.trial import FRAMES_MAX, Trial

    if length is not None and number is not None:
        raise InputError("--duration and --count: one of the two is needed")
    if number is not None and number > FRAMES_MAX:
        raise InputError(f"--count {number}: 1 to {FRAMES_MAX} is needed")
    duration_ns = parse_span("--duration", length or "10s") if number is None else None
    ramp_ns = parse_span("--ramp", ramp, least_ns=0)
    series_ns = None if series is None else parse_span("--series", series, least_ns=10**8)
    parse_mix("--mix", mix, has_vlan=vlan is not None)
    check_payload(payload)
    with Asked(interface, to, far, method, address, vlan, pcp, force, within).session() as session:
        line_bps = parse_line("--line", line, session.info["rate_bps"], interface)
        frames = frames_of(mix, session)
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
    elif not (outcome.ended or "").startswith(BUSY):
        for text in outcome_lines(outcome):
            emit(text)
    if outcome.ended == STOPPED:
        say("stopped before its time")
        raise typer.Exit(130)
    if outcome.ended is not None:
        raise RunError(session.why_ended(outcome.ended))
    got = outcome.received
    if got is None:
        raise RunError(f"{session.to}: the receiver gave no counts: does elephan line receive still run there?")
    found = faults(outcome.sent_lost, outcome.sent.no_carrier_frames, got.bit_errors, got.wrong_lengths)
    if found:
        raise RunError(" and ".join(found))


@app.command()
def soak(
    interface: Interface,
    length: Annotated[
        str, typer.Option("--for", metavar="TIME", help="Time to measure, such as 91h or 4d.", show_default=False)
    ],
    into: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Where series and report go; a soak in it goes on.", show_default=False),
    ],
    to: To = "auto",
    far: Far = None,
    line: LineRate = None,
    rate_: Rate = "100%",
    mix: MixOf = "paper",
    every: Annotated[str, typer.Option(help="Interval of the series.")] = "10s",
    target: Annotated[
        float | None,
        typer.Option(metavar="RATE", help="Fail where the bit error rate is above it.", show_default=False),
    ] = None,
    payload: Payload = "crpat",
    ramp: Ramp = "1s",
    vlan: Vlan = None,
    pcp: Pcp = None,
    method: Method = None,
    address: Address = None,
    force: Force = False,
    within: Within = "2s",
    json_: AsJson = False,
) -> None:
    """Load the line for hours, with a point every 10 s, and report loss, bit errors and latency over all of it.

    Each point is on the disk when the next one is measured. After Ctrl-C, a crash or a power cut the same command goes
    on: the report says what was not measured in between. A receiver that falls silent is looked for again, and the time
    in which it did not count does not count. Exit code 1 where the line lost frames or changed bits, or where the
    receiver did not count.
    """
    from elephan.line.rates import parse_span
    from elephan.line.soak import locked

    check_payload(payload)
    if target is not None and not 1e-18 <= target < 1:
        raise InputError(f"--target {target:g}: 1e-18 or more and below 1 is needed, such as 1e-15")
    asked = _Soak(
        parse_span("--for", length),
        into,
        line,
        rate_,
        mix,
        parse_span("--every", every, least_ns=10**8),
        payload,
        parse_span("--ramp", ramp, least_ns=0),
        target,
        json_,
    )
    from elephan.line.mix import parse_mix

    parse_mix("--mix", mix, has_vlan=vlan is not None)
    with locked(into):
        _soak(asked, Asked(interface, to, far, method, address, vlan, pcp, force, within))


@dataclass(frozen=True)
class _Soak:
    """Options of a soak."""

    span_ns: int
    into: Path
    line: str | None
    rate: str
    mix: str
    series_ns: int
    payload: str
    ramp_ns: int
    target: float | None
    json: bool


def _soak(asked: _Soak, ends: Asked) -> None:
    """Go on with a soak, and write its report."""
    from elephan.line import soak
    from elephan.line.rates import parse_line, parse_rate, parse_span
    from elephan.line.session import STOPPED
    from elephan.line.text import row_text

    measured = sent = lost = 0

    def on_row(row: Row) -> None:
        nonlocal measured, sent, lost
        sent, lost = sent + row.sent, lost + row.lost + row.no_carrier_frames
        if row.lost or row.no_carrier_frames or row.bit_errors or not row.is_answered:
            say(row_text(row))
        if row.time_ns // PROGRESS_NS > measured:
            measured = row.time_ns // PROGRESS_NS
            say(f"{duration(row.time_ns / 1e9)}: {sent:.4g} frames sent, {pluralize(lost, 'frame')} lost")

    with ends.session() as session:
        line_bps = parse_line("--line", asked.line, session.info["rate_bps"], ends.interface)
        frames = frames_of(asked.mix, session)
        rate_bps = parse_rate("--rate", asked.rate, line_bps)
        settings = soak.Settings(
            session.to,
            line_bps,
            rate_bps,
            frames.sizes,
            frames.name,
            asked.payload,
            asked.series_ns,
            ends.vlan,
            ends.pcp,
            ends.interface,
            asked.ramp_ns,
        )
        within_ns = parse_span("--within", ends.within)

        def answers() -> bool:
            found = session.answers(within_ns)
            say(f"{session.to}: the receiver {'answers again' if found else 'does not answer'}")
            return found

        length = duration(asked.span_ns / 1e9)
        say(f"sending {frames} frames at {rate(rate_bps)} of the line, until {length} are measured")
        facts = {"port": session.info, "receiver": session.far}
        found = soak.measure(session.send, settings, asked.into, asked.span_ns, facts, on_row, answers)
        described = facts_of(session, line_bps, asked.payload, asked.ramp_ns)
    page, faults = _soak_page(found, asked, described)
    if asked.json:
        parts = [
            {"part": part.number, "start": part.start.isoformat(), "span_ns": part.span_ns, **dict(part.facts)}
            for part in found.parts
        ]
        totals, (payload, whole) = found.totals(), found.totals().bounds
        rates = {"payload": asdict(payload), "line": asdict(whole)}
        summary = {**asdict(found.settings), "totals": asdict(totals), "bit_error_rate": rates, "parts": parts}
        emit(line_test.as_json(summary))
    else:
        line_test.show_page(page)
    line_test.write_page(page, asked.into / "report.html")
    is_complete = found.span_ns > asked.span_ns - soak.LEAST_NS
    if found.ended == STOPPED and not is_complete:
        say("stopped early; the same command continues")
        raise typer.Exit(130)
    if found.ended is not None and not is_complete:
        raise RunError(f"{session.why_ended(found.ended)}; the same command continues")
    if faults:
        raise RunError(", ".join(faults))


def _soak_page(found: Soak, asked: _Soak, described: list[tuple[str, str]]) -> tuple[Page, list[str]]:
    """Return the report's content, and the faults of the line."""
    from elephan.line import text
    from elephan.line.figures import soak_figures
    from elephan.line.notes import Notes
    from elephan.line.page import Page
    from elephan.line.tables import soak_tables

    totals, bound = found.totals(), found.totals().bounds[1]
    faults = text.faults(totals.sent_lost, totals.no_carrier_frames, totals.bit_errors, totals.wrong_lengths)
    if totals.unknown_rows:
        what = pluralize(totals.unknown_rows, "interval")
        faults.append(f"the receiver did not count in {what}: nothing is known of them")
    if asked.target is not None and bound.upper > asked.target:
        faults.append(f"bit error rate below {bound.upper:.2e} with 95 %, and the target is {asked.target:g}")
    notes = Notes()
    for part in found.parts:
        if part.outcome is not None:
            notes.add(part.outcome)
    lines = notes.lines()
    if totals.unknown_rows:
        what = f"{pluralize(totals.unknown_rows, 'interval')}, with {pluralize(totals.unknown_frames, 'frame')} sent"
        lines.append(
            f"The receiver did not answer in {what}, and not later: nothing is known of them. They count neither as "
            "measured nor as received."
        )
    later = totals.unanswered_rows - totals.unknown_rows
    if later:
        what = pluralize(later, "interval")
        lines.append(f"The receiver did not answer in {what}, but later: its counts of them are with a later point's.")
    if any(part.outcome is None for part in found.parts):
        lines.append("A part was killed: it counts by its points, without those frames that were under way.")
    lost = f"{pluralize(totals.line_lost, 'frame')} of {totals.sent + totals.no_carrier_frames:.4g} lost"
    lead = f"{lost} in {duration(totals.span_ns / 1e9)}; bit error rate below {bound.upper:.2e} with 95 %."
    title = f"Line {described[0][1].partition(',')[0]}: soak"
    load = f"{found.settings.frames} frames at {rate(found.settings.rate_bps)} of the line"
    facts = [*described, ("load", load)]
    return Page(title, lead, soak_tables(found), soak_figures(found), facts, lines), faults
