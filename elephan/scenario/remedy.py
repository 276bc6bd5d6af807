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


def _keep(value: Any) -> Fraction | None:
    expected = '"auto", or a share above 0 and at most 1, such as "60%"'
    if value == "auto":
        return None
    share = number(value, expected)
    if not 0 < share <= 1:
        raise wrong(expected)
    return share


_Keep = Annotated[
    Fraction | None, PlainValidator(_keep), WithJsonSchema({**_NUMBER_OR_TEXT, "x-type": 'share or "auto"'})
]


def _release(value: Any) -> int | str:
    if value in ("line", "way"):
        return str(value)
    try:
        return rate(value)
    except Exception:
        raise wrong('"line", "way", or a rate such as "1Gbit/s"') from None


_Release = Annotated[
    int | str, PlainValidator(_release), WithJsonSchema({"type": "string", "x-type": '"line", "way" or rate'})
]


class _Delay(Table):
    delay_difference: _Difference = setting("auto", examples=["16ms"])
    """By how much the old way is longer, one way, as whoever acts believes. "auto": propagation and the time of a full
    packet on each line of the old way, less those of the new one; nothing when the new way is the longer one."""
    error: _Error = setting(0, examples=["10%", "-10%"])
    """By how much that is mistaken: "10%" takes the difference for a tenth larger than it is."""


class Hold(_Delay):
    """The moving router keeps packets back until the old way is empty, then lets them go."""

    kind: Literal["hold"]
    """Kind of remedy."""
    queue: Literal["own", "way", "none"] = setting("own", examples=["way"])
    """What waits on the old way at the moment of the move and is added to the difference. "own": in the moving router's
    own queue; "way": in all queues of the old way up to where the ways meet again, which no router knows; "none":
    nothing."""
    release: _Release = setting("line", examples=["way", "1Gbit/s"])
    """How fast what was kept back is let go. "line": as the new line sends; "way": as the slowest line of the new way,
    up to the receiver, does; or a rate. Once nothing is kept back, packets pass as they come."""
    buffer: PositiveSize | None = setting(None, examples=["10MB"])
    """Bytes that it keeps back at most; what does not fit is dropped. When absent: no bound."""


class Equalise(_Delay):
    """A delay line before the lightpath that begins with the difference and is shortened slowly."""

    kind: Literal["equalise"]
    """Kind of remedy."""
    share: _Share = setting("1%", examples=["1%", 0.05])
    """By how much more than comes leaves it while it is shortened: the ACK clock speeds up by that and no more."""
    queue: Literal["own", "way", "none"] = setting("own", examples=["way"])
    """As of a hold."""
    buffer: PositiveSize | None = setting(None, examples=["10MB"])
    """As of a hold."""


class Trim(_Delay):
    """Senders are told to shrink their windows to what the shorter way holds; the move follows when it has come."""

    kind: Literal["trim"]
    """Kind of remedy."""
    keep: _Keep = setting("auto", examples=["60%"])
    """Part of the window that is kept. "auto": (RTT - difference) / RTT by the sender's smoothed RTT."""
    lead: _Difference = setting("auto", examples=["5ms"])
    """From telling the senders to the move. "auto": the propagation delay from the sender to the moving router, after
    which the pause in its packets is there."""
    restore: PositiveSpan | None = setting(None, examples=["100ms"])
    """From the move to giving the window back. When absent: it is left to the congestion control to grow."""


class Tolerate(_Delay):
    """Senders are told to be patient with packets that are late."""

    kind: Literal["tolerate"]
    """Kind of remedy."""
    by: Literal["degree", "wait"] = setting("degree", examples=["wait"])
    """What is changed. "degree": the reordering degree, and RACK's reordering window, are raised by the difference, so
    that nothing is taken for lost; no Linux can be told that of a connection that runs. "wait": with `recovery =
    "rack"`, RACK waits for a quarter of the least RTT whatever the number of duplicate ACKs (tcp_recovery = 5).
    """
    duration: PositiveSpan | None = setting(None, examples=["200ms"])
    """For how long from the move on. When absent: twice the sender's RTT, and the difference."""


Remedy = Annotated[
    Hold | Equalise | Trim | Tolerate,
    Tagged(
        (("hold", Hold), ("equalise", Equalise), ("trim", Trim), ("tolerate", Tolerate)),
        key="kind",
        default=None,
        short="kind",
        expected='"hold", "equalise", "trim" or "tolerate", a table with such a kind, or a list of them',
    ),
]


ManagersRemedy = Annotated[
    Hold | Equalise | Trim,
    Tagged(
        (("hold", Hold), ("equalise", Equalise), ("trim", Trim)),
        key="kind",
        default=None,
        short="kind",
        expected='"hold", "equalise" or "trim", a table with such a kind, or a list of them',
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


Remedies = Annotated[list[Remedy], _OneOrMore()]
ManagersRemedies = Annotated[list[ManagersRemedy], _OneOrMore()]


def conflict(remedies: Sequence[Hold | Equalise | Trim | Tolerate]) -> str | None:
    """What would be right where kinds exclude each other."""
    kinds = [remedy.kind for remedy in remedies]
    for kind in kinds:
        if kinds.count(kind) > 1:
            return f'"{kind}" once'
    if "hold" in kinds and "equalise" in kinds:
        return 'one of "hold" and "equalise": a router has one delay line for a move'
    return None
