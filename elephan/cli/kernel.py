"""`elephan kernel`: congestion controls in this machine's kernel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elephan.cli.console import emit, say

if TYPE_CHECKING:
    from elephan.kernel import Removed

app = typer.Typer(help="Congestion controls into this machine's kernel, for any program.", no_args_is_help=True)


@app.command()
def load(
    what: Annotated[
        str, typer.Argument(metavar="NAME[=variant]", help="A congestion control, or a .c file of your own.")
    ],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter. May be repeated.")
    ] = None,
    restricted: Annotated[
        bool, typer.Option("--restricted", help="Only programs with CAP_NET_ADMIN may choose it.")
    ] = False,
) -> None:
    """Register a congestion control. It stays until `unload`, `clean` or a restart of the machine."""
    from elephan import kernel
    from elephan.congestion_control import find

    name, text = kernel.load(what, set_ or [], restricted)
    warned: set[int | None] = set()
    for warning in find(file := what.partition("=")[0]).warnings:
        if warning["line"] not in warned:
            hint = f". {warning['hint']}" if warning["hint"] else ""
            say(f"warning: {file}:{warning['line']}: {warning['what'].rstrip('.')}{hint}")
        warned.add(warning["line"])
    emit(f"{name}: {text}")


@app.command()
def parity(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE.c", help="A congestion control, or a .c file of your own.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter. May be repeated.")
    ] = None,
) -> None:
    """Compare a congestion control in this kernel with the same in the simulator, call by call. Exit code 2 when they
    differ.

    Half a minute on an idle machine. Connections go over emulated paths in namespaces of their own; nothing stays.
    """
    from elephan.cli import parity_text
    from elephan.congestion_control import find
    from elephan.kernel import values_of
    from elephan.parity import check as compare

    cc = find(name)
    values = values_of(name, set_ or [])
    outcome = compare(cc, values, say=say)
    for line in parity_text.lines(outcome):
        emit(line)
    if not outcome.same:
        raise typer.Exit(2)


@app.command("list")
def list_(
    json_: Annotated[bool, typer.Option("--json", help="As JSON, with every parameter.")] = False,
) -> None:
    """List what elephan has in the kernel: name, congestion control and variant, parameters that were set, who uses it
    here."""
    from elephan.cli.kernel_text import as_json, as_lines
    from elephan.kernel import loaded

    everything = loaded()
    if json_:
        emit(as_json(everything))
    else:
        for line in as_lines(everything):
            emit(line)


@app.command()
def unload(
    name: Annotated[str, typer.Argument(help="As `list` says: with or without elephan_, the variant, or CC=variant.")],
) -> None:
    """Take one out of the kernel; connections that use it keep it to their end."""
    from elephan import kernel

    _said(kernel.unload(name))


@app.command()
def clean() -> None:
    """Take all of elephan's out of the kernel, and remove what commands that were killed have left."""
    from elephan import kernel

    _said(kernel.clean())


def _said(removed: Removed) -> None:
    if removed.default:
        emit(f"default of this network namespace: {removed.default[1]} again (was {removed.default[0]})")
    for one in removed.unloaded:
        emit(f"unloaded {one.name}")
    for folder in removed.folders:
        emit(f"removed {folder}")
    for other in removed.elsewhere:
        emit(f"{other.default} stays the default of the network namespace {other.namespace} until another is set there")


@app.command()
def default(
    name: Annotated[str, typer.Argument(help="One of elephan's, or the kernel's own.")],
    host: Annotated[bool, typer.Option("--host", help="Also where this is the host's own network namespace.")] = False,
) -> None:
    """Make it the default of new connections in this network namespace, and no other."""
    from elephan import kernel

    before, now = kernel.default(name, host)
    emit(f"default of this network namespace: {now} (before: {before})")


Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Of another system whose files lie there: nothing is loaded or started.",
        show_default=False,
    ),
]


@app.command()
def enable(
    what: Annotated[
        str, typer.Argument(metavar="NAME[=variant]", help="A congestion control, or a .c file of your own.")
    ],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter. May be repeated.")
    ] = None,
    default: Annotated[
        bool, typer.Option("--default", help="Also make it the default of the machine's connections.")
    ] = False,
    restricted: Annotated[
        bool, typer.Option("--restricted", help="Only programs with CAP_NET_ADMIN may choose it.")
    ] = False,
    root: Root = None,
) -> None:
    """Load a congestion control at every boot, by a systemd unit, and start it now where systemd runs.

    The unit is /etc/systemd/system/elephan-cc-NAME.service; systemd-analyze checks it before it is written.
    """
    from elephan.kernel import boot

    done = boot.enable(what, set_ or [], default, root, restricted)
    emit(f"{done.name}: {done.unit} {'loads it at every boot' if done.changed else 'was enabled already'}")
    if done.started:
        emit(f"{done.name} is loaded{', and the default of the machine' if default else ''}")
    elif root is None:
        emit("systemd does not run here: nothing is loaded before the next boot; elephan kernel load does it now")


@app.command()
def disable(
    what: Annotated[str, typer.Argument(metavar="NAME[=variant]", help="As in `enable`, or as `list` shows it.")],
    root: Root = None,
) -> None:
    """Remove what `enable` wrote, and unload it; connections that use it keep it to their end."""
    from elephan.kernel import boot

    done = boot.disable(what, root)
    emit(f"{done.name}: removed {done.unit}" if done.unit else f"{done.name}: was not enabled")
    if done.removed is not None:
        _said(done.removed)


@app.command()
def check() -> None:
    """Say what this kernel has and lacks. Exit code 2 when nothing can be loaded."""
    from elephan import kernel
    from elephan.kernel.machine import loads

    steps = kernel.check()
    for step in steps:
        emit(f"{step.name:13}{'yes' if step.state == 'passed' else 'no':5}{step.text}")
    if not loads(steps):
        emit("still works: simulation with all congestion controls, and `elephan cc check` as far as this machine goes")
        raise typer.Exit(2)
