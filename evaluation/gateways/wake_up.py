"""Duration of a wake-up: from the write of one process to the return of another's read, over a pipe."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

ROUNDS = 1000
IDLE_S = 0.001
"""Time between two rounds, about that between two frames of the load: a core that has nothing to do falls asleep."""
WORD = b"x"


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """Have this process, and those that it starts, run on `cores` only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def mean_us(core: int, other: int) -> float:
    """Return the mean of half of what a word takes from a process on `core` to one on `other` and back, us."""
    (there, to), (back, answer) = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        os.sched_setaffinity(0, {other})
        os.close(to)
        while os.read(there, 1):
            os.write(answer, WORD)
        os._exit(0)
    os.close(there)
    taken_ns = []
    with on_cores({core}):
        for _ in range(ROUNDS):
            time.sleep(IDLE_S)
            began_ns = time.monotonic_ns()
            os.write(to, WORD)
            os.read(back, 1)
            taken_ns.append((time.monotonic_ns() - began_ns) / 2)
    os.close(to)
    os.waitpid(process, 0)
    os.close(back)
    os.close(answer)
    return statistics.mean(taken_ns) / 1e3
