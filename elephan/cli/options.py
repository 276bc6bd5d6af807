"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from elephan.errors import InputError
from elephan.writability import why_not_writable


def writable(folder: Path | None) -> Path | None:
    """Return `folder` when files can be written there, and leave no trace. Raises `InputError`.

    Asked before a run that may take hours, not after it.
    """
    if folder is None:
        return None
    reason = why_not_writable(folder)
    if reason is not None:
        raise InputError(f"--out {folder}: cannot write there: {reason}")
    return folder


File = Annotated[Path, typer.Argument(metavar="FILE", help="The scenario, a TOML file.", show_default=False)]

Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key, dotted: path.loss=1e-3, flow.congestion_control=cubic. May be repeated.",
    ),
]

StoreAt = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where results are kept: a database URL, or a file for SQLite. "
        "Default: $ELEPHAN_STORE, else ~/.local/share/elephan/results.sqlite.",
        show_default=False,
    ),
]

Seed = Annotated[int | None, typer.Option(metavar="N", min=0, help="First seed.", show_default=False)]

Again = Annotated[bool, typer.Option("--again", help="Run again what is in the store already.")]

NoReport = Annotated[bool, typer.Option("--no-report", help="No HTML, no plots.")]

Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="How many runs go at once, and cores that a run alone may use. Default: all; on the backend kernel 1.",
        show_default=False,
    ),
]

On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="BACKEND",
        help="Where it runs: sim, kernel (this machine's own TCP, as root), hosts (between two machines by SSH), or "
        "several: sim,kernel.",
    ),
]

Hosts = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        metavar="LEFT,RIGHT",
        help="With --on hosts: two names of elephan hosts. Default: the scenario's.",
        show_default=False,
    ),
]

RateLimit = Annotated[
    str | None,
    typer.Option(
        "--rate-limit", metavar="RATE", help="With --on hosts: most that a run sends, at any time.", show_default=False
    ),
]

MaxTime = Annotated[
    str | None,
    typer.Option("--max-time", metavar="TIME", help="With --on hosts: end a run after that.", show_default=False),
]

MaxRtt = Annotated[
    str | None,
    typer.Option(
        "--max-rtt",
        metavar="TIME",
        help="With --on hosts: stop when a small flow beside the run takes longer.",
        show_default=False,
    ),
]

MaxLoss = Annotated[
    float | None,
    typer.Option(
        "--max-loss",
        metavar="PROBABILITY",
        help="With --on hosts: stop when a small flow beside the run loses more.",
        show_default=False,
    ),
]

Yes = Annotated[
    bool, typer.Option("--yes", help="With --on hosts: fill the path without a question, whoever else uses it.")
]

Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Where report and plots go.", show_default=False, callback=writable),
]


class Group(TyperGroup):
    """Commands whose list has the whole first paragraph of their help: click's own list cuts it off."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """See typer."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        texts = {name: command.help or "" for name, command in commands.items() if command is not None}
        rows = [(name, " ".join(text.split("\n\n")[0].split())) for name, text in texts.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
