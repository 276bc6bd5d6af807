"""`elephan web`: the pages of monitor, runs and ledger; its tokens."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from elephan.cli.console import emit, say
from elephan.cli.options import Group, StoreAt
from elephan.errors import CoreMissing, InputError

app = typer.Typer(
    help="Show monitored paths, runs and ledgers in a browser, until Ctrl-C.", invoke_without_command=True
)
token = typer.Typer(help="Tokens to log in with.", no_args_is_help=True)
app.add_typer(token, name="token", cls=Group)

TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--tokens",
        metavar="FILE",
        help="File of tokens. Default: ~/.local/share/elephan/web-tokens.json.",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Person or program that uses it.", show_default=False)]


class RoleName(StrEnum):
    """Roles of a token."""

    READER = "reader"
    OPERATOR = "operator"


@app.callback()
def web(
    context: typer.Context,
    listen: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS:PORT",
            help="Where to listen; beyond this machine only with --tls-cert, --tls-key and --tokens.",
        ),
    ] = "127.0.0.1:8080",
    store: StoreAt = None,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate chain, PEM.", show_default=False)
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, PEM.", show_default=False)] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Ask for a token of this file, which `token add` writes.", show_default=False
        ),
    ] = None,
) -> None:
    """Show monitored paths, runs and ledgers in a browser, until Ctrl-C."""
    if context.invoked_subcommand is not None:
        return
    from elephan.store.place import Place
    from elephan.web.listen import Listen, check

    place = Listen.of(listen)
    check(place, tls_cert, tls_key, tokens)
    if store is not None and not Place.of(store).exists:
        raise InputError(
            f"--store {store}: there is no such store; `elephan monitor run --store {store}` would make it"
        )
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise CoreMissing("elephan web needs FastAPI and uvicorn: pip install 'elephan[web]'") from error
    from elephan.web.serve import serve

    serve(store, place, tls_cert, tls_key, tokens, say)


@token.command()
def add(
    name: Name,
    role: Annotated[
        RoleName, typer.Option(help="reader sees everything; operator also asks for path tests.")
    ] = RoleName.READER,
    tokens: TokenFile = None,
) -> None:
    """Make a token and print it: this is the only time, the file has its hash."""
    from elephan.web.tokens import add as add_token
    from elephan.web.tokens import default_file

    emit(add_token(tokens or default_file(), name, role.value))


@token.command("list")
def list_(tokens: TokenFile = None) -> None:
    """List tokens by name, role and date."""
    from elephan.web.tokens import default_file, read

    for one in read(tokens or default_file()):
        emit(f"{one.name}  {one.role}  {one.created}")


@token.command()
def remove(name: Name, tokens: TokenFile = None) -> None:
    """Remove a token; its sessions end at once."""
    from elephan.web.tokens import default_file
    from elephan.web.tokens import remove as remove_token

    remove_token(tokens or default_file(), name)
