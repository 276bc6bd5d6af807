"""`elephan cc`: list, show, make and check congestion controls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elephan.cli.console import console, counted, emit, say
from elephan.cli.options import Group, Out
from elephan.errors import InputError

if TYPE_CHECKING:
    from elephan.congestion_control import CongestionControl
    from elephan.kernel.deployment import Needs

DEFAULT = "show"
"""Command of `elephan cc ...` when the word after it is no command."""


class _ShowIsDefault(Group):
    """`elephan cc` and `elephan cc reno` are short for `elephan cc show` and `... show reno`."""

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
    root.add_typer(app, name="cc")


@app.command(DEFAULT)
def show(
    name: Annotated[
        str | None, typer.Argument(help="One congestion control, or a .c file of your own.", show_default=False)
    ] = None,
    json: AsJson = False,
    text: Annotated[
        bool, typer.Option("--text", help="Of one congestion control: only what its file says, no simulation.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Of one congestion control: a parameter to simulate. May be repeated."
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option(
            "--path", metavar="FILE", help="Of one congestion control: a scenario, for the sysctls of its path."
        ),
    ] = None,
    out: Out = None,
) -> None:
    """List all congestion controls; of one show its equations, its window after a loss and its response to loss, both
    simulated.

    Below stand the commands that put it into use in a kernel, with --path also the sysctls.
    """
    from elephan.cli import cc_text
    from elephan.congestion_control import congestion_controls, find

    if name is None:
        if text or set_ or path or out is not None:
            option = "--text" if text else "--set" if set_ else "--path" if path else "--out"
            raise InputError(f"{option} is for one congestion control: elephan cc NAME")
        if json:
            emit(cc_text.as_json([cc_text.described(cc) for cc in congestion_controls()]))
        else:
            cc_text.print_list(congestion_controls(), console())
        return
    cc = find(name)
    curves = None
    if text and (set_ or path):
        option = "--set changes what is simulated" if set_ else "--path is for what comes after it"
        raise InputError(f"{option}: without --text")
    needs = None if path is None else _needs(path)
    if not text:
        from elephan.loss_response.curves import simulate

        with counted(f"simulating {cc.name}") as on_progress:
            curves = simulate(cc, on_progress, set_ or [])
    use = [] if text else _deployment(cc, set_ or [], needs)
    if json:
        emit(cc_text.as_json([cc_text.described(cc, curves) | {"in_use": use}]))
    else:
        cc_text.print_one(cc, curves, console())
        if use:
            cc_text.print_use(use, console())
    if out is not None:
        _write(cc, curves, use, out)


def _needs(file: Path) -> Needs:
    """Return the window that a scenario's path needs. Raises `InputError`."""
    from elephan.kernel.deployment import needs_of
    from elephan.scenario import load

    return needs_of(load(file).points()[0].to_spec())


def _deployment(cc: CongestionControl, settings: list[str], needs: Needs | None) -> list[str]:
    """Return the lines that put a congestion control into use. Raises `InputError`."""
    from elephan.kernel import values_of
    from elephan.kernel.deployment import deployment_of, text_of

    return text_of(deployment_of(cc, values_of(cc.path or cc.name, settings)), needs)


def _write(cc: CongestionControl, curves: Any, use: list[str], folder: Path) -> None:
    from elephan.loss_response.page import write
    from elephan.units import pluralize

    if curves is None:
        raise InputError("--out writes what is simulated: without --text")
    page, images = write(cc, curves, folder, use)
    say(f"page: {page} ({pluralize(len(images), 'plot')} beside it)")


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the congestion control, a-z, 0-9 and _; NAME.c is written.")],
) -> None:
    """Write a commented C file that works: Reno with one parameter, and what to edit. Nothing is overwritten."""
    from elephan.congestion_control.new import create

    path = create(name)
    shown = path if path.is_absolute() or len(path.parts) > 1 else f"./{path}"
    emit(f"wrote {path}; next: elephan cc {shown}")


@app.command()
def check(
    name: Annotated[
        str, typer.Argument(metavar="FILE", help="A .c file of your own, or a built-in congestion control.")
    ],
    json: AsJson = False,
) -> None:
    """Compile a congestion control for the simulator and for BPF, and put it through this kernel's verifier where that
    is possible.

    Exit code 2 when it does not pass. What this machine lacks (clang, root, BTF) is said and is no failure. Nothing
    is registered in the kernel and nothing stays there.
    """
    from elephan.cli import cc_text
    from elephan.congestion_control import CannotCompile, find, verify

    try:
        steps = verify.check(find(name))
    except CannotCompile as error:
        if not json:
            raise
        steps = [verify.Step("simulator", "failed", str(error), tuple(error.problems))]
    if json:
        emit(cc_text.as_json([cc_text.step_as_dict(step) for step in steps]))
    else:
        cc_text.print_check(name, steps, console())
    if any(step.state == "failed" for step in steps):
        raise typer.Exit(2)
