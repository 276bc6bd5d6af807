"""`elephan run` and `elephan check`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elephan.cli.console import console, counted, emit, say
from elephan.cli.options import (
    Again,
    Changes,
    File,
    Hosts,
    MaxLoss,
    MaxRtt,
    MaxTime,
    NoReport,
    On,
    Out,
    RateLimit,
    Seed,
    StoreAt,
    Workers,
    Yes,
)
from elephan.errors import InputError
from elephan.printable import printable
from elephan.units import pluralize

if TYPE_CHECKING:
    from elephan.api import Results
    from elephan.backends.hosts import HostOptions

DEFAULT_OUT = Path("out")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(run)
    app.command()(check)


def run(
    file: File,
    on: On = "sim",
    set_: Changes = None,
    seed: Seed = None,
    json: Annotated[bool, typer.Option("--json", help="Print one array of records, and nothing else.")] = False,
    out: Out = None,
    store: StoreAt = None,
    workers: Workers = None,
    pcap: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a pcapng capture, one per run.", show_default=False),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Simulate all of a long copy instead of extrapolating it (run.exact).")
    ] = False,
    again: Again = False,
    no_report: NoReport = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would run and how long it would take; store nothing.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Simulate on the workers of this dask scheduler, such as tcp://HOST:8786; results are stored here.",
            show_default=False,
        ),
    ] = None,
    hosts: Hosts = None,
    rate_limit: RateLimit = None,
    max_time: MaxTime = None,
    max_rtt: MaxRtt = None,
    max_loss: MaxLoss = None,
    yes: Yes = False,
) -> None:
    """Run a scenario: print a table, store every run, write a report with plots.

    What is in the store already is not run again: a sweep that was stopped goes on where it was.
    """
    from elephan import api
    from elephan.sweep.progress import Bars
    from elephan.sweep.sampling import Looking

    changes = [*(set_ or []), *(["run.exact=true"] if exact else [])]
    options = host_options(on, hosts, rate_limit, max_time, max_rtt, max_loss, yes)
    if dry_run:
        planned = api.dry_run(
            file,
            changes,
            on=on,
            seed=seed,
            workers=workers,
            store=store,
            again=again,
            looking=Looking(),
            cluster=cluster,
            hosts=options,
        )
        emit(planned.as_json() if json else "\n".join(printable(line) for line in planned.lines()))
        return
    done = api.run(
        file,
        changes,
        on=on,
        seed=seed,
        workers=workers,
        store=store,
        again=again,
        pcap=pcap,
        watcher=Bars(),
        looking=Looking(),
        cluster=cluster,
        hosts=options,
        say=lambda text: say(f"note: {text}"),
    )
    if json:
        emit(as_json(done))
    else:
        show(done)
    if not no_report and (out is not None or not json):
        from elephan.report.html import folder_of

        write(done, out or folder_of(done.records, DEFAULT_OUT))


def host_options(
    on: str,
    hosts: str | None,
    rate_limit: str | None = None,
    max_time: str | None = None,
    max_rtt: str | None = None,
    max_loss: float | None = None,
    yes: bool = False,
) -> HostOptions | None:
    """Return the options of the backend hosts; None where it is not asked for. Raises `InputError`."""
    given = {
        "--hosts": hosts,
        "--rate-limit": rate_limit,
        "--max-time": max_time,
        "--max-rtt": max_rtt,
        "--max-loss": max_loss,
    }
    if "hosts" not in [name.strip() for name in on.split(",")]:
        lost = next((option for option, value in given.items() if value is not None), "--yes" if yes else None)
        if lost is not None:
            raise InputError(f"{lost}: is for --on hosts")
        return None
    from elephan.backends.hosts import HostOptions

    ask = question if sys.stdin.isatty() and sys.stderr.isatty() else None
    return HostOptions.parsed(hosts, rate_limit, max_time, max_rtt, max_loss, yes, ask)


def question(text: str) -> bool:
    """Ask on the terminal; return whether the answer was yes."""
    return typer.confirm(f"{printable(text)}. Go on?", default=False, err=True)


def as_json(results: Results) -> str:
    """Return one JSON array of records, one record per line."""
    return "[" + ",\n ".join(record.to_json() for record in results.records) + "]"


def show(results: Results) -> None:
    """Print the tables, and list the runs that the store already had."""
    from elephan.report.table import print_table

    print_table(results.table(), console())
    other = results.other_traffic()
    if other is not None:
        print_table(other, console())
    reused = sum(outcome.reused for outcome in results.outcomes)
    if reused:
        were, them = ("was", "it") if len(results) == 1 else ("were", "them")
        say(f"{reused} of {pluralize(len(results), 'run')} {were} in the store; --again runs {them} anew")


def write(results: Results, folder: Path) -> None:
    """Write the report and print its path."""
    with counted("drawing") as on_progress:
        written = results.report(folder, on_progress)
    say(f"report: {written.html} ({pluralize(len(written.images), 'plot')} beside it)")


def check(file: File, on: On = "sim", set_: Changes = None, hosts: Hosts = None) -> None:
    """Validate a scenario and the points of its sweep, without running it: all, or 1,000 of more.

    With --on kernel, also whether this machine's kernel can do what its flows ask for; with --on hosts, whether the two
    hosts can, which are asked.
    """
    from elephan import api
    from elephan.sweep.sampling import Looking, swept

    scenario = api.check(
        file, set_ or [], on=on, looking=Looking(), hosts=host_options(on, hosts), say=lambda text: say(f"note: {text}")
    )
    if scenario.is_looked_at_whole:
        emit(f"{printable(str(file))}: valid, {swept(scenario)}")
    else:
        looked = f"{len(scenario.looked_at):,} of {scenario.runs.combinations:,} points"
        emit(
            f"{printable(str(file))}: valid as far as {looked} show (the first, the last, values of each axis, others "
            f"evenly spread), {swept(scenario)}; each is validated when its turn comes"
        )
