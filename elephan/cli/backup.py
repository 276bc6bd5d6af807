"""`elephan backup`: jobs that copy again and again, older versions, restore, RPO and RTO."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elephan.cli.console import console, emit, say
from elephan.cli.options import StoreAt

if TYPE_CHECKING:
    from rich.table import Table

    from elephan.backup.planning import JobForecast
    from elephan.backup.reading import JobView
    from elephan.backup.spec import JobSpec, Spec

app = typer.Typer(help="Back up again and again: jobs, older versions, restore; forecasts of RPO and RTO.",
                  no_args_is_help=True, subcommand_metavar="COMMAND [ARGS]...")  # fmt: skip

COMMANDS = ("run", "status", "restore", "adopt", "forecast", "check", "unit")

Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
Job = Annotated[str, typer.Argument(metavar="JOB", help="A job of the file.", show_default=False)]


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup's file, TOML.", show_default=False)],
) -> None:
    """Take the file, which every command needs: elephan backup FILE run."""
    from elephan.errors import InputError

    if str(file) in COMMANDS and not file.exists():
        raise InputError(f"elephan backup FILE {file}: the file comes first")
    if context.invoked_subcommand is None:
        raise InputError(f"elephan backup {file}: what? one of {', '.join(COMMANDS)}")
    context.obj = file


@app.command()
def run(
    context: typer.Context,
    job: Annotated[str | None, typer.Argument(metavar="JOB", help="With --once.", show_default=False)] = None,
    once: Annotated[bool, typer.Option("--once", help="Run this job now, and end: for timers.")] = False,
    store: StoreAt = None,
) -> None:
    """Run the jobs when they are due, until Ctrl-C or SIGTERM. SIGHUP reads the file again.

    A run that was interrupted resumes where it stopped, also after a kill or a power cut. Times that were missed are
    caught up by one run. With --once: exit code 1 when the run failed or left something out.
    """
    from elephan.backup import daemon
    from elephan.errors import InputError
    from elephan.store.place import default_location

    if (job is None) == once:
        raise InputError("run JOB --once runs one job now; run without both runs all jobs when they are due")
    if job is None:
        daemon.run(context.obj, store or default_location(), say)
        return
    code = daemon.run_once(context.obj, store or default_location(), job, say)
    if code:
        raise typer.Exit(code)


@app.command()
def check(context: typer.Context) -> None:
    """Read a backup's file, and say what is wrong with it."""
    from elephan.backup.config import load
    from elephan.units import pluralize

    spec = load(context.obj)
    say(f"{context.obj}: valid: {pluralize(len(spec.jobs), 'job')}")


@app.command()
def status(
    context: typer.Context,
    job: Annotated[
        str | None, typer.Argument(metavar="JOB", help="Its runs and their attempts.", show_default=False)
    ] = None,
    store: StoreAt = None,
    json_: Json = False,
) -> None:
    """Show each job in a line: its state, its newest run, what that was forecast to take, the data at risk.

    Exit code 1 if a job failed, is late, has faults or has never run, or if the clock was set; with JOB, if that job is
    one.
    """
    from elephan.backup.reading import BackupReader, faults_notes, never_run_line
    from elephan.backup.texts import RPO_RTO, run_line

    spec = _spec(context)
    with BackupReader(store) as reader:
        views = reader.jobs_of(spec)
        if job is not None:
            _known(spec, job)
            found = [view for view in views if view.name == job]
            runs = [row for view in found for row in reader.runs(view.id)]
            if json_:
                emit(json.dumps([{**_plain(row), "attempts": reader.attempts(row["id"])} for row in runs]))
            for view in [] if json_ else found:
                if not view.has_run:
                    emit(never_run_line(view))
            for row in [] if json_ else runs:
                emit(run_line(job, row))
                attempts = reader.attempts(row["id"])
                for one in attempts if len(attempts) > 1 else []:
                    emit(f"  attempt {one['number']}: {one['outcome']}{': ' + one['text'] if one['text'] else ''}")
            if any(view.has_trouble for view in found):
                raise typer.Exit(1)
            return
    has_trouble = any(view.has_trouble for view in views)
    if json_:
        emit(json.dumps([_view_json(view) for view in views]))
        if has_trouble:
            raise typer.Exit(1)
        return
    console().print(_table(views))
    emit(f"{RPO_RTO} At risk: that age now.")
    for view in views:
        for note in (*view.notes, *faults_notes(view)):
            emit(f"{view.name}: {note}")
    if not any(view.has_run for view in views):
        emit(f"backup {spec.name} has not run with {reader.location}: elephan backup {context.obj} run")
    if has_trouble:
        raise typer.Exit(1)


@app.command()
def restore(
    context: typer.Context,
    job: Job,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help='As it was at a local time: "2026-11-26 06:00".', show_default=False),
    ] = None,
    version: Annotated[
        str | None, typer.Option("--version", metavar="NAME", help="This version.", show_default=False)
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="PLACE", help="PATH or HOST:PATH. Default: where it came from.",
                     show_default=False),
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Remove there what the copy does not have.")] = False,
    max_removals: Annotated[
        int | None,
        typer.Option("--max-removals", metavar="N", min=0, show_default=False,
                     help="With --exact: most entries to remove. Default: as many as the copy has."),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option("--of", metavar="ID", show_default=False,
                     help="Versions that another store made; the refusal names its id."),
    ] = None,
    store: StoreAt = None,
) -> None:
    """Copy the newest version, or an older one, back: at any hour, at any rate, verified.

    What is there already is compared byte by byte, and what is written is read back from its disk. Entries that are
    missing from the version, or older than it, are named, and the exit code is 1.
    """
    from elephan.backup.ledger import Ledger
    from elephan.backup.restoring import Restorer
    from elephan.backup.texts import run_line
    from elephan.copy.api import Place
    from elephan.errors import InputError
    from elephan.signals import termination_requested
    from elephan.store.place import default_location

    if at is not None and version is not None:
        raise InputError("--at, --version: one of the two")
    if max_removals is not None and not exact:
        raise InputError("--max-removals: only with --exact")
    spec = _spec(context)
    wanted = _known(spec, job)
    ledger = Ledger(store or default_location(), spec.name)
    try:
        if ledger.job(job) is None:
            ledger.put_job(wanted, "ended", None)
        with termination_requested() as wait:
            restorer = Restorer(
                spec, wanted, ledger, wait, say, version=version, at_s=_moment(at),
                to=None if to is None else Place.parse(to), exact=exact, of=of, max_removals=max_removals,
            )  # fmt: skip
            row = restorer.run()
        for line in restorer.differences:
            emit(f"{job}: {line}")
        emit(run_line(job, row))
        ledger.send()
    finally:
        ledger.close()
    if row["state"] != "done":
        raise typer.Exit(1)


@app.command()
def adopt(context: typer.Context, job: Job, store: StoreAt = None) -> None:
    """Make the versions at a job's destination its own: after a new machine, store or name. No other run may use them.
    """
    from elephan.backup import versions
    from elephan.backup.ledger import Ledger
    from elephan.backup.locks import locked
    from elephan.backup.owner import owner_of
    from elephan.copy.api import Place
    from elephan.errors import InputError
    from elephan.store.place import default_location
    from elephan.units import pluralize

    spec = _spec(context)
    wanted = _known(spec, job)
    if not wanted.has_versions:
        raise InputError(f"job {job} is a mirror, and has no versions")
    ledger = Ledger(store or default_location(), spec.name)
    try:
        with locked(ledger.place, spec.name, job):
            place = Place.parse(wanted.destination)
            with versions.opened(place, owner_of(ledger.place, spec.name, job)) as there:
                count = there.adopt()
    finally:
        ledger.close()
    emit(f"{job}: {pluralize(count, 'version')} adopted")


def _moment(text: str | None) -> float | None:
    from datetime import datetime

    from elephan.errors import InputError

    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f'--at {text}: a time, such as "2026-11-26 06:00" or 2026-11-26T06:00:00Z') from None


@app.command()
def forecast(
    context: typer.Context,
    store: StoreAt = None,
    json_: Json = False,
) -> None:
    """Simulate first copies, runs and restores before the first byte: how long each takes, RPO and RTO.

    RPO: the most data, as time, that a disaster takes. RTO: the time until all is restored.
    """
    from elephan.backup.ledger import Ledger
    from elephan.backup.planning import forecast_backup
    from elephan.backup.texts import RPO_RTO
    from elephan.store.place import default_location

    spec = _spec(context)
    ledger = Ledger(store or default_location(), spec.name)
    try:
        for job in spec.jobs:
            if ledger.job(job.name) is None:
                ledger.put_job(job, "ended", None)
        found = forecast_backup(spec, ledger)
        ledger.send()
    finally:
        ledger.close()
    if json_:
        emit(json.dumps([one.as_json() for one in found]))
        return
    console().print(_forecast_table(found))
    emit(f"{RPO_RTO} At worst: with each copy as slow as 95 % of the simulated ones are at most.")
    for one in found:
        for note in one.notes:
            emit(f"{one.job.name}: {note}")
        told = [sentence for copy in (one.first, one.run) if copy is not None for sentence in copy.explanation]
        for sentence in dict.fromkeys(told):
            emit(f"{one.job.name}: {sentence}")


@app.command()
def unit(
    context: typer.Context,
    timers: Annotated[bool, typer.Option("--timers", help="A timer for each job, in place of one service.")] = False,
    store: StoreAt = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="NAME", help="Who runs it. Default: you.", show_default=False),
    ] = None,
    install: Annotated[bool, typer.Option("--install", help="Write, enable and start, as root.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Stop and remove; versions and store stay.")] = False,
    root: Annotated[
        Path | None,
        typer.Option("--root", metavar="DIR", help="Another system's files; nothing is started.", show_default=False),
    ] = None,
) -> None:
    """Print systemd units that run the jobs from the boot on."""
    from elephan.backup import unit as units
    from elephan.errors import InputError

    if install and remove:
        raise InputError("--install, --remove: one of the two")
    spec = _spec(context)
    if remove:
        gone = units.remove(spec, root)
        emit(f"{spec.name}: {'removed ' + ', '.join(map(str, gone)) if gone else 'there was no unit'}")
        return
    texts = units.texts(spec, user, store, timers)
    if not install:
        for name, text in texts.items():
            emit(text.rstrip("\n") if len(texts) == 1 else f"# {name}\n{text}")
        return
    places, started = units.install(texts, root)
    emit(f"{spec.name}: {', '.join(map(str, places))}{'; started' if started else ''}")


def _spec(context: typer.Context) -> Spec:
    from elephan.backup.config import load

    return load(context.obj)


def _known(spec: Spec, name: str) -> JobSpec:
    from elephan.errors import InputError

    found = spec.job(name)
    if found is None:
        raise InputError(f'{spec.file}: no job "{name}"; there is {", ".join(job.name for job in spec.jobs)}')
    return found


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    held = {name: None if row[name] is None else json.loads(row[name]) for name in ("progress", "receipt", "forecast")}
    return {**row, **held}


def _view_json(view: JobView) -> dict[str, Any]:
    return {
        "backup": view.backup,
        "job": view.name,
        "state": view.state,
        "settings": view.settings,
        "forecast": view.forecast,
        "next_due_s": view.next_due_s,
        "at_risk_s": view.at_risk_s,
        "faults": view.faults,
        "notes": list(view.notes),
        **{
            name: None if row is None else _plain(row)
            for name, row in (("running", view.running), ("last", view.last), ("complete", view.complete))
        },
    }


def _plain_table(columns: dict[str, str]) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for head, side in columns.items():
        table.add_column(head, justify="right" if side == "right" else "left", overflow="fold")
    return table


def _table(views: list[JobView]) -> Table:
    from elephan import units
    from elephan.backup.forecasts import band_text
    from elephan.backup.texts import STATE_WORDS, age, forecast_of, next_text, progress_text, verdict_text

    table = _plain_table({
        "job": "", "kind": "", "state": "", "next": "right", "last run": "right", "attempts": "right", "sent": "right",
        "took": "right", "forecast": "right", "compared": "", "at risk": "right", "RPO": "right", "RTO": "right",
    })  # fmt: skip
    now_s = time.time()
    for view in views:
        shown = view.running or view.last
        told = None if shown is None else forecast_of(shown)
        state = STATE_WORDS[view.state]
        if view.running is not None and view.running["progress"]:
            state += f" {progress_text(view.running)}"
        text = None if shown is None or view.state == "good" else shown["text"]
        table.add_row(
            view.name,
            view.settings["kind"],
            f"{state}: {text}" if text else state,
            next_text(view.next_due_s, now_s),
            units.NOTHING if shown is None else f"{age(now_s - shown['begun'])} ago",
            units.NOTHING if shown is None else str(shown["attempts"]),
            units.size(None if shown is None else shown["sent_bytes"]),
            units.duration(None if shown is None else shown["seconds"]),
            units.NOTHING if told is None else band_text(told),
            "" if shown is None else verdict_text(shown),
            "all" if view.at_risk_s is None else age(view.at_risk_s),
            units.duration(view.forecast.get("rpo_s")),
            units.duration(view.forecast.get("rto_s")),
        )
    return table


def _forecast_table(found: list[JobForecast]) -> Table:
    from elephan import units
    from elephan.backup.forecasts import band_text

    table = _plain_table({
        "job": "", "first copy": "right", "done after": "right", "a run": "right", "sends": "right", "RPO": "right",
        "at worst": "right", "RTO": "right",
    })  # fmt: skip
    for one in found:
        played, high = one.played, one.high
        table.add_row(
            one.job.name,
            units.NOTHING if one.first is None else f"{units.size(one.first.bytes)} in {band_text(one.first)}",
            units.duration(None if played is None else played.first_s),
            units.NOTHING if one.run is None else band_text(one.run),
            units.size(None if one.run is None else one.run.bytes),
            units.duration(None if played is None else played.rpo_s),
            units.duration(None if high is None else high.rpo_s),
            units.NOTHING if one.restore is None else band_text(one.restore),
        )
    return table
