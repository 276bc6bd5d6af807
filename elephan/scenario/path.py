"""Paths: the short form (`[path]`) and the long form (`[[node]]`, `[[link]]`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema

from elephan.scenario.gateway import Gateway
from elephan.scenario.line import JitterOrText, Loss, Queue
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import Mtu, Positive, Rate, Span, parse_rate, rate
from elephan.scenario.table import Name, Table, Tagged, setting

_FACTOR = Positive(1_000_000, "4")


def _access(value: Any) -> Any:
    expected = 'a rate such as "10Gbit/s", a multiple of the path\'s rate such as "4x", or "none"'
    if not isinstance(value, str):
        raise wrong(expected)
    text = value.strip()
    if text == "none":
        return None
    if text.endswith("x"):
        try:
            return _FACTOR.check(text[:-1])
        except Exception:
            raise wrong(expected) from None
    try:
        parse_rate(value)
    except Exception:
        raise wrong(expected) from None
    return rate(value)


#: None: no access links; a Fraction: multiple of the path's rate; else bit/s.
_Access = Annotated[
    Any, PlainValidator(_access), WithJsonSchema({"type": "string", "x-type": "rate, multiple or none"})
]


EMULATORS = ("elephan", "netem")


def _emulator(value: Any) -> str:
    if value not in EMULATORS:
        raise wrong(" or ".join(f'"{name}"' for name in EMULATORS))
    return str(value)


class ReverseLine(Table):
    """Settings of the way back that differ from forward."""

    bandwidth: Rate | None = setting(None, examples=["100Mbit/s"])
    """Rate of the way back. When absent: as forward."""
    queue: Queue | None = setting(None, examples=["50 packets"])
    """Queue of the way back. When absent: as forward."""
    loss: Loss | None = setting(None, examples=[1e-5])
    """Loss on the way back. When absent: none, whatever the loss forward is."""
    jitter: JitterOrText | None = setting(None, examples=["1ms"])
    """Jitter of the way back. When absent: as forward."""


class Path(Table):
    """The short form: two sites, "left" and "right", with one line between them."""

    bandwidth: Rate = setting(examples=["1Gbit/s"])
    """Rate of the line, in bits of IP packets per second; both directions."""
    rtt: Span = setting(examples=["67ms"])
    """Propagation round-trip time, half of it each way."""
    loss: Loss = setting(0, examples=[1e-4])
    """Loss on the line from left to right, after the queue. The way back loses nothing unless `reverse.loss` says."""
    queue: Queue = setting("1bdp", examples=["100 packets"])
    """Queue before the line; each direction has its own."""
    mtu: Mtu = setting("1500B", examples=["9000B"])
    """Largest IP packet."""
    jitter: JitterOrText | None = setting(None, examples=["1ms"])
    """Random extra delay, each direction its own. When absent: none."""
    access: _Access = setting("none", examples=["4x", "10Gbit/s"])
    """Rate of the links between each flow's hosts and the line, without delay, loss or drops. "none": hosts sit on the
    line; else each flow has a host of its own at either end."""
    reverse: ReverseLine | None = setting(None, examples=[{"loss": 1e-5}])
    """Settings of the way back that differ from forward. When absent: as forward, without its loss."""
    emulator: Annotated[str, PlainValidator(_emulator), WithJsonSchema({"enum": [*EMULATORS]})] = setting(
        "elephan", examples=["netem"]
    )
    """Carrier of packets on the backend kernel and in `elephan path`: elephan's link model, or tc-netem(8), which does
    less (docs/howto/emulated-path.md)."""


class Node(Table):
    """A host or router."""

    kind: Literal["host"] = setting("host", examples=["host"])
    """Kind of node."""
    name: Name = setting(examples=["r1"])
    """Unique name."""


AnyNode = Annotated[
    Node | Gateway,
    Tagged(
        (("host", Node), ("gateway", Gateway)),
        key="kind",
        default="host",
        short=None,
        expected='a table with a name, and kind = "gateway" for a gateway',
    ),
]


class ReverseLink(ReverseLine):
    """Settings of the direction from `to` to `from` that differ from forward."""

    delay: Span | None = setting(None, examples=["10ms"])
    """One-way propagation delay of the way back. When absent: as forward."""


class Link(Table):
    """The long form: a link between two nodes, with directions NAME.forward and NAME.reverse."""

    name: Name | None = setting(None, examples=["lightpath"])
    """Unique name. When absent: FROM-TO."""
    from_: Name = setting(alias="from", examples=["r1"])
    """Node where the forward direction begins."""
    to: Name = setting(examples=["r2"])
    """Node where the forward direction ends."""
    bandwidth: Rate = setting(examples=["10Gbit/s"])
    """Rate, in bits of IP packets per second; both directions."""
    delay: Span = setting("0ms", examples=["5ms"])
    """One-way propagation delay; both directions."""
    loss: Loss = setting(0, examples=[1e-4])
    """Loss of the forward direction, after the queue. The way back loses nothing unless `reverse.loss` says."""
    queue: Queue = setting("1bdp", examples=["500 packets"])
    """Queue before the line; each direction has its own. One bdp takes the longest propagation RTT of the flows that
    cross it, else the link's own."""
    mtu: Mtu = setting("1500B", examples=["9000B"])
    """Largest IP packet."""
    jitter: JitterOrText | None = setting(None, examples=["1ms"])
    """Random extra delay, each direction its own. When absent: none."""
    duplex: bool = setting(True, examples=[False])
    """Add the way back, from `to` to `from`."""
    reverse: ReverseLink | None = setting(None, examples=[{"bandwidth": "1Gbit/s"}])
    """Settings of the way back that differ from forward. When absent: as forward, without its loss."""
