"""`elephan path`: a scenario's path on this machine, for any program."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from elephan.cli.console import emit, say
from elephan.cli.options import Changes, File
from elephan.units import duration, pluralize

if TYPE_CHECKING:
    from elephan.path.daemon import Shown

app = typer.Typer(help="A scenario's path on this machine, between two namespaces, for any program.")


@app.command()
def shell(
    file: File,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND ...]", help="What to run. Default: a shell.", show_default=False),
    ] = None,
    set_: Changes = None,
) -> None:
    """Run a program at the sender of a scenario's path, and return its exit code.

    Its connections, and those of the far end, use the congestion control of the scenario's first flow. The far end is
    $ELEPHAN_PATH_FAR; `ip netns exec $ELEPHAN_PATH_FAR_NETNS ...` runs something there. What the path did, and what the
    emulator did wrong, is said at the end. Without root it is done in a user namespace, where this machine lets users
    have one; nothing can be loaded from there, and a line says what is used instead.
    """
    from elephan.path import run, unprivileged

    if os.geteuid() != 0:
        arguments = [*(f"--set={change}" for change in set_ or []), str(file), "--", *(command or [])]
        unprivileged.become("elephan.cli.unprivileged", arguments)

    code, report = run(file, command or [], set_ or [], say)
    say(report.text())
    raise typer.Exit(code)


@app.command()
def up(file: File, set_: Changes = None) -> None:
    """Bring a scenario's path up and leave it there, until `down`."""
    from elephan.path import daemon

    _emit(daemon.up(file, set_ or []))


@app.command()
def show() -> None:
    """List the paths and runs that live on this machine: namespaces, addresses, age, packets so far."""
    from elephan.path import daemon

    for one in daemon.show():
        _emit(one)


@app.command("set")
def set_values(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id that `show` prints, or its beginning.")],
    settings: Annotated[list[str], typer.Argument(metavar="KEY=VALUE ...", help="Keys of the path's scenario file.")],
) -> None:
    """Change a path while it runs: rate, RTT, loss, policer, MTU, background traffic, outage.

    Keys are those of a scenario (path.bandwidth=50Mbit/s path.rtt=80ms path.loss=1e-3 path.policer="none"
    path.mtu=1400B background.rate=30Mbit/s) and link_down=path, link_up=path, background_on=NAME, background_off=NAME.
    Several of one command are changed at one time, or, when one of them is wrong, none. Packets inside stay, but for
    those on a link that goes down.
    """
    from elephan.path import daemon

    _emit(daemon.change(id_, settings))


@app.command()
def down(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id that `show` prints, or its beginning.")],
) -> None:
    """Take a path of `up` down, with what runs in it, and say what it did."""
    from elephan.path import daemon

    emit(daemon.down(id_))


def _emit(one: Shown) -> None:
    emit(f"{one.id}  {one.what}  {one.of}  for {duration(one.age_s)}")
    for namespace, address, sent, received in one.hosts:
        emit(f"  {namespace}  {address}  {pluralize(sent, 'packet')} sent, {pluralize(received, 'packet')} received")
    for name, address in one.routers:
        emit(f"  router {name}  {address}")
    for line in one.values:
        emit(f"  {line}")
    for line in one.remarks:
        emit(f"  {line}")


@app.command()
def clean() -> None:
    """Remove what paths and runs that were killed (kill -9) have left, congestion controls too; no living one's."""
    from elephan.kernel.run_controls import unload_stale
    from elephan.path import clean as remove

    cleaned, living = remove()
    for name in unload_stale():
        emit(f"unloaded {name}")
    emit(
        f"removed {pluralize(cleaned, 'path')}" + (f"; {pluralize(living, 'path')} in use left alone" if living else "")
    )
