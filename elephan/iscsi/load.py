"""A load on a target: so many commands under way, for so long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.iscsi.control import control
from elephan.iscsi.url import Url, check_secrets
from elephan.iscsi.url import portal as address_of
from elephan.units import scaled

if TYPE_CHECKING:
    from elephan._native import _Settings

IO_BYTES_MAX = 16 << 20
DEPTH_MAX = 65536
CONNECTIONS_MAX = 256
INTERRUPTED = "told to stop"
"""The core's reason for the end of a load after a signal."""
RATES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
KINDS = ("reads", "writes")
TIMES = ((1.0, ""), (1e-3, "m"), (1e-6, "u"))


@dataclass(frozen=True)
class Load:
    """A load on a unit."""

    io_bytes: int
    depth: int
    duration_ns: int
    read_percent: int = 100
    connections: int = 1
    random: bool = False
    seed: int = 1
    initiator: str = "iqn.2026-01.elephan:bench"
    mutual: tuple[str, str] | None = None
    settings: _Settings | None = None
    congestion_control: str | None = None
    """Congestion control of the connections; None: the network namespace's default."""

    def check(self) -> None:
        """Raise `InputError` for what cannot be."""
        bounds = (("--depth", self.depth, DEPTH_MAX), ("--connections", self.connections, CONNECTIONS_MAX))
        for name, value, most in bounds:
            if not 1 <= value <= most:
                raise InputError(f"{name} {value}: 1 to {most} is needed")
        if not 512 <= self.io_bytes <= IO_BYTES_MAX:
            raise InputError(f"--size: {self.io_bytes} bytes; 512 B to 16 MiB is needed")
        if self.duration_ns < 1:
            raise InputError("--duration 0: a time above 0 is needed")
        if not 0 <= self.read_percent <= 100:
            raise InputError(f"--reads {self.read_percent}: 0 to 100 is needed")


@dataclass(frozen=True)
class Result:
    """Result of a load, as the core gives it."""

    core: Mapping[str, Any]

    @property
    def ended(self) -> str | None:
        """The reason that it ended before its time; None if it did not."""
        ended: str | None = self.core["ended"]
        return ended

    @property
    def connections(self) -> int:
        """Connections of the session: fewer than asked for where the target allows no more."""
        return int(self.core["connections"])

    @property
    def kinds(self) -> list[str]:
        """Of "reads" and "writes" those that were done."""
        return [kind for kind in KINDS if self.core[kind]["done"]]

    @property
    def bytes_per_s(self) -> float:
        """Data of reads and writes, B/s; 0 where nothing was done."""
        rate: float = sum(self.core[kind]["bytes"] / self._seconds for kind in self.kinds)
        return rate

    @property
    def commands_per_s(self) -> float:
        """Commands done per second."""
        rate: float = sum(self.core[kind]["done"] / self._seconds for kind in self.kinds)
        return rate

    @property
    def latency_mean_s(self) -> float | None:
        """Mean time of reads and writes together, s; None where nothing was done."""
        done = sum(self.core[kind]["done"] for kind in self.kinds)
        total_ns = sum(self.core[kind]["latency_mean_ns"] * self.core[kind]["done"] for kind in self.kinds)
        return total_ns / done / 1e9 if done else None

    def latency(self, kind: str, which: str) -> str:
        """Return "mean", "p50", "p99" or "max" of a kind of command, as text."""
        return scaled(self.core[kind][f"latency_{which}_ns"] / 1e9, "s", TIMES)

    def rate(self) -> str:
        """Return data of reads and writes per second, as text."""
        return scaled(self.bytes_per_s, "B/s", RATES)

    @property
    def _seconds(self) -> float:
        return float(self.core["elapsed_ns"] / 1e9)

    def text(self) -> str:
        """Return it as lines."""
        lines = []
        for kind in self.kinds:
            done = self.core[kind]
            rate = scaled(done["bytes"] / self._seconds, "B/s", RATES)
            number = f"{done['done'] / self._seconds:.0f} per second"
            p50, p99, most = (self.latency(kind, which) for which in ("p50", "p99", "max"))
            lines.append(f"{kind}: {rate}, {number}; latency p50 {p50}, p99 {p99}, max {most}")
        return "\n".join([*lines, *self.remarks()]) or "no command was done"

    def remarks(self) -> list[str]:
        """Return lines about failures, limits and losses, if there were any."""
        lines = []
        if self.core["failed"]:
            lines.append(f"{self.core['failed']} commands failed; the first: {self.core['first_failure']}")
        if self.core["window_is_limit"]:
            lines.append(
                f"the target's command window of {self.core['window_width']}, not the depth, was the limit: "
                f"{self.core['window_waits']} commands waited for it"
            )
        if self.core["unfinished"]:
            lines.append(f"{self.core['unfinished']} commands had no status at the end")
        if self.core["lost"]:
            lines.append(f"the session was lost and logged in again {self.core['lost']} times")
        return lines


def measure(url: Url, load: Load, wait_for_termination: Callable[[float | None], bool] | None = None) -> Result:
    """Put a load on a unit, until `wait_for_termination` says that a signal came: the result says so.

    Raises `InputError` for what is wrong, `RunError` for what the target refuses before the first command.
    """
    load.check()
    check_secrets(url.chap, load.mutual)
    try:
        core = native.iscsi_bench(
            url.address(),
            load.initiator,
            url.target,
            url.lun,
            url.chap,
            load.mutual,
            load.settings or {},
            load.connections,
            load.read_percent,
            load.io_bytes,
            load.depth,
            load.random,
            load.duration_ns,
            load.seed,
            None if load.congestion_control is None else control(load.congestion_control),
            wait_for_termination,
        )
    except OSError as error:
        if wait_for_termination is not None and wait_for_termination(0):
            raise KeyboardInterrupt from error
        raise RunError(f"{url.place()}: {error}") from error
    return Result(core)


def discover(portal: str, chap: tuple[str, str] | None = None) -> list[tuple[str, str]]:
    """Ask HOST[:PORT] for its targets; return name and address of each. Raises `InputError` or `RunError`."""
    try:
        found = native.iscsi_discover(address_of(portal), Load.initiator, chap)
    except OSError as error:
        raise RunError(f"{portal}: {error}") from error
    return [(str(name), str(address)) for name, address in found]
