"""Trials that an end limited, repeated: a machine that stood still for a moment is no limit of its generator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from elephan.line.trial import Outcome, Trial, Verdict

Run = Callable[[Trial], Outcome]
TRIES = 3
"""Trials at one rate, until one is not limited by an end."""


def patient(
    run: Run, tries: int = TRIES, allowed_ppm: int = 0, on_retry: Callable[[Trial, Outcome], None] | None = None
) -> Run:
    """Return a `run` that repeats a trial that the generator or the receiver limited, `tries` times in all.

    Frames that the generator may leave out in a trial that counts are `allowed_ppm`: the load is then lower than asked
    for by no more than that. `on_retry` takes each trial that is repeated.
    """

    def patiently(trial: Trial) -> Outcome:
        for left in range(tries - 1, -1, -1):
            outcome = replace(run(trial), allowed_ppm=allowed_ppm)
            if not left or outcome.verdict in (Verdict.PASSED, Verdict.LOST):
                return outcome
            if on_retry is not None:
                on_retry(trial, outcome)
        raise ValueError(f"tries = {tries}: 1 or more")

    return patiently
