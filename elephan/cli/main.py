"""The root of the command, and the one place where an error becomes a line and an exit code.

Exit codes: 0 done; 1 a result could not be written, read or reproduced; 2 the input is wrong; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from elephan.cli import compare, disk, iscsi, kernel, paper, path, results, run, stacks, trace
from elephan.cli.console import drop_output, emit, failed
from elephan.errors import ElephanError
from elephan.places import is_disk_fault

app = typer.Typer(
    name="elephan",
    help="What will this path give my storage traffic, and which settings get the most out of it?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
run.register(app)
compare.register(app)
stacks.register(app)
trace.register(app)
app.add_typer(results.app, name="results")
app.add_typer(paper.app, name="paper")
app.add_typer(kernel.app, name="kernel")
app.add_typer(path.app, name="path")
app.add_typer(disk.app, name="disk")
app.add_typer(iscsi.app, name="iscsi")


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


@app.command()
def schema() -> None:
    """Print the scenario's JSON schema, for editors and checkers."""
    from elephan.scenario.schema import text

    emit(text())


def call(arguments: list[str]) -> int:
    """Run the command with `arguments` and return its exit code. What is no fault of the user keeps its traceback."""
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
        # What is written elsewhere has errors of its own.
        if not is_disk_fault(error):
            raise
        drop_output()
        return failed(f"cannot write to stdout: {error.strerror}", 1)


def wrong_arguments(error: TyperException) -> int:
    """Say what is wrong with the arguments; without any, the help has been asked for."""
    if type(error).__name__ == "NoArgsIsHelpError":
        emit(str(error))
        return 2
    return failed(error.format_message(), 2)
