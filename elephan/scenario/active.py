"""Exact periods in which a source of traffic is active: by their lengths, or by the time of day."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema, model_validator

from elephan.run_spec.types import ActiveSpec
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import PositiveSpan
from elephan.scenario.table import Table, Tagged, setting

_SECOND_NS = 1_000_000_000
DAY_NS = 86_400 * _SECOND_NS

_TIME = r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?"
_HOURS = re.compile(rf"{_TIME}-(?:{_TIME}|24:00)")


def _time_ns(hours: str | None, minutes: str | None, seconds: str | None) -> int:
    # "24:00" matches without groups.
    if hours is None or minutes is None:
        return DAY_NS
    return (int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)) * _SECOND_NS


def _time_of_day(value: Any) -> int:
    found = re.fullmatch(_TIME, value) if isinstance(value, str) else None
    if found is None:
        raise wrong('a time of day, such as "21:30" or "21:59:50"')
    return _time_ns(*found.groups())


def _hours(value: Any) -> tuple[int, int]:
    expected = 'hours of the day, such as "22:00-06:00", or exact periods, such as { on = "5s", off = "55s" }'
    found = _HOURS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise wrong(expected)
    begin, end = _time_ns(*found.groups()[:3]), _time_ns(*found.groups()[3:])
    if begin % DAY_NS == end % DAY_NS:
        raise wrong(expected + "; without active it is active all day")
    return begin, end


#: ns since midnight.
TimeOfDay = Annotated[int, PlainValidator(_time_of_day), WithJsonSchema({"type": "string", "x-type": "time of day"})]


class Periods(Table):
    """Exact periods from `start` on: active for `on`, then silent for `off`, over and over. What is sent in each is the
    rate times `on`."""

    on: PositiveSpan = setting(examples=["5s"])
    """Time active, not drawn at random."""
    off: PositiveSpan = setting(examples=["55s"])
    """Time silent, likewise."""

    @model_validator(mode="after")
    def _within_range(self) -> Periods:
        if self.on + self.off >= 2**63:
            raise wrong("at most 290 years together with on", "off")
        return self


class Hours(Table):
    """The same hours of every day. The run begins at `run.time_of_day`. Short: `active = "22:00-06:00"`."""

    hours: Annotated[
        tuple[int, int], PlainValidator(_hours), WithJsonSchema({"type": "string", "x-type": "hours of the day"})
    ] = setting(examples=["22:00-06:00", "08:30-08:30:05"])
    """Begin and end."""


Active = Annotated[
    Periods | Hours,
    Tagged(
        (("on", Periods), ("hours", Hours)),
        key=None,
        default="on",
        short="hours",
        expected='exact periods, such as { on = "5s", off = "55s" }, or hours of the day, such as "22:00-06:00"',
    ),
]


def active_spec(active: Periods | Hours, start_ns: int, time_of_day_ns: int) -> ActiveSpec:
    """Return the periods of a source that starts `start_ns` after the run, which begins at `time_of_day_ns`."""
    if isinstance(active, Periods):
        return {"on_ns": active.on, "off_ns": active.off, "phase_ns": 0}
    begin, end = active.hours
    on = (end - begin) % DAY_NS
    return {"on_ns": on, "off_ns": DAY_NS - on, "phase_ns": (time_of_day_ns + start_ns - begin) % DAY_NS}
