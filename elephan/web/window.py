"""The window of time that a page shows, as its URL has it: `span=24h` follows the clock, `from=...&to=...` stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

SPANS = {
    "15min": 900.0,
    "1h": 3600.0,
    "6h": 6 * 3600.0,
    "24h": 86400.0,
    "7d": 7 * 86400.0,
    "30d": 30 * 86400.0,
    "1y": 366 * 86400.0,
}
"""Windows that end now, by their name, s."""

DEFAULT = "24h"

LEAST_S = 10.0
"""Shortest window: some samples of one per second."""

LATEST_S = 253402300799.0
"""9999-12-31, the last day that a date can name."""


class WrongWindow(ValueError):
    """A URL whose window cannot be read; the text says what would be right."""


@dataclass(frozen=True)
class Window:
    """A stretch of time."""

    start_s: float
    end_s: float
    span: str
    """The name of one that follows the clock; nothing for one that stands."""

    @classmethod
    def of(cls, query: Mapping[str, str], now_s: float, default: str = DEFAULT) -> Window:
        """Read the window of a URL's query; without one, that of the name `default`. Raises `WrongWindow`."""
        if "from" in query or "to" in query:
            start_s, end_s = (_instant(name, query.get(name, "")) for name in ("from", "to"))
            if end_s - start_s < LEAST_S:
                raise WrongWindow(f"to={query['to']}: right is a time at least {LEAST_S:.0f} s after from")
            return cls(start_s, end_s, "")
        span = query.get("span", default)
        if span not in SPANS:
            raise WrongWindow(f"span={span}: right are {', '.join(SPANS)}")
        return cls(now_s - SPANS[span], now_s, span)

    @property
    def query(self) -> str:
        """Return the query of a URL that shows it."""
        return f"span={self.span}" if self.span else f"from={iso(self.start_s)}&to={iso(self.end_s)}"

    @property
    def length_s(self) -> float:
        """Return its length."""
        return self.end_s - self.start_s


def span_for(first_s: float | None, now_s: float) -> str:
    """Return the name of the window for a path whose oldest data is of `first_s`: the shortest that shows all of it, so
    that a new path's first hour fills its charts; at most `DEFAULT`.
    """
    if first_s is None:
        return DEFAULT
    age_s = now_s - first_s
    return next((name for name, length_s in SPANS.items() if age_s <= length_s <= SPANS[DEFAULT]), DEFAULT)


def around(start_s: float, end_s: float) -> Window:
    """Return a window that shows what lasted from one moment to another, and what was before and after."""
    margin_s = max(1800.0, 0.5 * (end_s - start_s))
    return Window(math.floor(start_s - margin_s), math.ceil(end_s + margin_s), "")


def _instant(name: str, text: str) -> float:
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
        at_s = found.replace(tzinfo=found.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        raise WrongWindow(f"{name}={text}: right is a time such as 2026-11-26T08:00:00Z") from None
    if not 0 <= at_s <= LATEST_S:
        raise WrongWindow(f"{name}={text}: right is a time from 1970 on")
    return at_s


def iso(at_s: float) -> str:
    """Return a moment as URLs and `time` elements have it, in UTC."""
    return datetime.fromtimestamp(round(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(at_s: float | None) -> str:
    """Return a moment for people, in UTC."""
    return "–" if at_s is None else datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def ago(at_s: float | None, now_s: float) -> str:
    """Return how long ago a moment was."""
    if at_s is None:
        return "never"
    age_s = max(0.0, now_s - at_s)
    for unit_s, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if age_s >= 2 * unit_s:
            return f"{age_s / unit_s:.0f} {unit} ago"
    return f"{age_s:.0f} s ago"
