"""Options of line tests, and the session that they ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elephan.cli.console import say
from elephan.errors import InputError
from elephan.units import duration, rate

if TYPE_CHECKING:
    from elephan.line.mix import Mix
    from elephan.line.session import End, Session

Interface = Annotated[
    str, typer.Argument(metavar="INTERFACE", help="Ethernet interface at this end of the line.", show_default=False)
]
To = Annotated[
    str,
    typer.Option(metavar="MAC|auto", help="The receiver, an `elephan line receive`. auto: the one that answers."),
]
Far = Annotated[
    str | None,
    typer.Option(
        metavar="INTERFACE",
        help="Be the receiver too, on another interface of this machine, for a line that comes back here.",
        show_default=False,
    ),
]
LineRate = Annotated[
    str | None,
    typer.Option(
        "--line",
        metavar="RATE|TYPE",
        help="Rate of the line, such as 1Gbit/s or 10gbe-wan-phy. Default: that of the interface's link.",
        show_default=False,
    ),
]
Rate = Annotated[
    str,
    typer.Option(
        "--rate",
        metavar="SHARE|RATE",
        help="Rate that frames with preamble and gap take: a share of the line's, or bit/s.",
    ),
]
MixOf = Annotated[
    str,
    typer.Option(
        "--mix",
        metavar="NAME|LIST",
        help="Frames: imix (64, 594, 1518 B at 7:4:1), paper (90 % 1518 B, 10 % 64 B), sweep (RFC 2544's sizes), or "
        "SIZE:WEIGHT with commas between. Sizes have the check sequence, and with --vlan the tag: 68 B at least.",
    ),
]
Payload = Annotated[str, typer.Option(metavar="PATTERN", help="Payload: crpat, cjpat, prbs31, zeros, ones or counter.")]
Ramp = Annotated[str, typer.Option(help="Time over which the rate rises before what is counted; 0s: none.")]
Vlan = Annotated[int | None, typer.Option(help="Virtual LAN of the frames. Default: no tag.", show_default=False)]
Pcp = Annotated[
    int | None, typer.Option(help="Priority of the tag, 0 to 7. Default: 0.", show_default=False, min=0, max=7)
]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Way to the interface: af-xdp or packet-mmap. Default: the best that it takes.",
        show_default=False,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="MAC",
        help="This end's own address, locally administered. Default: made of the interface's.",
        show_default=False,
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Test an interface that is in use: whoever uses it loses what it carries.")
]
Within = Annotated[str, typer.Option(help="Longest wait for the receiver's answer.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one object, and nothing else.")]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE.html",
        help="Write a page that needs nothing else, and a PNG of each figure beside it.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Asked:
    """Ends of the line by the command's options."""

    interface: str
    to: str = "auto"
    far: str | None = None
    method: str | None = None
    address: str | None = None
    vlan: int | None = None
    pcp: int | None = None
    force: bool = False
    within: str = "2s"

    def ends(self) -> tuple[End, End | None]:
        """Return this end, and the far one if it is here too. Raises `InputError`."""
        from elephan.line.session import End

        if self.pcp is not None and self.vlan is None:
            raise InputError(f"--pcp {self.pcp}: a priority is a part of the tag; name its --vlan")
        near = End(self.interface, self.method, self.address, self.vlan, self.force)
        far = None if self.far is None else End(self.far, self.method, None, self.vlan, self.force)
        return near, far

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open both ends; the main thread's signals end what goes on. Raises `InputError`, `RunError`.

        Ends the command with exit code 130 where a signal ended it before there was a result.
        """
        from elephan.core import native
        from elephan.line.rates import parse_span
        from elephan.line.session import opened
        from elephan.signals import termination_requested

        near, far = self.ends()
        within_ns = parse_span("--within", self.within)
        to = None if self.to == "auto" else self.to
        try:
            with (
                termination_requested() as wait_for_termination,
                opened(
                    near,
                    to=to,
                    far=far,
                    within_ns=within_ns,
                    wait_for_termination=wait_for_termination,
                    say=say,
                ) as session,
            ):
                yield session
        except native.Stopped:
            say("stopped")
            raise typer.Exit(130) from None


def frames_of(text: str, session: Session, option: str = "--mix") -> Mix:
    """Return the mix that an option names, for the interfaces of both ends. Raises `InputError`."""
    from elephan.line.mix import least_bytes, parse_mix

    frames = parse_mix(option, text, session.mtu_bytes, session.has_vlan)
    session.check(option, frames)
    if frames.name and session.has_vlan:
        say(f"with a tag the shortest frames of {frames.name} have {least_bytes(has_vlan=True)} B, not 64 B")
    return frames


def check_payload(payload: str) -> str:
    """Return the name of a payload. Raises `InputError`."""
    from elephan.line.trial import PAYLOADS

    if payload not in PAYLOADS:
        raise InputError(f"--payload {payload}: one of {', '.join(PAYLOADS)} is needed")
    return payload


def check_report(file: Path | None) -> Path | None:
    """Return the file of a report if it can be written. Raises `InputError`: asked before a test of hours."""
    if file is None:
        return None
    from elephan.writability import why_not_writable

    if file.suffix != ".html":
        raise InputError(f"--report {file}: a name that ends in .html is needed")
    reason = why_not_writable(file.parent)
    if reason is not None:
        raise InputError(f"--report {file}: cannot write there: {reason}")
    return file


def facts_of(session: Session, line_bps: int, payload: str, ramp_ns: int) -> list[tuple[str, str]]:
    """Return both ends and the load, for a report."""
    near, there = session.info, session.far
    return [
        ("sender", f"{near['interface']}, {near['address']}, by {near['method']}, MTU {near['mtu_bytes']} B"),
        ("receiver", f"{there['interface']}, {there['address']}, by {there['method']}, MTU {there['mtu_bytes']} B"),
        ("rate of the line", rate(line_bps)),
        ("payload", payload),
        ("ramp", duration(ramp_ns / 1e9)),
    ]
