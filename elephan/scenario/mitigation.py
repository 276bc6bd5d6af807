"""Mitigations of a move to a shorter path: at the router that moves, or at the senders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, PlainValidator, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from elephan.scenario.problem import wrong
from elephan.scenario.quantity import PositiveSize, PositiveSpan, number, parse_span, rate
from elephan.scenario.table import Table, Tagged, setting


def _difference(value: Any) -> int | None:
    if value == "auto":
        return None
    try:
        return parse_span(value)
    except Exception:
        raise wrong('"auto", or a time such as "16ms"') from None


_SPAN_OR_AUTO = {"type": "string", "x-type": 'time or "auto"'}
_Difference = Annotated[int | None, PlainValidator(_difference), WithJsonSchema(_SPAN_OR_AUTO)]


def _error(value: Any) -> Fraction:
    expected = 'an error such as "10%" or "-10%", from -100% to 100%'
    text = value.strip() if isinstance(value, str) else value
    negative = isinstance(text, str) and text.startswith("-")
    share = number(text[1:] if negative else text, expected)
    share = -share if negative else share
    if not -1 <= share <= 1:
        raise wrong(expected)
    return share


_NUMBER_OR_TEXT = {"type": ["number", "string"]}
_Error = Annotated[
    Fraction, PlainValidator(_error), WithJsonSchema({**_NUMBER_OR_TEXT, "x-type": "share, may be negative"})
]


def _share(value: Any) -> Fraction:
    expected = 'a share above 0 and at most 10, such as "1%" or 0.01'
    share = number(value, expected)
    if not 0 < share <= 10:
        raise wrong(expected)
    return share


_Share = Annotated[Fraction, PlainValidator(_share), WithJsonSchema({**_NUMBER_OR_TEXT, "x-type": "share"})]


def _fraction(value: Any) -> Fraction | None:
    expected = '"auto", or a share above 0 and at most 1, such as "60%"'
    if value == "auto":
        return None
    share = number(value, expected)
    if not 0 < share <= 1:
        raise wrong(expected)
    return share


_Fraction = Annotated[
    Fraction | None, PlainValidator(_fraction), WithJsonSchema({**_NUMBER_OR_TEXT, "x-type": 'share or "auto"'})
]


def _release(value: Any) -> int | str:
    if value in ("line", "bottleneck"):
        return str(value)
    try:
        return rate(value)
    except Exception:
        raise wrong('"line", "bottleneck", or a rate such as "1Gbit/s"') from None


_Release = Annotated[
    int | str, PlainValidator(_release), WithJsonSchema({"type": "string", "x-type": '"line", "bottleneck" or rate'})
]


class _Delay(Table):
    delay_difference: _Difference = setting("auto", examples=["16ms"])
    """Surplus of the old path's one-way delay, as whoever acts believes. "auto": propagation and a full packet's time
    on each line; never negative."""
    error: _Error = setting(0, examples=["10%", "-10%"])
    """Its relative mistake: "10%" takes it for a tenth larger."""


class HoldBuffer(_Delay):
    """The moving router keeps packets back until the old path is empty."""

    kind: Literal["hold_buffer"]
    """Kind of mitigation."""
    queue: Literal["own", "path", "none"] = setting("own", examples=["path"])
    """Waiting packets added to the difference: of the moving router's own queue, of all queues of the old path (which
    no router knows), or none."""
    release: _Release = setting("line", examples=["bottleneck", "1Gbit/s"])
    """Rate of held packets: of the new line, of the new path's slowest, or given."""
    buffer: PositiveSize | None = setting(None, examples=["10MB"])
    """Most bytes held; the rest is dropped. When absent: no bound."""


class DelayEqualization(_Delay):
    """A delay line before the lightpath begins with the difference and is shortened slowly."""

    kind: Literal["delay_equalization"]
    """Kind of mitigation."""
    share: _Share = setting("1%", examples=["1%", 0.05])
    """Surplus that leaves over what comes: by that the ACK clock speeds up."""
    queue: Literal["own", "path", "none"] = setting("own", examples=["path"])
    """As of a hold buffer."""
    buffer: PositiveSize | None = setting(None, examples=["10MB"])
    """As of a hold buffer."""


class CwndReduction(_Delay):
    """Senders reduce their windows to what the shorter path holds; then the move follows."""

    kind: Literal["cwnd_reduction"]
    """Kind of mitigation."""
    cwnd_fraction: _Fraction = setting("auto", examples=["60%"])
    """Part that is kept. "auto": (RTT - difference) / RTT, smoothed."""
    lead: _Difference = setting("auto", examples=["5ms"])
    """From the command to the move. "auto": the delay from the sender to the moving router."""
    restore: PositiveSpan | None = setting(None, examples=["100ms"])
    """Gives the window back so long after the move. When absent: the congestion control grows it."""


class ReorderingTolerance(_Delay):
    """Senders wait longer before they take a late packet for lost."""

    kind: Literal["reordering_tolerance"]
    """Kind of mitigation."""
    by: Literal["dupthresh", "reo_wnd"] = setting("dupthresh", examples=["reo_wnd"])
    """"dupthresh": the difference raises duplicate ACK threshold and RACK's window, which no Linux can be told.
    "reo_wnd": RACK waits a quarter of the least RTT whatever the duplicate ACKs (tcp_recovery = 5)."""
    duration: PositiveSpan | None = setting(None, examples=["200ms"])
    """From the move on. When absent: two RTT and the difference."""


Mitigation = Annotated[
    HoldBuffer | DelayEqualization | CwndReduction | ReorderingTolerance,
    Tagged(
        (
            ("hold_buffer", HoldBuffer),
            ("delay_equalization", DelayEqualization),
            ("cwnd_reduction", CwndReduction),
            ("reordering_tolerance", ReorderingTolerance),
        ),
        key="kind",
        default=None,
        short="kind",
        expected='"hold_buffer", "delay_equalization", "cwnd_reduction" or "reordering_tolerance", '
        "a table with such a kind, or a list of them",
    ),
]


ManagersMitigation = Annotated[
    HoldBuffer | DelayEqualization | CwndReduction,
    Tagged(
        (("hold_buffer", HoldBuffer), ("delay_equalization", DelayEqualization), ("cwnd_reduction", CwndReduction)),
        key="kind",
        default=None,
        short="kind",
        expected='"hold_buffer", "delay_equalization" or "cwnd_reduction", a table with such a kind, or a list of them',
    ),
]


@dataclass(frozen=True, eq=False)
class _OneOrMore:
    """Annotates a list that may be written as its only entry."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._as_list, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        items = dict(handler(schema))["items"]
        return {"anyOf": [*items["anyOf"], {"type": "array", "items": items}]}

    def _as_list(self, value: Any) -> Any:
        return value if isinstance(value, list) else [value]


Mitigations = Annotated[list[Mitigation], _OneOrMore()]
ManagersMitigations = Annotated[list[ManagersMitigation], _OneOrMore()]


def conflict(mitigations: Sequence[HoldBuffer | DelayEqualization | CwndReduction | ReorderingTolerance]) -> str | None:
    """Return the expected text if kinds exclude each other, else None."""
    kinds = [mitigation.kind for mitigation in mitigations]
    for kind in kinds:
        if kinds.count(kind) > 1:
            return f'"{kind}" once'
    if "hold_buffer" in kinds and "delay_equalization" in kinds:
        return 'one of "hold_buffer" and "delay_equalization": a router has one delay line for a move'
    return None
