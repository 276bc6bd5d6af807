"""What keeps a move to a shorter way from hurting: at the router that moves, or at the senders."""

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
    """By how much the old way is longer, one way, as whoever acts believes. "auto": propagation and the time of a full
    packet on each line of the old way, less those of the new one; nothing when the new way is the longer one."""
    error: _Error = setting(0, examples=["10%", "-10%"])
    """By how much that is mistaken: "10%" takes the difference for a tenth larger than it is."""


class HoldBuffer(_Delay):
    """The moving router keeps packets back until the old way is empty, then lets them go."""

    kind: Literal["hold_buffer"]
    """Kind of mitigation."""
    queue: Literal["own", "path", "none"] = setting("own", examples=["path"])
    """What waits on the old way at the moment of the move and is added to the difference. "own": in the moving router's
    own queue; "path": in all queues of the old way up to where the ways meet again, which no router knows; "none":
    nothing."""
    release: _Release = setting("line", examples=["bottleneck", "1Gbit/s"])
    """How fast what was kept back is let go. "line": as the new line sends; "bottleneck": as the slowest line of the
    new way, up to the receiver, does; or a rate. Once nothing is kept back, packets pass as they come."""
    buffer: PositiveSize | None = setting(None, examples=["10MB"])
    """Bytes that it keeps back at most; what does not fit is dropped. When absent: no bound."""


class DelayEqualization(_Delay):
    """A delay line before the lightpath that begins with the difference and is shortened slowly."""

    kind: Literal["delay_equalization"]
    """Kind of mitigation."""
    share: _Share = setting("1%", examples=["1%", 0.05])
    """By how much more than comes leaves it while it is shortened: the ACK clock speeds up by that and no more."""
    queue: Literal["own", "path", "none"] = setting("own", examples=["path"])
    """As of a hold buffer."""
    buffer: PositiveSize | None = setting(None, examples=["10MB"])
    """As of a hold buffer."""


class CwndReduction(_Delay):
    """Senders are told to shrink their windows to what the shorter way holds; the move follows when it has come."""

    kind: Literal["cwnd_reduction"]
    """Kind of mitigation."""
    cwnd_fraction: _Fraction = setting("auto", examples=["60%"])
    """Part of the window that is kept. "auto": (RTT - difference) / RTT by the sender's smoothed RTT."""
    lead: _Difference = setting("auto", examples=["5ms"])
    """From telling the senders to the move. "auto": the propagation delay from the sender to the moving router, after
    which the pause in its packets is there."""
    restore: PositiveSpan | None = setting(None, examples=["100ms"])
    """From the move to giving the window back. When absent: it is left to the congestion control to grow."""


class ReorderingTolerance(_Delay):
    """Senders are told to be patient with packets that are late."""

    kind: Literal["reordering_tolerance"]
    """Kind of mitigation."""
    by: Literal["dupthresh", "reo_wnd"] = setting("dupthresh", examples=["reo_wnd"])
    """What is changed. "dupthresh": the duplicate ACK threshold, and RACK's reordering window, are raised by the
    difference, so that nothing is taken for lost; no Linux can be told that of a connection that runs. "reo_wnd": with
    `recovery = "rack"`, RACK waits for a quarter of the least RTT whatever the number of duplicate ACKs (tcp_recovery =
    5).
    """
    duration: PositiveSpan | None = setting(None, examples=["200ms"])
    """For how long from the move on. When absent: twice the sender's RTT, and the difference."""


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
