"""`elephan line test`: test methods that people know."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from elephan.cli.console import console, emit, say
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
    ReportFile,
    To,
    Vlan,
    Within,
    check_payload,
    check_report,
    facts_of,
    frames_of,
)
from elephan.cli.options import (
    Again,
    Changes,
    File,
    Hosts,
    MaxLoss,
    MaxRtt,
    MaxTime,
    RateLimit,
    StoreAt,
    Yes,
)
from elephan.errors import InputError, RunError
from elephan.units import duration, pluralize, rate, share

if TYPE_CHECKING:
    from elephan.line.methods.rfc6349 import TcpRun
    from elephan.line.page import Page
    from elephan.line.session import Session
    from elephan.line.tables import Table
    from elephan.line.trial import Outcome, Trial
    from elephan.record import Record

app = typer.Typer(help="Test methods that people know.", no_args_is_help=True)

T = TypeVar("T")

LONGEST_NS = 7 * 86400 * 10**9
"""Longest stream that `ber` begins by itself: a soak keeps what it has when it is interrupted."""
LEAST_NS = 10**8
"""Shortest further stream of `ber`."""
STREAMS = 5
"""Most streams of `ber`."""

Tries = Annotated[
    int, typer.Option(min=1, help="Trials at one rate, until one is not limited by generator or receiver.")
]
LeftOut = Annotated[
    str, typer.Option(metavar="SHARE", help="Frames that the generator may leave out in a trial that counts.")
]
Drain = Annotated[str, typer.Option(help="Wait for late frames after each trial (RFC 2544, 23: 2s).")]


@app.command()
def rfc2544(
    interface: Interface,
    to: To = "auto",
    far: Far = None,
    line: LineRate = None,
    tests: Annotated[
        str, typer.Option(metavar="LIST", help="Of throughput, latency, loss and back-to-back.")
    ] = "throughput,latency,loss,back-to-back",
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Frame sizes with check sequence. Default: 64, 128, 256, 512, 1024, 1280, 1518 B, and the longest "
            "that the MTU takes.",
            show_default=False,
        ),
    ] = None,
    trial: Annotated[str, typer.Option(help="Duration of a trial for throughput and loss (24).")] = "60s",
    resolution: Annotated[str, typer.Option(help="Step between rates of the search, of the line's rate.")] = "0.1%",
    latency: Annotated[str, typer.Option(help="Duration of a stream for latency (26.2).")] = "120s",
    latency_repeat: Annotated[int, typer.Option(help="Repetitions of it (26.2).", min=1)] = 20,
    burst: Annotated[str, typer.Option(help="Longest burst (26.4).")] = "2s",
    burst_repeat: Annotated[int, typer.Option(help="Repetitions of the search for it (26.4).", min=1)] = 50,
    quick: Annotated[
        bool, typer.Option("--quick", help="5 s for each trial and stream, one repetition of each, a step of 1%.")
    ] = False,
    least: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE", help="Fail where a throughput is below this share of the line's rate.", show_default=False
        ),
    ] = None,
    payload: Payload = "crpat",
    ramp: Ramp = "1s",
    drain: Drain = "2s",
    tries: Tries = 3,
    left_out: LeftOut = "0%",
    vlan: Vlan = None,
    pcp: Pcp = None,
    method: Method = None,
    address: Address = None,
    force: Force = False,
    within: Within = "2s",
    json_: AsJson = False,
    report: ReportFile = None,
) -> None:
    """Throughput, latency, frame loss and back-to-back frames by RFC 2544, for each frame size.

    A trial in which the generator left frames out, or the receiver dropped what was lost, says nothing of the line: it
    is repeated, and if it stays so the result is "at least". Exit code 1 where a size has no throughput at all, or one
    below --least.
    """
    from elephan.line.figures import rfc2544_figures
    from elephan.line.methods.rfc2544 import RESULTS, TESTS, Plan, Result, Throughput, measure, span_ns
    from elephan.line.mix import Mix, parse_sizes
    from elephan.line.page import Page
    from elephan.line.rates import PPM, RATE_MIN, parse_line, parse_share, parse_span
    from elephan.line.tables import rfc2544_tables
    from elephan.line.trial import Verdict

    wanted = [name.strip() for name in tests.split(",")]
    for name in wanted:
        if name not in TESTS:
            raise InputError(f"--tests {name}: some of {', '.join(TESTS)} are needed")
    check_payload(payload)
    check_report(report)
    parse_sizes("--sizes", sizes, 1500, vlan is not None)
    least_ppm = None if least is None else parse_share("--least", least)
    allowed_ppm = parse_share("--left-out", left_out, least_ppm=0)
    plan = Plan(
        1,
        payload,
        parse_span("--trial", "5s" if quick else trial),
        parse_share("--resolution", "1%" if quick else resolution, least_ppm=10),
        parse_span("--latency", "5s" if quick else latency),
        1 if quick else latency_repeat,
        parse_span("--burst", burst),
        1 if quick else burst_repeat,
        parse_span("--ramp", ramp, least_ns=0),
        parse_span("--drain", drain),
        pcp,
    )
    results: list[Result] = []
    with Asked(interface, to, far, method, address, vlan, pcp, force, within).session() as session:
        line_bps = parse_line("--line", line, session.info["rate_bps"], interface)
        lengths = parse_sizes("--sizes", sizes, session.mtu_bytes, session.has_vlan)
        for size in lengths:
            session.check("--sizes", Mix.of(size))
        plan = replace(plan, line_bps=line_bps)
        if line_bps < 10 * RATE_MIN:
            raise InputError(f"--line: {rate(line_bps)}; 10kbit/s or more is needed: a tenth of it is tested too")
        if line_bps * plan.resolution_ppm // PPM < RATE_MIN:
            step = f"{plan.resolution_ppm / 10**4:g}% of {rate(line_bps)}"
            raise InputError(f"--resolution: {step} is below 1 kbit/s; a larger step is needed")
        if sizes is None and session.has_vlan:
            say("with a tag the shortest frames have 68 B, not 64 B")
        say(f"this takes at most {duration(span_ns(lengths, plan, wanted, tries) / 1e9)}")
        watch = _Watch(tries, allowed_ppm)
        stopped = watch.collect(measure(watch.patient(session.run), lengths, plan, wanted, watch.on_trial), results)
        facts = facts_of(session, line_bps, payload, plan.ramp_ns)
    throughputs = [one for one in results if isinstance(one, Throughput)]
    failed = [
        f"{one.frame_bytes} B: {share(one.share)} of the line"
        + ("" if one.limit is Verdict.LOST else f" ({one.limit.value}: undecided)")
        for one in throughputs
        if (least_ppm is not None and one.share * PPM < least_ppm) or not one.rate_bps
    ]
    page = Page(
        f"Line {interface}: RFC 2544",
        _rfc2544_lead(throughputs, watch.notes.lost_trials),
        rfc2544_tables(results),
        rfc2544_figures(results, line_bps),
        facts,
        watch.notes.lines(),
    )
    named = [{"test": RESULTS[type(one)], **_plain(one)} for one in results]
    _show("rfc2544", session, line_bps, named, page, not failed and not stopped, json_, report)
    if stopped:
        say("stopped before its time")
        raise typer.Exit(130)
    if failed:
        asked = "" if least is None else f"; --least is {least}"
        raise RunError("throughput " + ", ".join(failed) + asked)


def _rfc2544_lead(throughputs: Sequence[Any], lost_trials: int) -> str:
    """Return the result in a sentence; `lost_trials` are those of any test in which the line lost frames."""
    from elephan.line.trial import Verdict

    lost = f"it lost frames in {pluralize(lost_trials, 'trial')}"
    if not throughputs:
        return ""
    if all(one.limit is Verdict.PASSED for one in throughputs):
        if lost_trials:
            return f"The line carried its whole rate once at every frame size, and {lost} of other tests."
        return "The line carries its whole rate without loss at every frame size."
    if all(one.limit is not Verdict.LOST for one in throughputs):
        if lost_trials:
            return f"The ends limited the search for the line's rate; {lost}."
        return "The line lost nothing at any rate that the ends reached; the ends limited the test."
    worst = min((one for one in throughputs if one.limit is Verdict.LOST), key=lambda one: one.share)
    return f"The line loses frames above {share(worst.share)} of its rate, at {worst.frame_bytes} B."


@app.command()
def y1564(
    interface: Interface,
    cir: Annotated[
        str,
        typer.Option(metavar="RATE", help="Committed information rate: bits of Ethernet frames.", show_default=False),
    ],
    to: To = "auto",
    far: Far = None,
    line: LineRate = None,
    eir: Annotated[str, typer.Option(metavar="RATE", help="Excess information rate.")] = "0bit/s",
    mix: MixOf = "512",
    loss_ratio: Annotated[str, typer.Option(metavar="SHARE", help="Largest frame loss ratio of the CIR.")] = "0%",
    delay: Annotated[
        str | None, typer.Option(metavar="TIME", help="Largest mean one-way delay.", show_default=False)
    ] = None,
    variation: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Largest delay variation: p99.9 less minimum.", show_default=False),
    ] = None,
    availability: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Least share of available seconds.", show_default=False)
    ] = None,
    tolerance: Annotated[
        str, typer.Option(metavar="SHARE", help="By how much a policer may let more through than CIR + EIR.")
    ] = "1%",
    step: Annotated[str, typer.Option(help="Duration of a step of the configuration test.")] = "60s",
    performance: Annotated[str, typer.Option(help="Duration of the performance test.")] = "15min",
    payload: Payload = "crpat",
    ramp: Ramp = "1s",
    drain: Drain = "2s",
    tries: Tries = 3,
    left_out: LeftOut = "0%",
    vlan: Vlan = None,
    pcp: Pcp = None,
    method: Method = None,
    address: Address = None,
    force: Force = False,
    within: Within = "2s",
    json_: AsJson = False,
    report: ReportFile = None,
) -> None:
    """Service activation like ITU-T Y.1564: committed rate in steps, excess rate, policing, then a performance test.

    One service at a time, frames without colour, no bursts. Exit code 1 where a criterion is not met, or cannot be
    decided since an end or the clocks' error limited the test.
    """
    from elephan.line.figures import y1564_figures
    from elephan.line.methods.y1564 import CIR_STEPS, Plan, Service, Step, measure, policing_bps
    from elephan.line.mix import parse_mix
    from elephan.line.page import Page
    from elephan.line.rates import PPM, RATE_MIN, parse_bit_rate, parse_line, parse_share, parse_span
    from elephan.line.tables import y1564_tables

    check_payload(payload)
    check_report(report)
    parse_mix("--mix", mix, has_vlan=vlan is not None)
    allowed_ppm = parse_share("--left-out", left_out, least_ppm=0)
    cir_bps, eir_bps = parse_bit_rate("--cir", cir), parse_bit_rate("--eir", eir)
    if not cir_bps:
        raise InputError(f"--cir {cir}: a rate above 0 is needed")
    if cir_bps * CIR_STEPS[0] // 100 < RATE_MIN:
        raise InputError(f"--cir {cir}: 4kbit/s or more is needed: the first step sends a quarter of it")
    plan = Plan(
        parse_span("--step", step),
        parse_span("--performance", performance, least_ns=10**9),
        payload,
        parse_span("--ramp", ramp, least_ns=0),
        parse_span("--drain", drain),
    )
    criteria = {
        "loss_ratio": parse_share("--loss-ratio", loss_ratio, least_ppm=0) / PPM,
        "availability": None if availability is None else parse_share("--availability", availability) / PPM,
        "tolerance": parse_share("--tolerance", tolerance, least_ppm=0) / PPM,
        "delay_ns": None if delay is None else parse_span("--delay", delay),
        "variation_ns": None if variation is None else parse_span("--variation", variation),
    }
    steps: list[Step] = []
    with Asked(interface, to, far, method, address, vlan, pcp, force, within).session() as session:
        line_bps = parse_line("--line", line, session.info["rate_bps"], interface)
        frames = frames_of(mix, session)
        service = Service(cir_bps, frames, eir_bps, interface, pcp, **criteria)  # type: ignore[arg-type]
        for option, frame_bps in (("--cir", cir_bps), ("--eir", cir_bps + eir_bps)):
            if frames.line_bps(frame_bps) > line_bps:
                most = rate(frames.frame_bps(line_bps))
                raise InputError(
                    f"{option}: {rate(frame_bps)} of {frames} frames; the line carries at most {most} of them"
                )
        plan = replace(plan, line_bps=line_bps)
        watch = _Watch(tries, allowed_ppm)
        stopped = watch.collect(measure(watch.patient(session.run), service, plan, watch.on_trial), steps)
        facts = facts_of(session, line_bps, payload, plan.ramp_ns)
        facts += [("CIR, EIR", f"{rate(cir_bps)}, {rate(eir_bps)} of {frames} frames")]
    notes = watch.notes.lines()
    if policing_bps(service, line_bps) is None:
        notes.append(
            "The line has no rate clearly beyond the service's with its --tolerance: policing was not tested."
            if policing_bps(service) is not None
            else "No rate of the test is clearly beyond the service's with its --tolerance: policing was not tested."
        )
    failed = [one.name for one in steps if one.passed is False]
    undecided = [one.name for one in steps if one.passed is None]
    parts = [f"not met in {', '.join(failed)}"] if failed else []
    parts += [f"undecided in {', '.join(undecided)}"] if undecided else []
    verdict = "; ".join(parts) or "met in every step"
    page = Page(
        f"Line {interface}: service activation like Y.1564",
        f"What was agreed is {verdict}.",
        y1564_tables(steps),
        y1564_figures(steps),
        facts,
        notes,
    )
    _show("y1564", session, line_bps, steps, page, not failed and not undecided and not stopped, json_, report)
    if stopped:
        say("stopped before its time")
        raise typer.Exit(130)
    if failed or undecided:
        raise RunError(f"what was agreed is {verdict}")


@app.command()
def ber(
    interface: Interface,
    to: To = "auto",
    far: Far = None,
    line: LineRate = None,
    rate_: Rate = "100%",
    mix: MixOf = "paper",
    target: Annotated[float, typer.Option(metavar="RATE", help="Bit error rate that the line must be below.")] = 1e-12,
    length: Annotated[
        str | None,
        typer.Option(
            "--duration",
            help="Default: as long as it takes to show the target with 95 %, if no error comes.",
            show_default=False,
        ),
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
    report: ReportFile = None,
) -> None:
    """Bit error rate with its confidence: no error in n bits is a rate below 3/n, with 95 %.

    A card drops frames with a wrong check sequence, so that each lost frame counts as an error too. Exit code 1 where
    the rate is above the target, or too few bits were sent to tell.
    """
    from elephan.line.methods.ber import bit_errors, bits_for, span_ns_for
    from elephan.line.mix import parse_mix
    from elephan.line.page import Page
    from elephan.line.rates import parse_line, parse_rate, parse_span
    from elephan.line.session import BUSY, STOPPED
    from elephan.line.tables import ber_tables
    from elephan.line.trial import Trial

    check_payload(payload)
    check_report(report)
    parse_mix("--mix", mix, has_vlan=vlan is not None)
    if not 1e-18 <= target < 1:
        raise InputError(f"--target {target:g}: 1e-18 or more and below 1 is needed, such as 1e-12")
    own_ns = None if length is None else parse_span("--duration", length)
    ramp_ns = parse_span("--ramp", ramp, least_ns=0)
    with Asked(interface, to, far, method, address, vlan, pcp, force, within).session() as session:
        line_bps = parse_line("--line", line, session.info["rate_bps"], interface)
        rate_bps = parse_rate("--rate", rate_, line_bps)
        frames = frames_of(mix, session)
        # A part more, for the last frames: whole ones are sent.
        span_ns = own_ns or span_ns_for(target, frames, rate_bps) * 1001 // 1000 + 1
        if own_ns is None and span_ns > LONGEST_NS:
            takes = f"{span_ns / 86400e9:,.0f} days at {rate(rate_bps)} of the line"
            raise InputError(f"--target {target:g}: it takes {takes}; name a --duration, or use elephan line soak")
        outcomes: list[Outcome] = []
        for _ in range(1 if own_ns else STREAMS):
            say(f"sending {frames} frames at {rate(rate_bps)} of the line for {duration(span_ns / 1e9)}")
            outcomes.append(session.send(Trial(frames, rate_bps, span_ns, payload=payload, ramp_ns=ramp_ns, pcp=pcp)))
            found = bit_errors(outcomes, target)
            # Frames that the generator left out are sent in a stream more, and bits that an error makes needed.
            left = bits_for(target, found.line.errors) - found.line.bits
            span_ns = max(LEAST_NS, left * 10**9 // frames.frame_bps(rate_bps) + 1)
            decided = found.passed is not None or left <= 0 or span_ns > LONGEST_NS
            if decided or outcomes[-1].ended is not None or outcomes[-1].received is None:
                break
        facts = facts_of(session, line_bps, payload, ramp_ns)
    outcome = outcomes[-1]
    if outcome.ended is not None and outcome.ended.startswith(BUSY):
        raise RunError(session.why_ended(outcome.ended))
    if outcome.received is None:
        raise RunError(f"{session.to}: the receiver gave no counts: does elephan line receive still run there?")
    watch = _Watch()
    for one in outcomes:
        watch.notes.add(one)
    bound = found.line
    counted = f"{pluralize(bound.errors, 'error')} in {bound.bits:.4g} bits"
    page = Page(
        f"Line {interface}: bit error rate",
        f"The bit error rate is below {bound.upper:.2e} with 95 %: {counted}.",
        ber_tables(found),
        facts=facts,
        notes=watch.notes.lines(),
    )
    results = {**asdict(found), "outcomes": [one.as_json() for one in outcomes]}
    _show("ber", session, line_bps, results, page, found.passed, json_, report)
    if outcome.ended == STOPPED:
        say("stopped before its time")
        raise typer.Exit(130)
    if outcome.ended is not None:
        raise RunError(session.why_ended(outcome.ended))
    if found.no_carrier_frames:
        raise RunError(f"{pluralize(found.no_carrier_frames, 'frame')} not sent without a carrier")
    if found.passed is False:
        raise RunError(f"the bit error rate is above {bound.lower:.2e} with 95 %; the target is {target:g}")
    if found.passed is None:
        more = bits_for(target, bound.errors)
        few = "too few bits to be significant"
        hint = f"{more:.3g} bits without another error would show it" if more > bound.bits else few
        raise RunError(f"undecided: below {bound.upper:.2e} with 95 %, and the target is {target:g}; {hint}")


@app.command()
def tcp(
    file: File,
    on: Annotated[str, typer.Option("--on", metavar="BACKEND", help="Where it runs: sim, kernel or hosts.")] = "sim",
    set_: Changes = None,
    bottleneck: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="Rate of the slowest line, as rfc2544 found it. Default: the scenario's.",
            show_default=False,
        ),
    ] = None,
    windows: Annotated[
        str, typer.Option(metavar="LIST", help="Windows, of the bandwidth-delay product.")
    ] = "25%,50%,100%,200%",
    connections: Annotated[
        str,
        typer.Option(metavar="LIST", help="Connections that share the window; the windows are tried with the first."),
    ] = "1,4",
    least: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Fail where a window of 100 % or more has less than this share of the path's largest throughput.",
            show_default=False,
        ),
    ] = None,
    store: StoreAt = None,
    again: Again = False,
    hosts: Hosts = None,
    rate_limit: RateLimit = None,
    max_time: MaxTime = None,
    max_rtt: MaxRtt = None,
    max_loss: MaxLoss = None,
    yes: Yes = False,
    json_: AsJson = False,
    report: ReportFile = None,
) -> None:
    """TCP throughput of a scenario's path by RFC 6349: by window and connections, with efficiency and buffer delay.

    A light flow measures the baseline round-trip time, then each window has a run of the scenario's length. Its one
    flow carries bulk data, its sweep is left out. Exit code 1 below --least.
    """
    from elephan import api
    from elephan.cli.run import host_options
    from elephan.line.figures import tcp_figures
    from elephan.line.methods.rfc6349 import baseline, measure
    from elephan.line.page import Page
    from elephan.line.rates import PPM, parse_bit_rate, parse_share
    from elephan.line.tables import tcp_tables
    from elephan.sweep.progress import Bars

    if on not in ("sim", "kernel", "hosts"):
        raise InputError(f"--on {on}: one of sim, kernel, hosts is needed")
    check_report(report)
    shares = _list("--windows", windows, "%", "such as 25%,50%,100%,200%", 10_000)
    numbers = _list("--connections", connections, "", "such as 1,4", 1000)
    least_ppm = None if least is None else parse_share("--least", least)
    rate_bps = None if bottleneck is None else parse_bit_rate("--bottleneck", bottleneck)
    if rate_bps == 0:
        raise InputError(f"--bottleneck {bottleneck}: a rate above 0 is needed")
    options = host_options(on, hosts, rate_limit, max_time, max_rtt, max_loss, yes)
    # The first of several runs asks for all of them.
    agreed = None if options is None else replace(options, agreed=True)
    asked = options
    own = list(set_ or [])

    def run(changes: Mapping[str, str]) -> Record:
        nonlocal asked
        keys = [*own, "sweep=", "run.repetitions=1", *(f"{key}={value}" for key, value in changes.items())]
        done = api.run(file, keys, on=on, store=store, again=again, watcher=Bars(), hosts=asked, say=say)
        asked = agreed
        found: Record = done.records[0]
        return found

    path = baseline(run, rate_bps)
    runs: list[TcpRun] = []
    for one in measure(run, path, shares, numbers):
        runs.append(one)
        say(f"window of {_load(one)}: {rate(one.goodput_bps)}")
    notes = list(dict.fromkeys(note for one in runs for note in one.notes))
    if on == "hosts" and rate_bps is None:
        notes.append("The bottleneck is the scenario's: what is expected of the path, and not measured (--bottleneck).")
    failed = [
        one
        for one in runs
        if least_ppm is not None and one.window_per_cent >= 100 and one.goodput_bps * PPM < path.ideal_bps * least_ppm
    ]
    best = max(runs, key=lambda one: one.goodput_bps)
    of_all = f"{share(best.goodput_bps / path.ideal_bps)} of what the path could carry"
    page = Page(
        f"TCP throughput of {file.name} on {on}: RFC 6349",
        f"TCP reaches {rate(best.goodput_bps)}, {of_all}, with a window of {_load(best)}.",
        tcp_tables(path, runs),
        tcp_figures(path, runs),
        [("scenario", str(file)), ("backend", on), ("runs", ", ".join(one.record for one in runs))],
        notes,
    )
    if json_:
        of_path = {**asdict(path), "bdp_bytes": path.bdp_bytes, "ideal_bps": path.ideal_bps}
        found = {"test": "tcp", "path": of_path, "passed": not failed, "results": runs, "notes": notes}
        emit(as_json(found))
    else:
        show_page(page)
    if report is not None:
        write_page(page, report)
    if failed:
        below = ", ".join(f"{_load(one)}: {share(one.goodput_bps / path.ideal_bps)}" for one in failed)
        raise RunError(f"TCP stays below {least} of what the path could carry, at windows of {below}")


def _load(one: TcpRun) -> str:
    return f"{one.window_per_cent} % over {pluralize(one.connections, 'connection')}"


def _list(option: str, text: str, ending: str, example: str, most: int) -> list[int]:
    """Return the whole numbers of a list. Raises `InputError`."""
    numbers = []
    for part in text.split(","):
        number = part.strip().removesuffix(ending)
        if not (part.strip().endswith(ending) and number.isdecimal() and 1 <= int(number[:9]) <= most):
            raise InputError(f"{option} {text}: whole numbers of 1 to {most} are needed, {example}")
        numbers.append(int(number))
    return list(dict.fromkeys(numbers))


class _Watch:
    """Progress on the terminal, and faults of the ends for the report."""

    def __init__(self, tries: int = 1, allowed_ppm: int = 0) -> None:
        from elephan.line.notes import Notes

        self.notes = Notes()
        self._tries = tries
        self._allowed_ppm = allowed_ppm

    def patient(self, run: Callable[[Trial], Outcome]) -> Callable[[Trial], Outcome]:
        """Return a `run` that repeats trials that an end limited."""
        from elephan.line.methods.retry import patient

        return patient(
            run, self._tries, self._allowed_ppm, lambda trial, outcome: self.on_trial("again", trial, outcome)
        )

    def on_trial(self, name: str, trial: Trial, outcome: Outcome) -> None:
        """Say how a trial went."""
        from elephan.line.text import ratio

        self.notes.add(outcome)
        frames = "" if trial.frames is None else f", {pluralize(trial.frames, 'frame')}"
        lost = f", {ratio(outcome.loss_ratio)} lost" if outcome.lost else ""
        say(f"{name}: {trial.mix} at {rate(trial.rate_bps)}{frames}: {outcome.verdict.value}{lost}")

    def collect(self, found: Iterator[T], into: list[T]) -> bool:
        """Take results as they come; return True if a signal ended them."""
        from elephan.core import native

        try:
            for one in found:
                into.append(one)
        except native.Stopped:
            return True
        return False


def _show(
    kind: str,
    session: Session,
    line_bps: int,
    results: Any,
    page: Page,
    passed: bool | None,
    json_: bool,
    report: Path | None,
) -> None:
    """Print the results, and write the report."""
    if json_:
        whole = {
            "test": kind,
            "port": session.info,
            "receiver": session.far,
            "line_bps": line_bps,
            "passed": passed,
            "results": results,
            "notes": page.notes,
        }
        emit(as_json(whole))
    else:
        show_page(page)
    if report is not None:
        write_page(page, report)


def show_page(page: Page) -> None:
    """Print a page's sentence, tables and notes to the terminal."""
    show_tables(page.tables)
    if page.lead:
        emit(page.lead)
    for note in page.notes:
        say(f"note: {note}")


def show_tables(tables: Sequence[Table]) -> None:
    """Print tables to the terminal."""
    from rich.table import Table as RichTable

    for table in tables:
        shown = RichTable(box=None, header_style="bold", pad_edge=False, title=table.title, title_justify="left")
        for number, head in enumerate(table.heads):
            shown.add_column(head, justify="left" if number == 0 else "right")
        for row in table.rows:
            shown.add_row(*row)
        console().print(shown)
        console().print()


def write_page(page: Page, file: Path) -> None:
    """Write a report."""
    from elephan.line.report import write

    paths = write(page, file)
    say(f"{paths[0]}, {pluralize(len(paths) - 1, 'figure')} beside it")


def as_json(value: Any) -> str:
    """Return results as JSON; what is not known or not finite is null."""
    return json.dumps(_plain(value), indent=1, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.name.lower()
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
