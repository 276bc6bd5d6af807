"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Argument(metavar="FILE", help="The scenario, a TOML file.", show_default=False)]

Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key, dotted: path.loss=1e-3, flow.stack=cubic. May be repeated."
    ),
]

StoreAt = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where results are kept: a database URL, or a file for SQLite. "
        "[default: $ELEPHAN_STORE, else ~/.local/share/elephan/results.sqlite]",
        show_default=False,
    ),
]

Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="How many runs go at once. [default: all cores]", show_default=False),
]

Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Where report and plots go.", show_default=False)
]
