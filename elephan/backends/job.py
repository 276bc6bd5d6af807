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


@dataclass(frozen=True)
class HostPair:
    """The two hosts of a run of the backend hosts, by their names in the user's book."""

    left: str
    right: str
    rate_limit_bps: int | None = None
    """Most that all connections send together, bit/s."""

    @property
    def identity(self) -> str:
        """Return what tells runs between other hosts, or under another limit, from this one."""
        limit = "" if self.rate_limit_bps is None else f" {self.rate_limit_bps}bit/s"
        return f"hosts {self.left},{self.right}{limit}"


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
    hosts: HostPair | None = None
    """Of the backend hosts alone."""
    cores: int = 1
    """Cores that the backend sim may use for it, with the same result."""

    @cached_property
    def inputs(self) -> list[InputFile]:
        """Files that the run reads, with digests. Raises `InputError` when one cannot be read."""
        return read_inputs(self.spec)

    @cached_property
    def id(self) -> str:
        """Id that its record will have."""
        backend = self.backend if self.hosts is None else self.hosts.identity
        return run_id(self.spec, self.inputs, version(), backend)
