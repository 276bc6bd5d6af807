"""`elephan hosts check --cost`: what packets cost two machines."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from elephan.errors import InputError, RunError
from elephan.units import duration

if TYPE_CHECKING:
    from elephan.hosts import Host
    from elephan.hosts.cost import Measured
    from elephan.hosts.cost_transfers import Plan

TIME = "1s"
"""Default of --time."""


def planned(
    name: str, towards: str | None, cost: bool, time: str | None, rate_limit: str | None, yes: bool
) -> Plan | None:
    """Return the transfers that the options ask for, None for none; ask first where they may fill the path. Raises
    `InputError`.
    """
    if not cost:
        given = {"--time": time is not None, "--rate-limit": rate_limit is not None, "--yes": yes}
        lost = next((option for option, is_given in given.items() if is_given), None)
        if lost is not None:
            raise InputError(f"{lost}: is for --cost")
        return None
    if towards is None or towards == name:
        raise InputError(
            "--cost: --towards NAME, another host, is needed: loopback passes no adapter and no driver; this machine, "
            "too, gets a name by elephan hosts add"
        )
    from elephan.backends.hosts import HostOptions
    from elephan.cli.run import question
    from elephan.hosts.cost_transfers import Plan

    options = HostOptions.parsed(rate_limit=rate_limit)
    plan = Plan(_window_ms(time or TIME), options.rate_limit_bps)
    if yes or plan.rate_limit_bps is not None:
        return plan
    what = (
        f"{plan.transfers} transfers, {duration(plan.seconds)} or more, may fill the path between {name} and "
        f"{towards}, to the harm of others on it"
    )
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InputError(f"--cost: {what}: say --yes, or bound it by --rate-limit RATE")
    if not question(what):
        raise InputError("--cost: nothing was measured")
    return plan


def _window_ms(text: str) -> int:
    from elephan.scenario.quantity import parse_span

    try:
        window_ms = int(parse_span(text)) // 10**6
    except Exception as error:
        raise InputError(f"--time {text}: a time such as 2s") from error
    if not 100 <= window_ms <= 600_000:
        raise InputError(f"--time {text}: 100ms to 10min")
    return window_ms


def measured(hosts: Sequence[Host], plan: Plan) -> list[Measured]:
    """Carry the transfers, with a bar on a terminal. Raises `InputError` and `RunError`."""
    from elephan.cli.console import counted
    from elephan.hosts import cost_transfers

    with counted("transfers") as on_progress:
        return cost_transfers.measure(hosts, plan, lambda done: on_progress(done, plan.transfers))


def as_json(found: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return both hosts, with all samples."""
    from elephan.hosts import cost

    return [cost.as_json(one) for one in found]


def as_lines(found: Sequence[Measured]) -> list[str]:
    """Return what was found, and the lines of a scenario."""
    from elephan.hosts import cost

    lines = [line for one in found for line in cost.as_lines(one)]
    return [*lines, *(line for one in found for line in ["", *cost.as_toml(one)] if cost.as_toml(one))]


def require_told(found: Sequence[Measured]) -> None:
    """Raise `RunError` where no cost was measured for one of them."""
    reasons = [f"{one.name}, {side.verb}: {side.problem}" for one in found for side in one.sides if side.problem]
    if reasons:
        raise RunError("no cost was measured for " + "; ".join(reasons))
