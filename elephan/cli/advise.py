"""`elephan advise`: what to copy with over a path."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elephan.cli.console import emit, say
from elephan.errors import InputError, RunError
from elephan.units import parse_share

if TYPE_CHECKING:
    from elephan.advise.calls import Calls
    from elephan.advise.candidate import Candidate
    from elephan.advise.facts import PathFacts
    from elephan.measure.simulated import Traffic

SCENARIO = ".toml"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(advise)


def advise(
    towards: Annotated[
        str,
        typer.Argument(
            metavar="TOWARDS|FILE.toml",
            help="Far end of the path: a reflector, HOST:PORT (port 862 where none is named), or a host of `elephan "
            "hosts`. A scenario: its path is measured in the simulator, beside all its traffic; [path] alone is idle.",
            show_default=False,
        ),
    ],
    for_: Annotated[str, typer.Option("--for", metavar="SIZE", help="Bytes to copy.")] = "10GB",
    harm: Annotated[
        str | None,
        typer.Option(
            "--harm",
            metavar="SHARE",
            help="Largest part of its goodput that another flow may lose, as 5%. Default: what it would lose to four "
            "ordinary flows in the copy's place.",
            show_default=False,
        ),
    ] = None,
    controls: Annotated[
        str | None,
        typer.Option(
            "--controls",
            metavar="NAME,...",
            help="Congestion controls that may be proposed. Default: cubic, bbr, storage_friendly, ledbat_plus_plus.",
            show_default=False,
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help="Host of `elephan hosts` that measures. Default: this machine.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the simulation.", min=0)] = 1,
    table: Annotated[bool, typer.Option("--table", help="A line for each candidate that was simulated.")] = False,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE.toml", help="Write the fitted scenario.", show_default=False),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one object, and nothing else.")] = False,
) -> None:
    """Measure a path in 20 s and 1 % of the data at most, simulate ways to copy over it, and propose one with reasons.

    The proposal has the most goodput of those that do no more harm to other flows than the operator takes. Harm is what
    a Reno and a CUBIC flow on the same bottleneck lose, simulated.
    """
    from elephan.advise.advice import advise as advised
    from elephan.advise.candidates import CONTROLS
    from elephan.advise.text import lines

    wanted = _size(for_)
    limit = None if harm is None else _share(harm)
    names = CONTROLS if controls is None else tuple(name.strip() for name in controls.split(","))
    _check_controls(names)
    facts = _facts(towards, wanted, from_)
    others = _others(towards)
    say("simulating, 30 s at most")
    advice = advised(facts, bytes_to_copy=wanted, harm_limit=limit, controls=names, seed=seed, on_progress=say)
    calls = _calls(towards, facts, advice.candidate, seed)
    if save is not None:
        try:
            save.write_text(advice.scenario, encoding="utf-8")
        except OSError as error:
            raise RunError(f"--save {save}: {error.strerror}") from error
    if json_:
        found = {"towards": towards, **others.as_dict(), "facts": facts.as_dict(), **advice.as_dict()}
        if calls:
            found["calls"] = [asdict(one) for one in calls]
        emit(json.dumps(found, indent=1))
        return
    emit("\n".join([*others.lines(), *(one.text() for one in calls), *lines(advice, with_table=table)]))


@dataclass(frozen=True)
class _Others:
    """Traffic of a scenario, beside which its path was measured. None: a real path."""

    file: str
    traffic: Traffic | None = None

    def lines(self) -> list[str]:
        """Return the first line of the output; none for a real path."""
        if self.traffic is None:
            return []
        kinds = (("flow", self.traffic.flows), ("background", self.traffic.background))
        named = " and ".join(
            f"{kind if len(names) == 1 or kind == 'background' else 'flows'} {', '.join(names)}"
            for kind, names in kinds
            if names
        )
        if not named:
            return [f"others: none in {self.file}"]
        return [f"others: {named} of {self.file}; the copy is one more (for an idle path: a file with [path] alone)"]

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {} if self.traffic is None else {"others": asdict(self.traffic)}


def _others(towards: str) -> _Others:
    from elephan.measure.simulated import traffic_of

    return _Others(towards, traffic_of(towards)) if towards.endswith(SCENARIO) else _Others(towards)


def _calls(towards: str, facts: PathFacts, candidate: Candidate, seed: int) -> list[Calls]:
    if not towards.endswith(SCENARIO):
        return []
    from elephan.advise.calls import calls_of
    from elephan.measure.simulated import background_of

    return calls_of(facts, candidate, background_of(towards), seed)


def _facts(towards: str, wanted: int, from_: str | None) -> PathFacts:
    from elephan.advise.measure import facts_of_path, facts_of_scenario

    if towards.endswith(SCENARIO):
        if from_ is not None:
            raise InputError(f"--from {from_}: a scenario is measured in the simulator, on no host")
        return facts_of_scenario(Path(towards), wanted)
    say(f"measuring the path to {towards}")
    return facts_of_path(towards, wanted, from_=from_)


def _size(text: str) -> int:
    from elephan.core import native

    try:
        found = native.parse_size(text)
    except ValueError as error:
        raise InputError(f"--for {text}: {error}") from error
    if found < 1:
        raise InputError(f"--for {text}: 1 B or more is needed")
    return found


def _share(text: str) -> float:
    share = parse_share(text)
    if share is None or not 0 <= share <= 1:
        raise InputError(f"--harm {text}: a share from 0% to 100% is needed, such as 5%")
    return share


def _check_controls(names: tuple[str, ...]) -> None:
    from elephan.core import native

    known = {control["name"] for control in native.congestion_controls()}
    for name in names:
        if name not in known:
            raise InputError(f"--controls {name}: must be of {', '.join(sorted(known))}")
