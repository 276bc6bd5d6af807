"""The root of the command, and the one place where an error becomes a line and an exit code.

Exit codes: 0 done; 1 a result could not be written, read or reproduced; 2 the input is wrong; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from elephan.cli.console import drop_output, emit, failed
from elephan.cli.options import Group
from elephan.errors import ElephanError, InputError
from elephan.renamed import COMMANDS, OPTIONS
from elephan.writability import is_disk_fault

MODULES = {
    "run": "run",
    "check": "run",
    "compare": "compare",
    "trace": "trace",
    "schema": "schema",
    "cc": "cc",
    "results": "results",
    "paper": "paper",
    "kernel": "kernel",
    "path": "path",
    "hosts": "hosts",
    "disk": "disk",
    "iscsi": "iscsi",
    "gateway": "gateway",
    "fc": "fc",
    "line": "line",
    "measure": "measure",
    "diagnose": "diagnose",
    "advise": "advise",
    "copy": "copy",
    "backup": "backup",
    "monitor": "monitor",
    "web": "web",
}
"""The module of `elephan.cli` that has a command, in the order of the help: loaded for that command alone."""


class _Lazy(Group):
    """The commands by `MODULES`. A module adds its own by `register`, or is a group by its `app`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """See typer."""
        return list(MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """See typer."""
        if cmd_name in COMMANDS:
            raise InputError(f'no command "{cmd_name}": it is called "elephan {COMMANDS[cmd_name]}" now')
        for name in [cmd_name] if cmd_name in MODULES else MODULES:
            # All of them for a name that there is not: one of them may be near.
            if name not in self.commands:
                self.commands.update(_loaded(name))
        return self.commands.get(cmd_name)


def _loaded(name: str) -> Mapping[str, Any]:
    """Load the module that has a command, and return its commands."""
    module = import_module(f"elephan.cli.{MODULES[name]}")
    holder = typer.Typer(rich_markup_mode=None)
    # So that it is a group also where it has one command.
    holder.callback()(lambda: None)
    if hasattr(module, "register"):
        module.register(holder)
    else:
        holder.add_typer(module.app, name=name, cls=Group)
    return typer.main.get_group(holder).commands


app = typer.Typer(
    name="elephan",
    cls=_Lazy,
    help="What will this path give my storage traffic, and which settings get the most out of it?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain: what draws panels takes longer to load than all the rest.
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from elephan.core import build_digest, version

        emit(f"elephan {version()} (core {build_digest()})")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print version and core.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that belong to no subcommand."""


def call(arguments: list[str]) -> int:
    """Run the command with `arguments` and return its exit code. An error that is not the user's keeps its traceback.
    """
    try:
        # Not by typer's own main, which ends at Ctrl-C without a word.
        command = typer.main.get_command(app)
        with command.make_context("elephan", arguments) as context:
            command.invoke(context)
        sys.stdout.flush()
        return 0
    except typer.Exit as end:
        return end.exit_code
    except ElephanError as error:
        return failed(str(error), error.exit_code)
    except TyperException as error:
        return wrong_arguments(error)
    except (typer.Abort, KeyboardInterrupt):
        return failed("stopped", 130)
    except BrokenPipeError:
        drop_output()
        return 0
    except OSError as error:
        # Writing to other files has errors of its own.
        if not is_disk_fault(error):
            raise
        drop_output()
        return failed(f"cannot write to stdout: {error.strerror}", 1)


def wrong_arguments(error: TyperException) -> int:
    """Print the fault of the arguments; without any, the help has been asked for."""
    if type(error).__name__ == "NoArgsIsHelpError":
        emit(str(error))
        return 2
    message = error.format_message()
    now = OPTIONS.get(getattr(error, "option_name", ""))
    context = getattr(error, "ctx", None)
    known = [option for parameter in context.command.params for option in parameter.opts] if context else []
    return failed(f"{message.rstrip('.')}. It is called {now} now." if now in known else message, 2)
