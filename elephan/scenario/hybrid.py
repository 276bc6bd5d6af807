"""A hybrid network: lightpaths beside the IP routes, and the manager that moves flows to them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema, model_validator

from elephan.run_spec.defaults import MANAGER_PARETO_SHAPE_E3
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
    of_thousandths,
)
from elephan.scenario.table import Name, Table, setting


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
        {"type": "object", "additionalProperties": {"type": "integer"}, "x-type": "table of integers by flow"}
    ),
]


class Lightpath(Table):
    """Links between two routers that only the manager uses."""

    name: Name = setting(examples=["lambda1"])
    """Unique name."""
    route: list[str] = setting(examples=[["r1", "r3"], ["r1", "lambda", "r3"]])
    """From the router where flows leave their IP path to where they return. ACKs stay."""
    capacity: Rate | None = setting(None, examples=["10Gbit/s"])
    """Rate for the manager to use. When absent: the rate of its slowest link."""
    set_up: Span = setting("0s", examples=["5s"])
    """Until it carries."""
    cost: Size = setting("0B", examples=["500MB"])
    """Data that a move must gain for a set-up."""


class Manager(Table):
    """Moves elephants to lightpaths. Long form only, with at least one `[[lightpath]]`."""

    rate: Rate = setting(examples=["100Mbit/s"])
    """IP packets' rate in the last interval that makes an elephant ..."""
    volume: Size = setting("0B", examples=["50MB"])
    """... that has also sent this much."""
    interval: PositiveSpan = setting("1s", examples=["5s"])
    """Between two readings of the counters."""
    sampling_rate: Annotated[int, Whole(1, U32_MAX)] = setting(1, examples=[1000])
    """One packet in so many is counted."""
    confidence_sigmas: _Errors = setting(1, examples=[2.5])
    """Standard errors taken off an estimate from samples."""
    flow_table_size: Annotated[int, Whole(1, 10_000_000)] = setting(1024, examples=[64])
    """Flows in the table (Space-Saving)."""
    inactive_timeout: PositiveSpan = setting("10s", examples=["15s"])
    """A flow is over after this silence."""
    return_rate: Rate | None = setting(None, examples=["50Mbit/s"])
    """A flow below this mean of four intervals goes back. When absent: half of `rate`."""
    min_dwell_time: PositiveSpan = setting("30s", examples=["1min"])
    """A flow stays so long after a move."""
    lightpath_timeout: Span = setting("10s", examples=["1min"])
    """An empty lightpath is kept so long."""
    lightpaths: Annotated[int, Whole(0, 1000)] | None = setting(None, examples=[1])
    """Set up at once; 0: the manager looks on. When absent: all."""
    max_utilization: _Part = setting("90%", examples=["80%"])
    """Part of a lightpath's capacity given away; a flow alone may have all."""
    offload_weight: _Part = setting("10%", examples=["50%"])
    """Worth of a byte taken off the IP level, in bytes delivered ..."""
    congestion_threshold: _Part = setting("90%", examples=["70%"])
    """... or 1 when the slowest link of the IP path is loaded so much."""
    refuse: bool = setting(True, examples=[False])
    """Refuse moves that are forecast to cost more than they gain."""
    observation_window: PositiveSpan = setting("10s", examples=["30s"])
    """The cost is what a flow lacks so long after a move."""
    cc_beta: _Part = setting(0.7, examples=[0.5])
    """Part of the window kept at a loss, in forecasts (CUBIC 0.7, Reno 0.5)."""
    pareto_shape: _Tail = setting(of_thousandths(MANAGER_PARETO_SHAPE_E3), examples=[1.2])
    """Of flows' sizes: after x sent, x / (index - 1) more are expected."""
    mitigations: ManagersMitigations | None = setting(None, examples=["hold_buffer", ["hold_buffer", "cwnd_reduction"]])
    """Allowed ones, as an event's. `buffer` is the moving router's for a lightpath; `cwnd_reduction`: senders listen.
    When absent: none."""
    priorities: _Priorities = setting({}, examples=[{"backup": 2}])
    """By name; more goes first and may displace less. When absent: 0."""

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
