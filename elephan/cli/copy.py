"""`elephan copy`: arguments in, progress and receipt out; what it does is done by elephan.copy."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from elephan.cli.console import emit, say
from elephan.errors import ElephanError, InputError
from elephan.units import parse_share

if TYPE_CHECKING:
    from elephan.copy.api import CopyRequest
    from elephan.copy.text import Progress

LINE_S = 0.5
"""Time between two progress lines on a terminal, s."""
PLAIN_S = 10.0
"""The same where stderr is no terminal."""
RECEIPTS_SHOWN = 20
"""Receipts that `list` shows without `--all`."""
WORDS = ("verify", "list", "forget")
"""Commands behind `elephan copy`; a source of such a name is written ./verify."""

words = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
"""The commands behind `elephan copy`."""


class _Copy(TyperCommand):
    """`elephan copy SRC... DST`, or one of `WORDS`."""

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """See typer."""
        if args and args[0] in WORDS:
            command = typer.main.get_group(words).commands[args[0]]
            return command.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "copy",
        cls=_Copy,
        no_args_is_help=True,
        epilog="elephan copy verify RECEIPT checks a side again; elephan copy list shows copies, elephan copy forget "
        "NAME gives an unfinished one up. A source of such a name is written ./verify.",
    )(copy)


def copy(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC... DST",
            help="PATH, or HOST:PATH with a host of `elephan hosts` or of ssh. SRC/ stands for what is in the folder.",
            show_default=False,
        ),
    ],
    streams: Annotated[
        int | None,
        typer.Option("--streams", metavar="N", help="Data streams. Default: 4, or as advised.", show_default=False),
    ] = None,
    transport: Annotated[
        str, typer.Option("--transport", metavar="tcp|quic", help="QUIC runs any control without rights.")
    ] = "tcp",
    cc: Annotated[
        str | None,
        typer.Option(
            "--cc",
            metavar="NAME|FILE.c",
            help="Congestion control of the sender: its kernel's, elephan's, or your own. Default: its kernel's own.",
            show_default=False,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a parameter of --cc. May be repeated."),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option("--window", metavar="SIZE", help="Of each stream. Default: as the kernel grows it.",
                     show_default=False),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE", help="Most that all streams send together.", show_default=False),
    ] = None,
    auto: Annotated[
        bool | None,
        typer.Option(
            "--auto/--no-auto",
            help="Measure the path first, choose by simulation, and steer. Default: for 1 GB or more.",
            show_default=False,
        ),
    ] = None,
    harm: Annotated[
        str | None,
        typer.Option(
            "--harm",
            metavar="SHARE",
            help="Most that a flow beside the copy may lose, such as 5%. Default: as four ordinary flows take.",
            show_default=False,
        ),
    ] = None,
    over_ssh: Annotated[
        bool, typer.Option("--over-ssh", help="Carry data through ssh, where no port can be opened.")
    ] = False,
    listen: Annotated[
        str,
        typer.Option("--listen", metavar="auto|local|remote", help="Side that takes connections; auto: remote first."),
    ] = "auto",
    plaintext: Annotated[bool, typer.Option("--plaintext", help="Do not encrypt data.")] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="PATTERN", help="Exclude names: *.tmp, or cache/*. May be repeated."),
    ] = None,
    mirror: Annotated[
        bool, typer.Option("--mirror", help="Remove from DST what SRC does not have, if all else went well.")
    ] = False,
    max_removals: Annotated[
        int | None,
        typer.Option(
            "--max-removals",
            metavar="N",
            min=0,
            help="With --mirror: remove nothing rather than more than N entries. Default: as many as SRC has.",
            show_default=False,
        ),
    ] = None,
    checksum: Annotated[bool, typer.Option("--checksum", help="Compare bytes, not size and time.")] = False,
    whole: Annotated[bool, typer.Option("--whole", help="Send files whole that differ, not their chunks.")] = False,
    owners: Annotated[bool, typer.Option("--owners/--no-owners", help="Owners and groups, by number.")] = True,
    xattrs: Annotated[bool, typer.Option("--xattrs/--no-xattrs", help="Extended attributes and ACLs.")] = True,
    sparse: Annotated[bool, typer.Option("--sparse/--no-sparse", help="Holes stay holes.")] = True,
    one_file_system: Annotated[
        bool, typer.Option("--one-file-system", help="Exclude other file systems below a source.")
    ] = False,
    link_to: Annotated[
        str | None,
        typer.Option(
            "--link-to",
            metavar="FOLDER",
            help="Older version at the destination: files that are the same there become hard links.",
            show_default=False,
        ),
    ] = None,
    verify: Annotated[
        str, typer.Option("--verify", metavar="write|read", help="read: read each file back from its disk.")
    ] = "write",
    retry_for: Annotated[
        str, typer.Option("--retry-for", metavar="TIME", help="Try again so long while the path is down.")
    ] = "1h",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be copied, and send nothing.")] = False,
    receipt: Annotated[
        Path | None,
        typer.Option("--receipt", metavar="FILE", help="Write the receipt there, too.", show_default=False),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option("--sign", metavar="KEY", help="Sign the receipt with this SSH key.", show_default=False),
    ] = None,
    detail: Annotated[bool, typer.Option("--detail", help="Show each stream.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Events as JSON, one a line, and nothing else.")] = False,
) -> None:
    """Copy files, trees and block devices to or from another host: verified, resumable, over parallel streams.

    The same command resumes where it was interrupted. Exit codes: 0 done; 1 some files are not copied, or it failed;
    2 wrong input; 130 stopped by Ctrl-C.
    """
    from elephan.copy.request import CopyRequest, Place

    if len(places) < 2:
        raise InputError(f"{places[0]}: a source and a destination are needed: elephan copy SRC... DST")
    for option, value, choices in (
        ("--transport", transport, ("tcp", "quic")),
        ("--listen", listen, ("auto", "local", "remote")),
        ("--verify", verify, ("write", "read")),
    ):
        if value not in choices:
            raise InputError(f"{option} {value}: {', '.join(choices[:-1])} or {choices[-1]} is needed")
    if max_removals is not None and not mirror:
        raise InputError(f"--max-removals {max_removals}: it bounds --mirror, which is missing")
    for text in exclude or []:
        _must_be_utf8("--exclude", text, "write ? for each byte that is none")
    if link_to is not None:
        _must_be_utf8("--link-to", link_to, "give the folder another name, or a link to it that is")
    options: dict[str, Any] = {
        **({"exclude": exclude} if exclude else {}),
        **({"delta": "whole"} if whole else {}),
        **({"link_to": link_to} if link_to else {}),
        **({"max_removals": max_removals} if max_removals is not None else {}),
    }
    flags = {"mirror": mirror, "checksum": checksum, "one_file_system": one_file_system}
    options |= {name: True for name, value in flags.items() if value}
    kept = {"owners": owners, "xattrs": xattrs, "sparse": sparse}
    options |= {name: False for name, value in kept.items() if not value}
    request = CopyRequest(
        sources=[Place.parse(text) for text in places[:-1]],
        destination=Place.parse(places[-1]),
        streams=streams,
        transport=transport,  # type: ignore[arg-type]  # looked at above
        congestion_control=cc,
        parameters=dict(_setting(text) for text in set_ or []),
        options=options,
        rate_bps=None if rate is None else _parsed("--rate", rate, "rate"),
        window_bytes=None if window is None else _parsed("--window", window, "size"),
        auto=auto,
        harm=None if harm is None else _share("--harm", harm),
        over_ssh=over_ssh,
        plaintext=plaintext,
        listen=listen,  # type: ignore[arg-type]  # looked at above
        patience_s=_parsed("--retry-for", retry_for, "span") / 1e9,
        verify=verify,  # type: ignore[arg-type]  # looked at above
        receipt=None if receipt is None else str(receipt),
        sign=None if sign is None else str(sign),
    )
    if dry_run:
        _dry_run(request, json_)
        return
    _copied(request, json_=json_, detail=detail, quiet=quiet)


def _dry_run(request: CopyRequest, json_: bool) -> None:
    from elephan.copy import api
    from elephan.copy.text import dry_run_lines

    found = api.dry_run(request)
    emit(json.dumps(found, indent=1) if json_ else "\n".join(dry_run_lines(found)))


def _copied(request: CopyRequest, *, json_: bool, detail: bool, quiet: bool) -> None:
    from elephan.copy import api
    from elephan.copy.text import Progress, done_lines, stopped_line
    from elephan.core import native
    from elephan.signals import termination_requested

    shown = _Shown(Progress(), detail, quiet or json_)

    def watch(event: dict[str, Any]) -> None:
        if json_:
            emit(json.dumps(event))
        shown.take(event)

    with termination_requested() as wait_for_termination:
        try:
            outcome = api.copy(request, watch, wait_for_termination)
        except native.Stopped:
            shown.clear()
            say(stopped_line(shown.durable_bytes))
            raise typer.Exit(130) from None
        except ElephanError as error:
            if json_:
                emit(json.dumps({"event": "failed", "text": str(error), "exit_code": error.exit_code}))
            raise
        finally:
            shown.clear()
    if not json_:
        emit("\n".join(done_lines(outcome.receipt, outcome.file)))
    if outcome.exit_code:
        raise typer.Exit(outcome.exit_code)


class _Shown:
    """Progress for a person: on a terminal one line that changes, else a line now and then."""

    def __init__(self, progress: Progress, detail: bool, quiet: bool) -> None:
        self._progress = progress
        self._detail = detail
        self._quiet = quiet
        self._is_terminal = sys.stderr.isatty()
        self._last_s = time.monotonic()
        self._is_there = False
        self.durable_bytes: int | None = None

    def take(self, event: dict[str, Any]) -> None:
        """Take an event."""
        from elephan.copy.text import event_line

        self._progress.take(event)
        if event["event"] == "progress":
            self.durable_bytes = event["durable_bytes"]
            if not self._quiet and time.monotonic() - self._last_s >= (LINE_S if self._is_terminal else PLAIN_S):
                self._last_s = time.monotonic()
                self._show()
        # Faults are listed at the end.
        elif not self._quiet and event["event"] != "fault" and (line := event_line(event)) is not None:
            self.clear()
            say(line)

    def _show(self) -> None:
        lines = [self._progress.line(), *(self._progress.detail() if self._detail else [])]
        if not self._is_terminal or self._detail:
            say("\n".join(lines))
            return
        self.clear()
        sys.stderr.write(lines[0])
        sys.stderr.flush()
        self._is_there = True

    def clear(self) -> None:
        """Take the line away."""
        if self._is_there:
            # To the beginning of the line, and erase to its end (ECMA-48, EL).
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._is_there = False


@words.command()
def verify(
    file: Annotated[Path, typer.Argument(metavar="RECEIPT", help="File of the receipt.", show_default=False)],
    side: Annotated[str, typer.Option("--side", metavar="source|destination", help="Side to check.")] = "destination",
    read: Annotated[
        bool, typer.Option("--read", help="Drop each file from the page cache first: its disk is read.")
    ] = False,
    signers: Annotated[
        Path | None,
        typer.Option(
            "--signers",
            metavar="FILE",
            help="Allowed signers (ssh-keygen): the receipt must be signed by one of them.",
            show_default=False,
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option("--identity", metavar="NAME", help="With --signers: and by this one.", show_default=False),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="As JSON, and nothing else.")] = False,
) -> None:
    """Check a side of a finished copy again: the receipt's signature, and the hash of each file at that host.

    Exit code 1 where something differs.
    """
    from elephan.copy.text import verified_lines
    from elephan.copy.verify import verified
    from elephan.core import native
    from elephan.signals import termination_requested

    if side not in ("source", "destination"):
        raise InputError(f"--side {side}: source or destination is needed")
    with termination_requested() as wait_for_termination:
        try:
            found = verified(file, side, read, signers, identity, wait_for_termination)
        except native.Stopped:
            say("stopped before its end")
            raise typer.Exit(130) from None
    emit(json.dumps(found, indent=1) if json_ else "\n".join(verified_lines(found)))
    if found["differences"]:
        raise typer.Exit(1)


@words.command("list")
def list_(
    is_all: Annotated[bool, typer.Option("--all", help="All receipts, not the newest 20 alone.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="As JSON, all receipts, and nothing else.")] = False,
) -> None:
    """List copies that are not done, and receipts of those that are, newest first."""
    from elephan.copy import state
    from elephan.copy.text import listed_lines

    unfinished = [about for _, about in state.all_of(state.unfinished())]
    receipts = [{**about, "file": str(path)} for path, about in state.all_of(state.receipts())]
    receipts.sort(key=lambda one: str(one["ended"]), reverse=True)
    if json_:
        emit(json.dumps({"unfinished": unfinished, "receipts": receipts}, indent=1))
        return
    for line in listed_lines(unfinished, receipts, None if is_all else RECEIPTS_SHOWN):
        emit(line)


@words.command()
def forget(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `list` shows it.", show_default=False)],
) -> None:
    """Give an unfinished copy up: remove its parts and journals at both hosts. What is whole stays."""
    from elephan.copy.forget import forgotten
    from elephan.units import size

    done = forgotten(name)
    emit(f"{done['copy'][:12]}: forgotten, {size(done['bytes'])} of parts removed")


def _must_be_utf8(option: str, text: str, remedy: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{option} {text!r}: is no UTF-8: {remedy}") from None


def _setting(text: str) -> tuple[str, str]:
    key, found, value = text.partition("=")
    if not (found and key):
        raise InputError(f"--set {text}: KEY=VALUE is needed")
    return key, value


def _parsed(option: str, text: str, what: str) -> int:
    from elephan.core import native

    parse = {"rate": native.parse_rate, "size": native.parse_size, "span": native.parse_span}[what]
    try:
        return parse(text)
    except ValueError as error:
        raise InputError(f"{option} {text}: {error}") from error


def _share(option: str, text: str) -> float:
    value = parse_share(text)
    if value is None or not 0 < value < 1:
        raise InputError(f"{option} {text}: a share above 0% and below 100% is needed, such as 5%")
    return value


