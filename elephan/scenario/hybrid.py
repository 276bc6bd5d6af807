"""A hybrid network: lightpaths beside the IP ways, and the manager that moves flows to them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema, model_validator

from elephan.scenario.mitigation import ManagersMitigations, conflict
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import (
    U32_MAX,
    PositiveSpan,
    Rate,
    Size,
    Span,
    Whole,
    number,
)
from elephan.scenario.table import Name, Table, setting

AS_MUCH_AGAIN = 2000
"""Tail index, thousandths, at which a flow is expected to send as much again as it has sent."""


def _part(value: Any) -> int:
    """A share from 0 to 1, parts per million."""
    expected = 'a share from 0 to 1, such as "90%" or 0.9'
    share = number(value, expected)
    if not 0 <= share <= 1:
        raise wrong(expected)
    return round(share * 10**6)


def _errors(value: Any) -> int:
    """Standard errors, thousandths."""
    expected = "a number from 0 to 10, such as 1 or 2.5"
    errors = number(value, expected)
    if not 0 <= errors <= 10:
        raise wrong(expected)
    return round(errors * 1000)


def _tail(value: Any) -> int:
    """A tail index, thousandths."""
    expected = "a number above 1 and at most 10, such as 1.2"
    index = round(number(value, expected) * 1000)
    if not 1000 < index <= 10_000:
        raise wrong(expected)
    return index


def _priorities(value: Any) -> dict[str, int]:
    expected = "a whole number from -1000 to 1000 for each flow's name, such as { backup = 2 }"
    if not isinstance(value, dict):
        raise wrong(expected)
    for name, priority in value.items():
        if isinstance(priority, bool) or not isinstance(priority, int) or not -1000 <= priority <= 1000:
            raise wrong(expected, name)
    return value


_NUMBER_OR_TEXT = {"type": ["number", "string"]}
_Part = Annotated[int, PlainValidator(_part), WithJsonSchema({**_NUMBER_OR_TEXT, "x-type": "share"})]
_Errors = Annotated[int, PlainValidator(_errors), WithJsonSchema({**_NUMBER_OR_TEXT, "x-type": "number 0 to 10"})]
_Tail = Annotated[int, PlainValidator(_tail), WithJsonSchema({**_NUMBER_OR_TEXT, "x-type": "number 1 to 10"})]
_Priorities = Annotated[
    dict[str, int],
    PlainValidator(_priorities),
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"type": "integer"}, "x-type": "table of whole numbers by flow"}
    ),
]


class Lightpath(Table):
    """A lightpath that the manager may set up: links between two routers, for nothing but what it moves there.

    Its links are no part of any way that is found without being named.
    """

    name: Name = setting(examples=["lambda1"])
    """Unique name."""
    route: list[str] = setting(examples=[["r1", "r3"], ["r1", "lambda", "r3"]])
    """From the router where flows leave their IP way to the one where they come back, written as a flow's route. Only
    data goes over it; ACKs stay."""
    capacity: Rate | None = setting(None, examples=["10Gbit/s"])
    """What the manager may put on it. When absent: the rate of its slowest link."""
    set_up: Span = setting("0s", examples=["5s"])
    """From the decision to set it up until it carries."""
    cost: Size = setting("0B", examples=["500MB"])
    """What a set-up costs, as the amount of data that moving a flow there must gain before it is worth it."""


class Manager(Table):
    """Who moves elephants to lightpaths: the operator's policy. Long form only, with at least one `[[lightpath]]`."""

    rate: Rate = setting(examples=["100Mbit/s"])
    """Rate in the latest interval, in bits of IP packets, at which a flow is an elephant ..."""
    volume: Size = setting("0B", examples=["50MB"])
    """... when it has also sent this much."""
    interval: PositiveSpan = setting("1s", examples=["5s"])
    """Time between two looks at the counters."""
    sampling_rate: Annotated[int, Whole(1, U32_MAX)] = setting(1, examples=[1000])
    """One packet in so many is sampled (sFlow, sampled NetFlow or IPFIX); 1: all are counted."""
    confidence_sigmas: _Errors = setting(1, examples=[2.5])
    """So many standard errors are taken off an estimate from samples before it is compared with `rate` and `volume`."""
    flow_table_size: Annotated[int, Whole(1, 10_000_000)] = setting(1024, examples=[64])
    """Flows in the table at most (Space-Saving); the flow counted least makes place."""
    inactive_timeout: PositiveSpan = setting("10s", examples=["15s"])
    """A flow of which nothing was seen for so long is over."""
    return_rate: Rate | None = setting(None, examples=["50Mbit/s"])
    """Mean rate of four intervals below which a moved flow goes back. When absent: half of `rate`."""
    min_dwell_time: PositiveSpan = setting("30s", examples=["1min"])
    """A flow stays where it is for so long after each move: no flapping."""
    lightpath_timeout: Span = setting("10s", examples=["1min"])
    """A lightpath that carries nothing is kept for so long."""
    lightpaths: Annotated[int, Whole(0, 1000)] | None = setting(None, examples=[1])
    """Lightpaths set up at once at most; 0: the manager looks on. When absent: all."""
    max_utilization: _Part = setting("90%", examples=["80%"])
    """Part of a lightpath's capacity that is given away; a flow that is alone there may have all of it."""
    offload_weight: _Part = setting("10%", examples=["50%"])
    """What a byte taken off the IP level is worth, as a share of a byte delivered ..."""
    congestion_threshold: _Part = setting("90%", examples=["70%"])
    """... unless the slowest link of the bypassed IP way is loaded so much: then others wait for the room, and it is
    worth as much."""
    refuse: bool = setting(True, examples=[False])
    """Refuse moves that are forecast to cost more than they gain."""
    observation_window: PositiveSpan = setting("10s", examples=["30s"])
    """Time after a move during which what a flow lacks is the move's cost."""
    cc_beta: _Part = setting(0.7, examples=[0.5])
    """Part of the window that the flows' congestion control keeps at a loss, for the forecast (CUBIC 0.7, Reno 0.5)."""
    pareto_shape: _Tail = setting(2, examples=[1.2])
    """Index of the Pareto tail of flows' sizes: a flow that has sent x is expected to send x / (tail - 1) more. 2: as
    much again; the nearer to 1, the more."""
    mitigations: ManagersMitigations | None = setting(None, examples=["hold_buffer", ["hold_buffer", "cwnd_reduction"]])
    """What may be done about a move to a lightpath so that it does not hurt: mitigations as an event's, of which the
    manager chooses what the move needs. A hold's or equaliser's `buffer` is what the moving router can keep back for a
    lightpath; `trim` says that senders listen. When absent: flows are moved as they are."""
    priorities: _Priorities = setting({}, examples=[{"backup": 2}])
    """Priority of flows by name; more goes first, and may take a place on a lightpath from less. When absent: 0."""

    @model_validator(mode="after")
    def _consistent(self) -> Manager:
        if self.return_rate is not None and self.return_rate >= self.rate:
            raise wrong("a rate below rate: a flow between the two stays where it is", "return_rate")
        if self.inactive_timeout < self.interval:
            raise wrong("a time not below interval", "inactive_timeout")
        problem = conflict(self.mitigations or [])
        if problem is not None:
            raise wrong(problem, "mitigations")
        return self
