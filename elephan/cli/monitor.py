"""`elephan monitor`: does the path still hold what it held?"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from elephan.cli.console import emit, say
from elephan.cli.options import StoreAt

app = typer.Typer(help="Watch paths day and night: tests by a schedule, alerts, forecasts.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The monitor's file, TOML.", show_default=False)]
Name = Annotated[
    str | None,
    typer.Option("--monitor", metavar="NAME", help="Which, where several run with one store.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command()
def run(file: File, store: StoreAt = None) -> None:
    """Test the paths of a file until Ctrl-C or SIGTERM. SIGHUP reads the file again.

    It resumes where it stopped, also after a kill or a power cut. One monitor of a name runs with a store.
    """
    from elephan.monitor.start import run as run_monitor
    from elephan.store.place import default_location

    run_monitor(file, store or default_location(), say)


@app.command()
def check(file: File) -> None:
    """Read a monitor's file, and say what is wrong with it."""
    from elephan.monitor.config import load

    spec = load(file)
    paths, tests = len(spec.paths), sum(len(path.tests) for path in spec.paths)
    say(f"{file}: valid: {paths} path{'' if paths == 1 else 's'}, {tests} test{'' if tests == 1 else 's'}")


@app.command()
def now(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A path of the monitor.", show_default=False)],
    test: Annotated[str, typer.Argument(metavar="TEST", help="stamp, capacity, available ...", show_default=False)],
    store: StoreAt = None,
    monitor: Name = None,
    json_: Json = False,
) -> None:
    """Run a path test at once, by the monitor that runs: before all others, and whatever its budget says.

    What it costs is taken from the budget, so that tests of the schedule wait longer. Exit code 1 where the method
    refuses.
    """
    from elephan.errors import InputError, RunError
    from elephan.monitor.asking import ask_running

    answers = ask_running(store, {"do": "now", "path": path, "test": test}, monitor)
    if not answers:
        raise InputError("no monitor runs with this store: elephan monitor run FILE.toml, or for one test without it: "
                         f"elephan measure {test}")  # fmt: skip
    outcome = answers[0]["outcome"]
    if json_:
        emit(json.dumps(outcome))
    else:
        emit("\n".join(_outcome_lines(outcome)))
    if outcome["refused"]:
        raise RunError(f"{path}: {test}: refused: {outcome['refused']}")


def _outcome_lines(outcome: dict[str, Any]) -> list[str]:
    from elephan.measure.text import cost_line
    from elephan.monitor.explanations import name_of, value_text

    lines = []
    for one in outcome["estimates"]:
        quantity = one["quantity"]
        low, high = value_text(quantity, one["low"]), value_text(quantity, one["high"])
        lines.append(f"{name_of(quantity)}: {value_text(quantity, one['value'])} ({low} to {high})")
    lines += outcome["notes"]
    lines.append(cost_line(outcome))
    return lines


@app.command()
def status(store: StoreAt = None, monitor: Name = None, json_: Json = False) -> None:
    """Show what the monitors of a store do now; of one that does not run, what it has stored last."""
    from elephan import units
    from elephan.monitor.asking import ask_running
    from elephan.monitor.explanations import value_text

    answers = ask_running(store, {"do": "status"}, monitor, several=True)
    if json_:
        emit(json.dumps(answers))
        return
    for answer in answers:
        emit(f"monitor {answer['monitor']}: process {answer['pid']}, store {answer['store']}")
        if answer["waiting"]:
            emit(f"  rows or samples wait for the store: {answer['waiting']}")
        for one in answer["paths"]:
            latest = [
                f"{label} {value_text(quantity, one['latest'][quantity])}"
                for quantity, label in _SHOWN.items()
                if quantity in one["latest"]
            ]
            emit(f"  {one['name']} ({one['towards']}): {one['state']}; {', '.join(latest) or 'nothing yet'}")
            for text in [*one["alerts"], *([one["fault"]] if one["fault"] else [])]:
                emit(f"    {text}")
            for text in _late_lines(one["late"]):
                emit(f"    {text}")
            for refusal in one["refused"]:
                emit(f"    {refusal['test']}: refused {units.duration(refusal['age_s'])} ago: {refusal['why']}")
            for test in one["tests"]:
                state = "runs" if test["running"] else test["waits"] or f"in {test['next_s']:.0f} s"
                emit(f"    {test['test']}: {state}{_missed(test['missed'])}")
    if not answers:
        _stored_status(store)


_SHOWN = {"rtt_s": "RTT", "loss": "loss", "available_bps": "available", "capacity_bps": "capacity"}


def _late_lines(late: list[float]) -> list[str]:
    from elephan import units
    from elephan.monitor.watch import HOST_IS_LATE

    return [
        f"{host} is busy: late with {units.share(share)} of the packets; delays are judged by the others, or the least"
        for host, share in zip(("this host", "the far host"), late, strict=True)
        if share >= HOST_IS_LATE
    ]


def _missed(count: int) -> str:
    return f" ({count} missed)" if count else ""


def _stored_status(store: str | None) -> None:
    from elephan.monitor.explanations import moment
    from elephan.monitor.reading import MonitorReader

    with MonitorReader(store) as reader:
        paths = reader.paths()
        if not paths:
            emit(f"no monitor has run with {reader.location}")
        for one in paths:
            last = "no sample" if one.last_sample_s is None else f"last sample {moment(one.last_sample_s)}"
            emit(f"{one.monitor} {one.name} ({one.towards}): not watched now; {last}")


@app.command()
def alerts(
    path: Annotated[
        str | None, typer.Argument(metavar="PATH", help="Of one path. Default: of all.", show_default=False)
    ] = None,
    store: StoreAt = None,
    monitor: Name = None,
    is_open: Annotated[bool, typer.Option("--open", help="Those that last.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most so many.", min=1, max=100_000)] = 50,
    json_: Json = False,
) -> None:
    """Show the alerts of a store, newest first, whether its monitors run or not.

    With several monitors in the store each line begins with the monitor's name. An open alert of a monitor that has
    ended says since when its path is not watched.
    """
    from elephan.errors import InputError
    from elephan.monitor.explanations import moment
    from elephan.monitor.reading import MonitorReader

    with MonitorReader(store) as reader:
        paths = {state.id: state for state in reader.paths()}
        monitors = sorted({state.monitor for state in paths.values()})
        if monitor is not None and monitor not in monitors:
            raise InputError(f'no monitor "{monitor}"; there is {", ".join(monitors) or "none"}')
        of_monitor = [state for state in paths.values() if monitor in (None, state.monitor)]
        wanted = [state.id for state in of_monitor if path in (None, state.name)]
        if path is not None and not wanted:
            names = sorted({state.name for state in of_monitor})
            raise InputError(f'no path "{path}"; there is {", ".join(names) or "none"}')
        shown = [alert for path_id in wanted for alert in reader.alerts(path_id, open_only=is_open, limit=limit)]
    shown = sorted(shown, key=lambda alert: (-alert.found_s, alert.id))[:limit]
    if json_:
        watches = [(alert, paths[alert.path_id]) for alert in shown]
        emit(json.dumps([{**asdict(a), "monitor": of.monitor, "is_watched": of.is_watched} for a, of in watches]))
        return
    for alert in shown:
        of = paths[alert.path_id]
        until = "lasts" if alert.ended_s is None else f"until {moment(alert.ended_s)}"
        if alert.ended_s is None and not of.is_watched:
            last = "" if of.last_sample_s is None else f" since {moment(of.last_sample_s)}"
            until = f"open, but not watched{last}"
        cause = f"; likely cause: {alert.cause.replace('_', ' ')}" if alert.cause else ""
        name = f"{of.monitor}: " if len(monitors) > 1 else ""
        emit(f"{name}{moment(alert.since_s)}, {until}: {alert.text}{cause}")


@app.command()
def unit(
    file: File,
    store: StoreAt = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="NAME", help="Whose. Default: one that systemd makes up.", show_default=False),
    ] = None,
    install: Annotated[bool, typer.Option("--install", help="Write, enable and start it, as root.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Stop and remove it; what it has stored stays.")] = False,
    root: Annotated[
        Path | None,
        typer.Option("--root", metavar="DIR", help="Another system's files; nothing is started.", show_default=False),
    ] = None,
) -> None:
    """Print a systemd unit that runs the monitor from the boot on."""
    from elephan.errors import InputError
    from elephan.monitor import unit as units
    from elephan.monitor.config import load

    if install and remove:
        raise InputError("--install, --remove: one of the two")
    spec = load(file)
    if remove:
        gone = units.remove(spec, root)
        emit(f"{spec.name}: {'there was no unit' if gone is None else f'removed {gone}'}")
        return
    text = units.unit_text(spec, user, store)
    if not install:
        emit(text.rstrip("\n"))
        return
    place, started = units.install(spec, text, root)
    emit(f"{spec.name}: {place} runs it at every boot{'; started' if started else ''}")


@app.command()
def rules() -> None:
    """Print alerting rules for Prometheus."""
    emit(_packaged("rules.yml"))


@app.command()
def dashboard() -> None:
    """Print a dashboard for Grafana, as JSON."""
    emit(_packaged("dashboard.json"))


def _packaged(name: str) -> str:
    from importlib.resources import files

    return (files("elephan.monitor") / name).read_text(encoding="utf-8").rstrip("\n")
