"""Choices of a run between hosts that are no part of its scenario: the hosts, and bounds for a production path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from elephan.errors import InputError
from elephan.scenario.quantity import parse_rate, parse_span

PPM = 1_000_000

LEAST_TIME_NS = 100_000_000
"""Least time of a run: what happens in less is the opening of its connections."""


@dataclass(frozen=True)
class HostOptions:
    """Choices of the command line, or of a script."""

    pair: tuple[str, str] | None = None
    """Names of the left and the right host; None: those of the scenario."""
    rate_limit_bps: int | None = None
    max_time_ns: int | None = None
    max_rtt_ns: int | None = None
    """Round-trip time of a small flow at which the run stops, for the sake of others."""
    max_loss_ppm: int | None = None
    """Loss of that flow at which the run stops."""
    agreed: bool = False
    """True if the run may fill the path without a question."""
    ask: Callable[[str], bool] | None = None
    """Asks the user; None: nobody is there to answer."""

    @classmethod
    def parsed(
        cls,
        hosts: str | None = None,
        rate_limit: str | None = None,
        max_time: str | None = None,
        max_rtt: str | None = None,
        max_loss: float | None = None,
        agreed: bool = False,
        ask: Callable[[str], bool] | None = None,
    ) -> HostOptions:
        """Read the texts of the options. Raises `InputError`."""
        pair = None
        if hosts is not None:
            names = [name.strip() for name in hosts.split(",")]
            if len(names) != 2 or not all(names) or names[0] == names[1]:
                raise InputError(f"--hosts {hosts}: two names, left and right, such as nyc,lax")
            pair = (names[0], names[1])
        if max_loss is not None and not 0 < max_loss < 1:
            raise InputError(f"--max-loss {max_loss:g}: a probability between 0 and 1, such as 0.01")
        max_time_ns = _read("--max-time", max_time, parse_span, "a time such as 30s")
        if max_time_ns is not None and max_time_ns < LEAST_TIME_NS:
            raise InputError(f"--max-time {max_time}: at least 100ms, or nothing has happened when it ends")
        return cls(
            pair=pair,
            rate_limit_bps=_read("--rate-limit", rate_limit, parse_rate, "a rate such as 200Mbit/s"),
            max_time_ns=max_time_ns,
            max_rtt_ns=_read("--max-rtt", max_rtt, parse_span, "a time such as 200ms"),
            max_loss_ppm=None if max_loss is None else max(round(max_loss * PPM), 1),
            agreed=agreed,
            ask=ask,
        )

    def guard(self) -> dict[str, float | None] | None:
        """Return the harm guard as the agent takes it; None for none."""
        if self.max_rtt_ns is None and self.max_loss_ppm is None:
            return None
        return {
            "interval_ms": GUARD_INTERVAL_MS,
            "max_rtt_ms": None if self.max_rtt_ns is None else self.max_rtt_ns / 1e6,
            "max_loss_ppm": self.max_loss_ppm,
            "window": self._window(),
        }

    def _window(self) -> int:
        least, most = GUARD_WINDOW
        losses = 0 if self.max_loss_ppm is None else -(-GUARD_LOSSES * PPM // self.max_loss_ppm)
        return min(max(least, losses), most)


GUARD_INTERVAL_MS = 20
"""Between two packets of the small flow: 60 bytes each, 24 kbit/s disturb nobody."""

GUARD_WINDOW = (50, 10_000)
"""Least and most packets of the small flow over which its loss is judged: 1 s, and the agent's bound."""

GUARD_LOSSES = 3
"""Losses that are expected in the window at the bound: fewer would be chance."""


def _read(option: str, text: str | None, parse: Callable[[Any], int], right: str) -> int | None:
    if text is None:
        return None
    try:
        value = int(parse(text))
    except Exception as error:
        raise InputError(f"{option} {text}: {right}") from error
    if value <= 0:
        raise InputError(f"{option} {text}: {right}")
    return value
