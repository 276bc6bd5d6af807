"""Paths: the short form (`[path]`) and the long form (`[[node]]`, `[[link]]`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema, model_validator

from elephan.scenario.gateway import Gateway
from elephan.scenario.host_cost import OVERHEAD_MAX_BYTES, ReceiveCost, SendCost
from elephan.scenario.line import JitterOrText, Loss, PolicerOrNone, Queue
from elephan.scenario.line_type import LineOrText, check_line
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
    """The way back, where it differs from forward."""

    bandwidth: Rate | None = setting(None, examples=["100Mbit/s"])
    """Rate back. When absent: as forward."""
    queue: Queue | None = setting(None, examples=["50 packets"])
    """Queue back. When absent: as forward."""
    loss: Loss | None = setting(None, examples=[1e-5])
    """Loss back. When absent: none."""
    jitter: JitterOrText | None = setting(None, examples=["1ms"])
    """Jitter back. When absent: as forward."""
    policer: PolicerOrNone = setting(None, examples=[{"rate": "10Mbit/s", "burst": "32KiB"}])
    """Policer back, or "none". When absent: none."""


class Path(Table):
    """Two sites, "left" and "right", with one line between them."""

    bandwidth: Rate | None = setting(None, examples=["1Gbit/s"])
    """Bits of IP packets per second, each direction; this or `line` is required. When absent: the line's."""
    line: LineOrText | None = setting(None, examples=["10gbe-wan-phy"])
    """Line by its type, whose frames take their share of it. When absent: IP packets alone, at `bandwidth`."""
    rtt: Span = setting(examples=["67ms"])
    """Propagation, half of it each way."""
    loss: Loss = setting(0, examples=[1e-4])
    """Loss from left to right, after the queue; back only by `reverse.loss`."""
    queue: Queue = setting("1bdp", examples=["100 packets"])
    """One for each direction."""
    mtu: Mtu = setting("1500B", examples=["9000B"])
    """Largest IP packet."""
    jitter: JitterOrText | None = setting(None, examples=["1ms"])
    """Random extra delay, one for each direction. When absent: none."""
    policer: PolicerOrNone = setting(None, examples=[{"rate": "10Mbit/s", "burst": "32KiB"}])
    """Policer from left to right, before the queue, or "none"; back only by `reverse.policer`. When absent: none."""
    access: _Access = setting("none", examples=["4x", "10Gbit/s"])
    """Rate of the links between each flow's own two hosts and the line, without delay, loss or drops; a multiple is of
    the line's rate. "none": hosts sit on the line."""
    reverse: ReverseLine | None = setting(None, examples=[{"loss": 1e-5}])
    """The way back, where it differs from forward. When absent: as forward, without its loss and policer."""
    emulator: Annotated[str, PlainValidator(_emulator), WithJsonSchema({"enum": [*EMULATORS]})] = setting(
        "elephan", examples=["netem"]
    )
    """On the backend kernel and in `elephan path`: elephan's link model, or tc-netem(8), which does less
    (docs/howto/emulated-path.md)."""

    @model_validator(mode="after")
    def _one_rate(self) -> Path:
        check_line(self.bandwidth, self.line, self.mtu, self.reverse.bandwidth if self.reverse else None)
        return self


class Node(Table):
    """A host or router. With `send` or `receive` the host itself takes time: it appears as two links of its own,
    NAME.send and NAME.receive, which flows and background from and to it pass."""

    kind: Literal["host"] = setting("host", examples=["host"])
    """Kind of node."""
    name: Name = setting(examples=["r1"])
    """Unique name."""
    send: SendCost | None = setting(None, examples=[{"packet": "4.11us", "rate": "7.886Gbit/s"}])
    """Time that it takes to send. When absent: none."""
    receive: ReceiveCost | None = setting(None, examples=[{"packet": "4.11us", "rate": "7.886Gbit/s"}])
    """Time that it takes to receive. When absent: none."""

    @model_validator(mode="after")
    def _times_fit(self) -> Node:
        for key, cost in (("send", self.send), ("receive", self.receive)):
            if cost is not None and cost.packet_bytes > OVERHEAD_MAX_BYTES:
                raise wrong(f"less: at this rate it is more than {OVERHEAD_MAX_BYTES}B", key, "packet")
        return self


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
    """The way back, where it differs from forward."""

    delay: Span | None = setting(None, examples=["10ms"])
    """Propagation delay back. When absent: as forward."""


class Link(Table):
    """A link between two nodes, with directions NAME.forward and NAME.reverse."""

    name: Name | None = setting(None, examples=["lightpath"])
    """Unique name. When absent: FROM-TO."""
    from_: Name = setting(alias="from", examples=["r1"])
    """Node at forward's beginning."""
    to: Name = setting(examples=["r2"])
    """Node at forward's end."""
    bandwidth: Rate | None = setting(None, examples=["10Gbit/s"])
    """Bits of IP packets per second, each direction; this or `line` is required. When absent: the line's."""
    line: LineOrText | None = setting(None, examples=["10gbe-wan-phy"])
    """Line by its type, whose frames take their share of it. When absent: IP packets alone, at `bandwidth`."""
    delay: Span = setting("0ms", examples=["5ms"])
    """Propagation, each direction."""
    loss: Loss = setting(0, examples=[1e-4])
    """Loss forward, after the queue; back only by `reverse.loss`."""
    queue: Queue = setting("1bdp", examples=["500 packets"])
    """One for each direction. A bdp takes the longest propagation RTT of the flows that cross it, else the link's
    own."""
    mtu: Mtu = setting("1500B", examples=["9000B"])
    """Largest IP packet."""
    jitter: JitterOrText | None = setting(None, examples=["1ms"])
    """Random extra delay, one for each direction. When absent: none."""
    policer: PolicerOrNone = setting(None, examples=[{"rate": "10Mbit/s", "burst": "32KiB"}])
    """Policer forward, before the queue, or "none"; back only by `reverse.policer`. When absent: none."""
    duplex: bool = setting(True, examples=[False])
    """Add the way back, from `to` to `from`."""
    reverse: ReverseLink | None = setting(None, examples=[{"bandwidth": "1Gbit/s"}])
    """The way back, where it differs from forward. When absent: as forward, without its loss and policer."""

    @model_validator(mode="after")
    def _one_rate(self) -> Link:
        check_line(self.bandwidth, self.line, self.mtu, self.reverse.bandwidth if self.reverse else None)
        return self


def rate_bps(link: Path | Link) -> int:
    """Return the rate forward, bit/s: of IP packets, or of a line's frames and what lies between them."""
    if link.line is not None:
        return link.line.rate_bps
    assert link.bandwidth is not None, "a path has one of bandwidth and line"
    return link.bandwidth
