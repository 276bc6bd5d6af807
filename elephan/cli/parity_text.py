"""Result of `elephan kernel parity`, as lines."""

from __future__ import annotations

import os
from collections.abc import Iterator

from elephan.parity import Outcome, Run
from elephan.units import count, pluralize

SHOWN = 5
"""Differences that are shown of each run."""


def lines(outcome: Outcome) -> Iterator[str]:
    """Yield the runs, the hooks, the differences and the verdict."""
    cc = outcome.cc
    yield f"{cc.name}: BPF in {os.uname().sysname} {os.uname().release} beside the native build"
    width = max(len(run.about) for run in outcome.runs)
    for run in outcome.runs:
        yield f"  {run.source:11}{run.about:{width}}  {_run(run)}"
    if outcome.lacking:
        yield f"  recorded   not tried: {outcome.lacking}"
    for source in ("synthetic", "recorded"):
        hooks = outcome.hooks(source)
        called = ", ".join(f"{hook} {count(number)}" for hook, number in hooks.items() if number)
        silent = ", ".join(hook for hook, number in hooks.items() if not number)
        if called:
            yield f"  hooks, {source}: {called}" + (f"; not called: {silent}" if silent else "")
    if (windows := outcome.windows) is not None:
        ours, theirs = (", ".join(map(count, values)) or "none" for values in (windows.simulated, windows.recorded))
        yield f"  same losses: thresholds in the simulator {ours}; in the kernel {theirs}"
        yield f"    windows differ by {windows.median:.1%} (median), 9 of 10 by less than {windows.p90:.1%}"
    for run in outcome.runs:
        yield from _differences(run)
    if outcome.same:
        yield f"{count(outcome.steps)} calls compared: no difference"
    else:
        differing = sum(run.found["differing"] for run in outcome.runs)
        yield f"{count(outcome.steps)} calls compared: {pluralize(differing, 'call')} with a difference"


def _run(run: Run) -> str:
    found = run.found
    low, high = found["cwnd_range"] or (0, 0)
    text = f"{count(found['steps'])} calls, windows {count(low)} to {count(high)}"
    lost = found["unpaired"]
    if lost:
        text += f"; {pluralize(lost, 'record')} without the other half"
    if found["differing"]:
        text += f"; {pluralize(found['differing'], 'call')} with a difference"
    if found["breaks"]:
        text += f"; {pluralize(found['breaks'], 'call')} before which the state was not as left"
    return text


def _differences(run: Run) -> Iterator[str]:
    for one in run.found["differences"][:SHOWN]:
        yield (
            f"  {run.source}, {run.about}: call {count(one['step'])}, connection {one['connection']}, {one['hook']}: "
            f"{one['field']}: BPF {one['bpf']}, native {one['native']}"
        )
