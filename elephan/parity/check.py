"""A congestion control's two builds side by side: the comparison and the differences."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elephan import control_process
from elephan.congestion_control import CongestionControl, verify
from elephan.core import native
from elephan.errors import InputError
from elephan.parity.paths import CASES, Case
from elephan.parity.recording import record
from elephan.parity.stepping import answered
from elephan.parity.windows import Windows, case_of, compare_windows
from elephan.path import testbed

if TYPE_CHECKING:
    from elephan._native import _Comparison

CALLS = 20_000
"""Synthetic calls under each set of parameters."""

SETS = 5
"""Sets of parameters drawn at random, beside the defaults, all least and all greatest values."""


@dataclass(frozen=True)
class Run:
    """One sequence of calls and what the comparison found (`native.replay_calls`)."""

    source: str
    """"recorded" or "synthetic"."""
    about: str
    """The path, or the parameters."""
    found: _Comparison
    missed: int = 0
    """Records that found no room in the ring buffer."""

    @property
    def same(self) -> bool:
        """Return True if the two builds did the same."""
        return not self.found["differing"] and not self.found["breaks"]


@dataclass(frozen=True)
class Outcome:
    """All runs of one congestion control."""

    cc: CongestionControl
    runs: tuple[Run, ...]
    lacking: str
    """The reason that nothing was recorded; "" if something was."""
    windows: Windows | None = None
    """Simulator and kernel under the same losses."""

    @property
    def steps(self) -> int:
        """Calls compared."""
        return sum(run.found["steps"] for run in self.runs)

    @property
    def same(self) -> bool:
        """Return True if the two builds did the same everywhere."""
        return all(run.same for run in self.runs)

    def hooks(self, source: str) -> Counter[str]:
        """Return how often each hook that the congestion control has was called."""
        counts = Counter(dict.fromkeys(self.cc.hooks, 0))
        for run in self.runs:
            if run.source == source:
                counts.update({hook: count for hook, count in run.found["by_hook"].items() if hook in counts})
        return counts


def check(
    cc: CongestionControl,
    values: Mapping[str, int] | None = None,
    cases: Sequence[Case] = CASES,
    say: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Compare the BPF build of a congestion control, in this kernel, with the native one. `values`: parameters that are
    not at their defaults; with them only these are compared. `say` receives a line on each step.

    Raises `InputError` where the machine can run nothing of it, or the kernel refuses the congestion control.
    """
    if lacking := verify.lacks():
        raise InputError(lacking)
    runs, windows = [], None
    try:
        # First, because a division by zero ends this process, and nothing is registered yet.
        for about, chosen in parameter_sets(cc, values):
            say(f"synthetic calls, {about}")
            runs.append(Run("synthetic", about, synthetic(cc, chosen)))
        lacking = testbed.missing() or ""
        if not lacking:
            for case in (*cases, case_of()):
                say(f"connection over a path: {case.name}")
                (recording,) = record([(cc, values or {})], [case])
                runs.append(Run("recorded", case.name, replayed(cc, values or {}, recording.calls), recording.missed))
            windows = compare_windows(cc, values or {}, recording)
    except native.NoClang as error:
        raise InputError(str(error)) from error
    except native.CompileError as error:
        raise InputError(str(error)) from error
    return Outcome(cc, tuple(runs), lacking, windows)


def synthetic(cc: CongestionControl, values: Mapping[str, int], calls: int = CALLS, seed: int = 1) -> _Comparison:
    """Compare calls that reach the ends of every range."""
    given = control_process.synthetic_calls(cc.path or cc.name, dict(values), seed, calls)
    return replayed(cc, values, answered(cc, given))


def replayed(cc: CongestionControl, values: Mapping[str, int], recording: bytes) -> _Comparison:
    """Compare the calls of a recording with what the native build does."""
    return control_process.replay_calls(cc.path or cc.name, dict(values), recording)


def parameter_sets(cc: CongestionControl, values: Mapping[str, int] | None = None) -> list[tuple[str, dict[str, int]]]:
    """Return sets of parameters, a word on each: the given one, or the defaults and others from all of the range."""
    if values:
        return [("parameters as set", dict(values))]
    sets: list[tuple[str, dict[str, int]]] = [("default parameters", {})]
    if cc.parameters:
        sets.append(("all parameters least", {item.name: item.minimum for item in cc.parameters}))
        sets.append(("all parameters greatest", {item.name: item.maximum for item in cc.parameters}))
        draw = random.Random(cc.name)
        for number in range(1, SETS + 1):
            drawn = {item.name: draw.randint(item.minimum, item.maximum) for item in cc.parameters}
            sets.append((f"parameters at random, set {number}", drawn))
    return sets
