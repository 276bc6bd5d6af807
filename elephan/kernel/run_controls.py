"""Congestion controls of one run in the kernel: each has a name of the run's own, and is unloaded when the run ends.

The name begins with the run's id, so that what a killed run has left is told from what a living one uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from elephan.congestion_control import find
from elephan.errors import InputError
from elephan.kernel import runs
from elephan.kernel.control import register
from elephan.kernel.maps import loaded, remove

Control = tuple[str, tuple[tuple[str, int], ...]]
"""A congestion control as it is loaded: algorithm, or path of a C file, and its parameters by name."""


@contextmanager
def in_kernel(run: str, controls: Sequence[Control], listening: Collection[int] = ()) -> Iterator[list[str]]:
    """Load `controls` for as long as the context lasts; give their names, in order. Raises `InputError`.

    Those whose numbers are in `listening` look for commands on each ACK.
    """
    if len(controls) > runs.MOST:
        raise InputError(
            f"{len(controls)} congestion controls in one run: the backend kernel takes at most {runs.MOST}"
        )
    names = [runs.name_of(run, number) for number in range(len(controls))]
    try:
        for number, (name, (algorithm, values)) in enumerate(zip(names, controls, strict=True)):
            cc = find(algorithm)
            register(cc, name, f"{cc.name}=run {run}", dict(values), listens=number in listening)
        yield names
    finally:
        _unload(names)


def unload_stale() -> list[str]:
    """Unload those of runs that live no more; return their names."""
    # List the loaded controls before the living runs: a run that begins in between is not taken for one that was
    # killed.
    left = [one.name for one in loaded() if one.registered and runs.is_of_run(one.name) and not runs.lives(one.name)]
    _unload(left)
    return left


def _unload(names: Sequence[str]) -> None:
    for one in loaded():
        if one.name in names and one.registered:
            remove(one)
