"""`elephan hosts`: machines that SSH reaches, for runs between two of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from elephan.cli.console import emit

app = typer.Typer(help="Machines that SSH reaches, to measure the path between two of them.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As `list` shows it.")]

AsJson = Annotated[bool, typer.Option("--json", help="As JSON, and nothing else.")]


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name from now on, such as nyc.")],
    destination: Annotated[
        str, typer.Argument(metavar="USER@HOST", help="As ssh takes it; an alias of your ssh configuration, too.")
    ],
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="ADDRESS",
            help="Address at which other hosts reach it. Default: that at which ssh does.",
            show_default=False,
        ),
    ] = None,
    ports: Annotated[
        str | None,
        typer.Option(
            "--ports",
            metavar="FIRST-LAST",
            help="Ports at which it may receive, as its firewall has them. Default: as its kernel chooses.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Give a machine a name. Nothing is sent to it; port, key and jump host come from your ssh configuration."""
    from elephan.hosts import Book

    book = Book.read()
    host = book.add(name, destination, address, ports)
    emit(f"{host.name}: {host.destination} ({book.file}); elephan hosts check {host.name} looks at it")


@app.command("list")
def list_(json_: AsJson = False) -> None:
    """List the machines by name."""
    from elephan.hosts import Book

    book = Book.read()
    if json_:
        emit(json.dumps([{"name": host.name, **host.as_dict()} for host in book], indent=1))
        return
    width = max((len(host.name) for host in book), default=0)
    for host in book:
        rest = {key: value for key, value in host.as_dict().items() if key != "ssh"}
        emit("  ".join([f"{host.name:<{width}}", host.destination, *(f"{key} {value}" for key, value in rest.items())]))


@app.command()
def remove(name: Name) -> None:
    """Forget a machine's name. Nothing is done to the machine."""
    from elephan.hosts import Book

    host = Book.read().remove(name)
    emit(f"{host.name}: forgotten ({host.destination})")


@app.command()
def check(
    name: Name,
    towards: Annotated[
        str | None,
        typer.Option("--towards", metavar="NAME", help="Also the way to this other host.", show_default=False),
    ] = None,
    cost: Annotated[
        bool,
        typer.Option(
            "--cost",
            help="Also what packets cost both hosts, as keys of a scenario: with --towards. It fills the path between "
            "them, in both directions, for half a minute.",
        ),
    ] = False,
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="TIME",
            help="With --cost: time that each of 16 transfers is measured. Default: 1s.",
            show_default=False,
        ),
    ] = None,
    rate_limit: Annotated[
        str | None,
        typer.Option(
            "--rate-limit", metavar="RATE", help="With --cost: most that a transfer sends.", show_default=False
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --cost: fill the path without a question, whoever else uses it.")
    ] = False,
    json_: AsJson = False,
) -> None:
    """Say what a machine is: kernel, limits, network, clock, and what a run may do there.

    The agent, a file of about 10 MB in ~/.cache/elephan, is sent first where it is not there. Nothing else is changed.
    """
    from elephan.backends.hosts import programs
    from elephan.cli import host_cost
    from elephan.hosts import Book, check
    from elephan.hosts.agent import connected
    from elephan.hosts.facts import address_of

    plan = host_cost.planned(name, towards, cost, time, rate_limit, yes)
    book = Book.read()
    host = book.find(name)
    address = None
    if towards is not None:
        with connected(book.find(towards)) as other:
            address = address_of(other)
    with connected(host) as agent:
        facts = check.facts_of(agent, address)
        for_programs, lines = programs.look(agent), programs.as_lines(agent)
    if not json_:
        for line in [*check.as_lines(facts), *lines]:
            emit(line)
    measured = [] if plan is None or towards is None else host_cost.measured([host, book.find(towards)], plan)
    if json_:
        about = {**check.as_json(facts), "programs": for_programs}
        emit(json.dumps({**about, "cost": host_cost.as_json(measured)} if measured else about, indent=1))
    for line in [] if json_ else host_cost.as_lines(measured):
        emit(line)
    host_cost.require_told(measured)


@app.command()
def install(name: Name) -> None:
    """Install the agent at a path that root alone may change, for a line of sudoers(5). Your login there needs root, or
    sudo without a password.
    """
    from elephan.hosts import Book
    from elephan.hosts.agent import connected
    from elephan.hosts.boot import INSTALLED

    host = Book.read().find(name)
    with connected(host, install=True):
        emit(f"{host.name}: {INSTALLED}; in sudoers there: USER ALL=(root) NOPASSWD: {INSTALLED}")


@app.command()
def clean(name: Name) -> None:
    """Undo what runs that were killed have left on a machine: sysctls, congestion controls, programs' folders, old
    agents' files.
    """
    from elephan.errors import RunError
    from elephan.hosts import Book
    from elephan.hosts.agent import connected
    from elephan.units import pluralize

    host = Book.read().find(name)
    with connected(host) as agent:
        done = agent.ask("clean")
        older = agent.session.removed
    for what in ("restored", "unregistered", "removed"):
        for one in done[what]:
            emit(f"{what} {one}")
    if older:
        emit(f"removed {pluralize(older, 'file')} of older agents")
    for one in done["changed_since"]:
        emit(f"left unchanged: {one}, which was set by someone else since")
    # A run that goes on, or an agent that hangs: nobody else can tell.
    problems = [*done["failed"], *(_held(one) for one in done["held"])]
    if problems:
        raise RunError(f"{host.name}: " + "; ".join(problems))
    emit(f"{host.name}: cleaned" if older or any(done.values()) else f"{host.name}: nothing is left")


def _held(living: Mapping[str, Any]) -> str:
    process, changes = living["process"], ", ".join(living["changes"])
    return f"{changes}: of a run that goes on (process {process}); if nobody waits for it: kill -9 {process} there"
