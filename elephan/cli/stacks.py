"""`elephan stacks`: list, show, make and check congestion controls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from elephan.cli.console import console, counted, emit, say
from elephan.cli.options import Out
from elephan.errors import InputError

if TYPE_CHECKING:
    from elephan.kernel.deployment import Needs
    from elephan.stack import Stack

DEFAULT = "show"
"""What `elephan stacks ...` means when the word after it is no command."""


class _ShowIsDefault(TyperGroup):
    """`elephan stacks` and `elephan stacks reno` are short for `elephan stacks show` and `... show reno`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See typer."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_ShowIsDefault,
    help="Congestion controls: list all, show one (the word `show` may be left out), write and check one of your own.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one array, and nothing else.")]


def register(root: typer.Typer) -> None:
    """Add the commands."""
    root.add_typer(app, name="stacks")


@app.command(DEFAULT)
def show(
    name: Annotated[str | None, typer.Argument(help="One stack, or a .c file of your own.", show_default=False)] = None,
    json: AsJson = False,
    text: Annotated[bool, typer.Option("--text", help="Of one stack: only what its file says, no simulation.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Of one stack: a parameter to simulate. May be repeated."),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option("--path", metavar="FILE", help="Of one stack: a scenario, for the sysctls of its path."),
    ] = None,
    out: Out = None,
) -> None:
    """List all stacks; of one show its equations, its window after a loss and its response to loss, both simulated.

    Below stand the commands that put it into use in a kernel, with --path also the sysctls.
    """
    from elephan.cli import stack_text
    from elephan.stack import find, stacks

    if name is None:
        if text or set_ or path or out is not None:
            option = "--text" if text else "--set" if set_ else "--path" if path else "--out"
            raise InputError(f"{option} is for one stack: elephan stacks NAME")
        if json:
            emit(stack_text.as_json([stack_text.described(stack) for stack in stacks()]))
        else:
            stack_text.print_list(stacks(), console())
        return
    stack = find(name)
    curves = None
    if text and (set_ or path):
        option = "--set changes what is simulated" if set_ else "--path is for what comes after it"
        raise InputError(f"{option}: without --text")
    needs = None if path is None else _needs(path)
    if not text:
        from elephan.stack.curves import simulate

        with counted(f"simulating {stack.name}") as tell:
            curves = simulate(stack, tell, set_ or [])
    use = [] if text else _deployment(stack, set_ or [], needs)
    if json:
        emit(stack_text.as_json([stack_text.described(stack, curves) | {"in_use": use}]))
    else:
        stack_text.print_one(stack, curves, console())
        if use:
            stack_text.print_use(use, console())
    if out is not None:
        _write(stack, curves, use, out)


def _needs(file: Path) -> Needs:
    """Return the window that a scenario's path needs. Raises `InputError`."""
    from elephan.kernel.deployment import needs_of
    from elephan.scenario import load

    return needs_of(load(file).points()[0].to_spec())


def _deployment(stack: Stack, settings: list[str], needs: Needs | None) -> list[str]:
    """Return the lines that say how to put a stack into use. Raises `InputError`."""
    from elephan.kernel import values_of
    from elephan.kernel.deployment import deployment_of, text_of

    return text_of(deployment_of(stack, values_of(stack.path or stack.name, settings)), needs)


def _write(stack: Stack, curves: Any, use: list[str], folder: Path) -> None:
    from elephan.report.units import things
    from elephan.stack.page import write

    if curves is None:
        raise InputError("--out writes what is simulated: without --text")
    page, images = write(stack, curves, folder, use)
    say(f"page: {page} ({things(len(images), 'plot')} beside it)")


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the stack, a-z, 0-9 and _; NAME.c is written.")],
) -> None:
    """Write a commented C file that works: Reno with one parameter, and what to edit. Nothing is overwritten."""
    from elephan.stack.new import create

    path = create(name)
    shown = path if path.is_absolute() or len(path.parts) > 1 else f"./{path}"
    emit(f"wrote {path}; next: elephan stacks {shown}")


@app.command()
def check(
    name: Annotated[str, typer.Argument(metavar="FILE", help="A .c file of your own, or a built-in stack.")],
    json: AsJson = False,
) -> None:
    """Compile a stack for the simulator and for BPF, and put it through this kernel's verifier where that is possible.

    Exit code 2 when it does not pass. What this machine lacks (clang, root, BTF) is said and is no failure. Nothing
    is registered in the kernel and nothing stays there.
    """
    from elephan.cli import stack_text
    from elephan.stack import CannotCompile, find, verify

    try:
        steps = verify.check(find(name))
    except CannotCompile as error:
        if not json:
            raise
        steps = [verify.Step("simulator", "failed", str(error), tuple(error.problems))]
    if json:
        emit(stack_text.as_json([stack_text.step_as_dict(step) for step in steps]))
    else:
        stack_text.print_check(name, steps, console())
    if any(step.state == "failed" for step in steps):
        raise typer.Exit(2)
