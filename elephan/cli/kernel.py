"""`elephan kernel`: congestion controls in this machine's kernel."""

from __future__ import annotations

from typing import Annotated

import typer

from elephan.cli.console import emit, say

app = typer.Typer(help="Congestion controls into this machine's kernel, for any program.", no_args_is_help=True)


@app.command()
def load(
    what: Annotated[str, typer.Argument(metavar="NAME[=variant]", help="A stack, or a .c file of your own.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter. May be repeated.")
    ] = None,
) -> None:
    """Register a congestion control. It stays until `unload`, `clean` or a restart of the machine."""
    from elephan import kernel

    name, text = kernel.load(what, set_ or [])
    emit(f"{name}: {text}")


@app.command()
def parity(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE.c", help="A stack, or a .c file of your own.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter. May be repeated.")
    ] = None,
) -> None:
    """Compare a stack in this kernel with the same in the simulator, call by call. Exit code 2 when they differ.

    Some 20 s. Connections go over emulated paths in namespaces of their own; nothing stays.
    """
    from elephan.cli import parity_text
    from elephan.kernel import values_of
    from elephan.parity import check as compare
    from elephan.stack import find

    stack = find(name)
    values = values_of(name, set_ or [])
    outcome = compare(stack, values, tell=say)
    for line in parity_text.lines(outcome):
        emit(line)
    if not outcome.same:
        raise typer.Exit(2)


@app.command("list")
def list_() -> None:
    """List what elephan has in the kernel."""
    from elephan import kernel

    for one in kernel.loaded():
        emit(one.name if one.registered else f"{one.name}  unloaded; connections that began before still use it")


@app.command()
def unload(name: Annotated[str, typer.Argument(help="As `list` says, with or without elephan_.")]) -> None:
    """Take one out of the kernel; connections that use it keep it to their end."""
    from elephan import kernel

    emit(f"unloaded {kernel.unload(name)}")


@app.command()
def clean() -> None:
    """Take all of elephan's out of the kernel."""
    from elephan import kernel

    for one in kernel.clean():
        emit(f"unloaded {one.name}")


@app.command()
def default(name: Annotated[str, typer.Argument(help="One of elephan's, or the kernel's own.")]) -> None:
    """Make it the default of new connections in this network namespace, and no other."""
    from elephan import kernel

    before, now = kernel.default(name)
    emit(f"default of this network namespace: {now} (before: {before})")


@app.command()
def check() -> None:
    """Say what this kernel has and lacks. Exit code 2 when nothing can be loaded."""
    from elephan import kernel

    steps = kernel.check()
    for step in steps:
        emit(f"{step.name:13}{'yes' if step.state == 'passed' else 'no':5}{step.text}")
    if any(step.state == "failed" and step.name != "cong_control" for step in steps):
        emit("still works: simulation with all stacks, and `elephan stacks check` as far as this machine goes")
        raise typer.Exit(2)
