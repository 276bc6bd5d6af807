"""The job that a backend is given: one validated point, and the receiver of its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from elephan.backends.inputs import read_inputs
from elephan.core import version
from elephan.record import InputFile, ScenarioInfo, run_id
from elephan.run_spec.types import RunSpec

Progress = Callable[[int, int], None]
"""Called now and then with simulated ns and ns in all. May raise `Stopped` to end the run."""


class Stopped(Exception):
    """Raised by a run that was asked to stop; no result is kept."""


@dataclass
class Job:
    """One point of a scenario on one backend with one seed."""

    index: int
    spec: RunSpec
    parameters: dict[str, Any]
    seed: int
    scenario: ScenarioInfo
    backend: str = "sim"
    must_run: bool = field(default=False)
    """A stored result will not do, because the run leaves something else behind (a capture)."""

    @cached_property
    def inputs(self) -> list[InputFile]:
        """Files that the run reads, with digests. Raises `InputError` when one cannot be read."""
        return read_inputs(self.spec)

    @cached_property
    def id(self) -> str:
        """Id that its record will have."""
        return run_id(self.spec, self.inputs, version(), self.backend)
