"""Duration, repetitions and measurements of a run; other traffic; changes in time."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema, model_validator

from elephan.run_spec.types import CodecSpec
from elephan.scenario.active import Active, TimeOfDay
from elephan.scenario.line import Loss
from elephan.scenario.mitigation import Mitigations, conflict
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import U32_MAX, U64_MAX, Load, PositiveSpan, Rate, Span, Whole, parse_size, parse_span
from elephan.scenario.table import Name, Table, one_of, setting

REPETITIONS_MAX = 100_000


class Run(Table):
    """Length, seed and repetitions."""

    duration: PositiveSpan = setting(examples=["60s"])
    """The run ends after this time."""
    stop_when_done: bool = setting(True, examples=[False])
    """End when every flow has delivered all."""
    seed: Annotated[int, Whole(0, U64_MAX)] = setting(1, examples=[7])
    """Seed of the first repetition."""
    repetitions: Annotated[int, Whole(1, REPETITIONS_MAX)] = setting(1, examples=[10])
    """Runs of each point, by different seeds."""
    exact: bool = setting(False, examples=[True])
    """Simulate all of a long copy, and each frame of constant traffic."""
    time_of_day: TimeOfDay = setting("00:00", examples=["21:30"])
    """Time of day at which the run begins: `active` by hours counts from it."""


def _series(value: Any) -> int | None:
    expected = 'a time such as "10ms", or false'
    if value is False:
        return None
    try:
        span = parse_span(value)
    except Exception:
        raise wrong(expected) from None
    if span < 1_000:
        raise wrong("at least 1us, or false")
    return span


class Window(Table):
    """Interval of the run with metrics of its own: goodput, drops, retransmissions, window reductions, mean window."""

    name: Name = setting(examples=["after-move"])
    """Unique name."""
    from_: Span = setting(alias="from", examples=["60s"])
    """Beginning, since the start of the run, or since `event`."""
    to: PositiveSpan = setting(examples=["61s"])
    """End, likewise."""
    event: Annotated[int, Whole(0, U32_MAX)] | None = setting(None, examples=[0])
    """Event from which the times count, by its place in the file, from 0: that of its move, if it moves something.
    When absent: the start of the run."""

    @model_validator(mode="after")
    def _ascending(self) -> Window:
        if self.to <= self.from_:
            raise wrong("a time after from", "to")
        return self


class Measure(Table):
    """Series, warm-up, windows and capture."""

    series: Annotated[
        int | None, PlainValidator(_series), WithJsonSchema({"type": ["string", "boolean"], "x-type": "time or false"})
    ] = setting("100ms", examples=["10ms", False])
    """Interval of time series; false: none."""
    warmup: Span = setting("0s", examples=["5s"])
    """Start that goodput, shares, latency, lag and data at risk leave out; its messages have metrics `startup_...`.
    Counters are of the whole run."""
    windows: list[Window] = setting([], examples=[[{"name": "after-move", "from": "60s", "to": "61s"}]])
    """Intervals with metrics of their own."""
    pcap_node: Name | None = setting(None, examples=["left"])
    """Node whose packets `--pcap FILE` takes. When absent: the first flow's sender."""
    pcap_packets: Annotated[int, Whole(1, U64_MAX)] | None = setting(None, examples=[100000])
    """Packets captured, headers alone but between Fibre Channel gateways. When absent: no bound."""


def _packet(value: Any) -> int:
    size = parse_size(value)
    # An IPv4 and a UDP header are 28 bytes; the total length field ends at 65,535.
    if not 28 <= size <= 65535:
        raise wrong('a size from 28B to 65535B, such as "1500B"')
    return size


_Packet = Annotated[int, PlainValidator(_packet), WithJsonSchema({"type": "string", "x-type": "size 28B to 65535B"})]


def _mix(value: Any) -> dict[int, int]:
    expected = 'IP packets and their numbers in a round, such as { "1500B" = 9, "46B" = 1 }'
    if not isinstance(value, dict) or not value:
        raise wrong(expected)
    found: dict[int, int] = {}
    for text, number in value.items():
        try:
            size = _packet(text)
        except Exception:
            raise wrong(expected) from None
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= _ROUND_MAX:
            raise wrong(f"a whole number from 1 to {_ROUND_MAX}", text)
        found[size] = found.get(size, 0) + number
    if sum(found.values()) > _ROUND_MAX:
        raise wrong(f"at most {_ROUND_MAX} packets in a round")
    return found


_ROUND_MAX = 1000
"""Most packets of a round."""

_Mix = Annotated[
    dict[int, int],
    PlainValidator(_mix),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 1, "maximum": _ROUND_MAX},
            "minProperties": 1,
            "x-type": "table of packets and numbers",
        }
    ),
]


VOICE_HEADER_BYTES = 40
"""IPv4, UDP and RTP."""

G711_BYTES = (120, 280)
"""IP packets of 10 and 30 ms of G.711."""


class Background(Table):
    """Traffic that does not react to loss, constant or on and off. It may be all that there is in a scenario: constant
    traffic over lines that it does not overload is then counted without its packets, for days at once."""

    name: Name | None = setting(None, examples=["cross"])
    """Unique name. When absent: background1, background2, ... by place."""
    rate: Load = setting(examples=["200Mbit/s", "20%"])
    """While on, in bits of IP packets, or share of the route's slowest line; of a `line` its frames included, so that
    "100%" fills it exactly."""
    packet: _Packet = setting("1500B", examples=["64B"])
    """IP packet; 18 B less than its Ethernet frame."""
    mix: _Mix | None = setting(None, examples=[{"1500B": 9, "46B": 1}])
    """Several sizes, in place of `packet`: numbers in a round, evenly spread. When absent: all alike."""
    start: Span = setting("0s", examples=["10s"])
    """First on."""
    stop: Span | None = setting(None, examples=["20s"])
    """Off for good. When absent: the end of the run."""
    on: PositiveSpan | None = setting(None, examples=["500ms"])
    """Mean time on, exponentially distributed; with `off`. Exact times: `active`. When absent: constantly on."""
    off: PositiveSpan | None = setting(None, examples=["500ms"])
    """Mean time off, exponentially distributed; with `on`."""
    active: Active | None = setting(None, examples=[{"on": "5s", "off": "55s"}, "22:00-06:00"])
    """Exact periods, or hours of the day, in which it sends; `on` and `off` count time in these. When absent:
    always."""
    codec: Literal["g711", "g711_without_plc", "g729a", "none"] | None = setting(None, examples=["g729a", "none"])
    """Speech in its packets: delay, jitter and loss are judged as those of a telephone call (R and MOS of G.107, see
    Other traffic). When absent: "g711" if all packets are of 120B to 280B (10 to 30 ms of it), else "none"."""
    enabled: bool = setting(True, examples=[False])
    """False: only after an event enables it."""
    direction: str = setting("forward", examples=["reverse"])
    """Short form: as a flow's."""
    from_: Name | None = setting(None, alias="from", examples=["r1"])
    """Long form, required: where it enters."""
    to: Name | None = setting(None, examples=["r2"])
    """Long form, required: where it ends."""
    route: list[str] | None = setting(None, examples=[["r1", "r2"]])
    """Long form: as a flow's."""

    @model_validator(mode="after")
    def _consistent(self) -> Background:
        if self.direction not in ("forward", "reverse"):
            raise wrong('one of "forward", "reverse"', "direction")
        if (self.on is None) != (self.off is None):
            raise wrong("both on and off, or neither", "on" if self.off is None else "off")
        if self.mix is not None and "packet" in self.model_fields_set:
            raise wrong("absent: mix has the sizes", "packet")
        if self.stop is not None and self.stop <= self.start:
            raise wrong("a time after start", "stop")
        if self.codec not in (None, "none") and min(self.round) <= VOICE_HEADER_BYTES:
            raise wrong(f"a size above {VOICE_HEADER_BYTES}B: the IP, UDP and RTP headers around speech", "packet")
        return self

    @property
    def speech(self) -> CodecSpec | None:
        """Codec of the speech that it carries; None: none."""
        if self.codec is not None:
            return None if self.codec == "none" else self.codec
        return "g711" if all(least <= size <= most for size in self.round for least, most in [G711_BYTES]) else None

    @property
    def round(self) -> list[int]:
        """Sizes of a round of packets, bytes: each as evenly spread as it can be (smooth weighted round robin)."""
        numbers = self.mix or {self.packet: 1}
        total = sum(numbers.values())
        due = dict.fromkeys(numbers, 0)
        found = []
        for _ in range(total // math.gcd(*numbers.values())):
            for size, number in numbers.items():
                due[size] += number
            next_size = max(due, key=lambda size: due[size])
            due[next_size] -= total
            found.append(next_size)
        return found


class FlowReaches(Table):
    """A flow first reaches a rate, or with `settled` has kept it for a time without a retransmission."""

    flow: str = setting(examples=["backup", "backup.2"])
    """A flow, or one of its connections."""
    reaches: Load = setting(examples=["900Mbit/s", "95%"])
    """Delivered payload per second; a share is of the slowest line of the flow's first path, as metric `line_share`."""
    over: PositiveSpan = setting("100ms", examples=["1s"])
    """Time of an average: the flow is looked at so often."""
    settled: Span = setting("0s", examples=["30s"])
    """Time for which every average reaches the rate, and the flow sends nothing again. One that fails, or a
    retransmission, starts it anew."""


def _names(value: Any) -> list[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise wrong('a name such as "path", or a list of names')
    return names


_Names = Annotated[
    list[str],
    PlainValidator(_names),
    WithJsonSchema({"type": ["string", "array"], "items": {"type": "string"}, "x-type": "name or list of names"}),
]
_ACTIONS = ("bandwidth", "rtt", "delay", "loss", "link_down", "link_up", "background_on", "background_off", "move")


class Event(Table):
    """A change `at` a time, or `when` a flow first reaches a rate, or has kept it for a time. A link's name ("path" in
    the short form) means both directions (for loss: forward); NAME.forward or NAME.reverse one."""

    at: Span | None = setting(None, examples=["10s"])
    """Its time."""
    when: FlowReaches | None = setting(
        None,
        examples=[
            {"flow": "backup", "reaches": "900Mbit/s"},
            {"flow": "backup", "reaches": "95%", "settled": "30s"},
        ],
    )
    """Its time, by a flow's rate."""
    link: _Names | None = setting(None, examples=["path", "r1-r2.reverse"])
    """Links that `bandwidth`, `delay` and `loss` change. When absent: the path, or the only link."""
    bandwidth: Rate | None = setting(None, examples=["500Mbit/s"])
    """New rate."""
    rtt: Span | None = setting(None, examples=["120ms"])
    """Short form: new round-trip time."""
    delay: Span | None = setting(None, examples=["60ms"])
    """New one-way delay."""
    loss: Loss | None = setting(None, examples=[1e-3])
    """New loss."""
    link_down: _Names | None = setting(None, examples=["path"])
    """Goes down: what is on the line is lost, the queue waits."""
    link_up: _Names | None = setting(None, examples=["path"])
    """Comes up."""
    background_on: _Names | None = setting(None, examples=["cross"])
    """Starts."""
    background_off: _Names | None = setting(None, examples=["cross"])
    """Stops."""
    move: _Names | None = setting(None, examples=["backup", "backup.2"])
    """Long form: flows, connections (counted from 1) or background sources that change their path at the router where
    old and new part. Packets in its queue or past it stay on the old one."""
    route: list[str] | None = setting(None, examples=[["host1", "r1", "r3", "host2"]])
    """With `move`: new path of the data. When absent: data stays."""
    return_route: list[str] | None = setting(None, examples=[["host2", "r3", "r1", "host1"]])
    """With `move`: new path of the ACKs. When absent: ACKs stay."""
    mitigation: Mitigations | None = setting(None, examples=["hold_buffer", ["hold_buffer", "cwnd_reduction"]])
    """With `move` and `route`: one or a list. When absent: none."""

    @model_validator(mode="before")
    @classmethod
    def _one_time_and_a_change(cls, value: object) -> object:
        if isinstance(value, dict):
            if len(one_of(value, ("at", "when"))) != 1:
                raise wrong("exactly one of at and when", *one_of(value, ("when",)))
            if not one_of(value, _ACTIONS):
                raise wrong("at least one change: " + ", ".join(_ACTIONS))
            if "link" in value and not one_of(value, ("bandwidth", "delay", "loss")):
                raise wrong("beside it bandwidth, delay or loss", "link")
            ways = one_of(value, ("route", "return_route"))
            if "move" in value and not ways:
                raise wrong("beside it route, return_route or both: the new way", "move")
            if ways and "move" not in value:
                raise wrong("beside it move: what takes this way", ways[0])
            if "mitigation" in value and ("move" not in value or "route" not in value):
                raise wrong("beside it move and route: it is for data that moves", "mitigation")
        return value

    @model_validator(mode="after")
    def _mitigations_agree(self) -> Event:
        problem = conflict(self.mitigation or [])
        if problem is not None:
            raise wrong(problem, "mitigation")
        return self
