"""One direction of a link: queue, loss, jitter, policer."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator

from elephan.run_spec.types import JitterKind
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import (
    U32_MAX,
    U64_MAX,
    AtMost,
    BitErrorRate,
    PositiveSize,
    PositiveSpan,
    Probability,
    QueueLimit,
    Rate,
    Whole,
)
from elephan.scenario.table import Table, Tagged, setting


class DropTail(Table):
    """First in, first out. Short: `queue = "1bdp"`."""

    discipline: Literal["droptail"] = "droptail"
    """Queue discipline."""
    limit: QueueLimit = setting("1bdp", examples=["100 packets", "64kB", "0.5bdp"])
    """Capacity, at least one packet."""


class Red(Table):
    """Random early detection, gentle (Floyd and Jacobson 1993). Defaults as tc-red(8)."""

    discipline: Literal["red"]
    """Queue discipline."""
    limit: QueueLimit = setting("1bdp", examples=["1bdp", "4MB"])
    """Hard limit. Packets count as MTU-sized."""
    min: PositiveSize | None = setting(None, examples=["300kB"])
    """Average queue where dropping starts. When absent: a third of max."""
    max: Annotated[PositiveSize, AtMost(1 << 40, "1TiB")] | None = setting(None, examples=["1MB"])
    """Average queue with drop probability `max_probability`. When absent: a quarter of limit."""
    max_probability: Probability = setting(0.02, examples=[0.1])
    """Drop probability at `max`."""
    weight_shift: Annotated[int, Whole(1, 20)] = setting(9, examples=[9])
    """Weight of the moving average: 9 is 2^-9."""
    ecn: bool = setting(False, examples=[True])
    """Mark ECN-capable packets instead."""


class Codel(Table):
    """Controlled delay (RFC 8289). Defaults as tc-codel(8)."""

    discipline: Literal["codel"]
    """Queue discipline."""
    limit: QueueLimit = setting("1000 packets", examples=["1bdp"])
    """Hard limit. Bytes count as MTU-sized packets."""
    target: PositiveSpan = setting("5ms", examples=["5ms"])
    """Acceptable standing delay."""
    interval: PositiveSpan = setting("100ms", examples=["200ms"])
    """Sliding interval: about the largest RTT."""
    ecn: bool = setting(False, examples=[True])
    """Mark ECN-capable packets instead."""


class FqCodel(Table):
    """Flow queues with CoDel each (RFC 8290). Defaults as tc-fq_codel(8)."""

    discipline: Literal["fq_codel"]
    """Queue discipline."""
    limit: QueueLimit = setting("10240 packets", examples=["10240 packets"])
    """Hard limit over all queues. Bytes count as MTU-sized packets."""
    flows: Annotated[int, Whole(1, 65536)] = setting(1024, examples=[1024])
    """Number of queues that flows are hashed into."""
    quantum: Annotated[PositiveSize, AtMost(U32_MAX, f"{U32_MAX}B")] = setting("1514B", examples=["9014B"])
    """Bytes a queue may send in one round."""
    target: PositiveSpan = setting("5ms", examples=["5ms"])
    """Acceptable standing delay."""
    interval: PositiveSpan = setting("100ms", examples=["200ms"])
    """Sliding interval."""
    ecn: bool = setting(True, examples=[False])
    """Mark ECN-capable packets instead."""


Queue = Annotated[
    DropTail | Red | Codel | FqCodel,
    Tagged(
        (("droptail", DropTail), ("red", Red), ("codel", Codel), ("fq_codel", FqCodel)),
        key="discipline",
        default="droptail",
        short="limit",
        expected='a queue limit such as "100 packets", "64kB" or "1bdp", or a table with a discipline',
    ),
]


class IndependentLoss(Table):
    """Each packet is lost independently. Short: `loss = 1e-4`."""

    probability: Probability = setting(examples=[1e-4, "0.01%"])
    """Per packet, in steps of 1e-12."""


class GilbertElliottLoss(Table):
    """Bursts: a two-state Markov chain, one step per packet (Gilbert 1960, Elliott 1963)."""

    good_to_bad: Probability = setting(examples=[1e-5])
    """Per packet."""
    bad_to_good: Probability = setting(examples=[0.1])
    """Per packet: mean burst 1/bad_to_good packets."""
    loss_good: Probability = setting(0, examples=[0])
    """Loss while good."""
    loss_bad: Probability = setting(1, examples=[0.5])
    """Loss while bad."""

    @model_validator(mode="after")
    def _leaves_the_bad_state(self) -> GilbertElliottLoss:
        if self.good_to_bad > 0 and self.bad_to_good == 0:
            raise wrong("a probability above 0: with 0 the link never leaves the bad state", "bad_to_good")
        return self


class RunsLoss(Table):
    """Runs of one length, as impairment devices drop them. Of all packets `run` x `begins` / (1 + (`run` - 1) x
    `begins`) are lost."""

    run: Annotated[int, Whole(1, U64_MAX)] = setting(examples=[17])
    """Packets lost in a row."""
    begins: Probability = setting(examples=[1e-4])
    """Probability that a run begins, per packet outside of one."""


class PeriodicLoss(Table):
    """Every n-th packet is lost, counted from 1."""

    every: Annotated[int, Whole(1, U64_MAX)] = setting(examples=[1000])
    """The period in packets."""


class BitErrorLoss(Table):
    """Bit errors: the check sequence of a frame of b bits (without `line`: an IP packet) finds them, and it is dropped:
    it survives with (1 - p)^b. With `burst` they come in bursts: a two-state Markov chain, one step per bit, with
    errors in the bad state alone (Gilbert 1960), and `bit_error_rate` its mean."""

    bit_error_rate: BitErrorRate = setting(examples=[1e-12])
    """Per bit, in steps of 1e-18."""
    burst: Annotated[int, Whole(1, 10**9)] | None = setting(None, examples=[100])
    """Mean length of a burst in bits. When absent: errors are independent."""
    burst_error_rate: BitErrorRate = setting(0.5, examples=[0.5])
    """Per bit within a burst."""

    @model_validator(mode="after")
    def _bursts_are_worse(self) -> BitErrorLoss:
        if self.burst is None:
            if "burst_error_rate" in self.model_fields_set:
                raise wrong("beside it burst, the mean length of a burst in bits", "burst_error_rate")
        elif self.bit_error_rate >= self.burst_error_rate:
            raise wrong("above bit_error_rate: errors are in bursts alone", "burst_error_rate")
        elif self.bit_error_rate > 0 and self.good_to_bad_e18 == 0:
            raise wrong("shorter: bursts of this mean length come less often than one in 1e18 bits", "burst")
        return self

    @property
    def good_to_bad_e18(self) -> int:
        """Probability per bit that a burst begins, 10^-18: that which makes the part of bits within bursts
        `bit_error_rate` / `burst_error_rate`."""
        rate, inside = self.bit_error_rate, self.burst_error_rate
        return round(Fraction(rate * 10**18, (inside - rate) * (self.burst or 1)))


class ListedLoss(Table):
    """Exactly these packets are lost, counted from 1 as they enter the line."""

    packets: list[Annotated[int, Whole(1, U64_MAX)]] = setting(examples=[[100, 101, 500]])
    """Strictly ascending."""

    @model_validator(mode="after")
    def _ascending(self) -> ListedLoss:
        if any(a >= b for a, b in zip(self.packets, self.packets[1:], strict=False)):
            raise wrong("packet numbers in strictly ascending order, such as [100, 101, 500]", "packets")
        return self


Loss = Annotated[
    IndependentLoss | GilbertElliottLoss | RunsLoss | PeriodicLoss | BitErrorLoss | ListedLoss,
    Tagged(
        (
            ("probability", IndependentLoss),
            ("good_to_bad", GilbertElliottLoss),
            ("run", RunsLoss),
            ("every", PeriodicLoss),
            ("bit_error_rate", BitErrorLoss),
            ("packets", ListedLoss),
        ),
        key=None,
        default=None,
        short="probability",
        expected="a probability such as 1e-4, or a table with probability, good_to_bad and bad_to_good, run and "
        "begins, every, bit_error_rate, or packets",
        numbers=True,
    ),
]


class Jitter(Table):
    """Random extra delay per packet. Short: `jitter = "1ms"`, uniform up to 1 ms without reordering."""

    scale: Annotated[PositiveSpan, AtMost(3_600_000_000_000, "1h")] = setting(examples=["1ms"])
    """Largest (uniform), mean (exponential), or standard deviation (normal; absolute value, cut at 4 sigma)."""
    distribution: JitterKind = setting("uniform", examples=["normal"])
    """Shape."""
    reordering: bool = setting(False, examples=[True])
    """Let packets overtake each other."""


JitterOrText = Annotated[
    Jitter,
    Tagged(
        (("jitter", Jitter),),
        key=None,
        default="jitter",
        short="scale",
        expected='a time such as "1ms", or a table such as { scale = "1ms", distribution = "normal" }',
    ),
]


class Policer(Table):
    """Token bucket before the queue, which drops what exceeds rate and burst, and delays nothing (RFC 2697, tc-police).

    It starts full."""

    rate: Rate = setting(examples=["10Mbit/s"])
    """Rate at which the bucket fills, bits of IP packets per second (CIR)."""
    burst: Annotated[PositiveSize, AtMost(1 << 40, "1TiB")] = setting(examples=["32KiB"])
    """Size of the bucket, at least one packet of the MTU (CBS)."""


def _none_as_absent(value: Any) -> Any:
    return None if value == "none" else value


PolicerOrNone = Annotated[
    Policer | None, BeforeValidator(_none_as_absent, json_schema_input_type=Policer | Literal["none"] | None)
]
"""A policer; "none", as a value of a sweep or of `elephan path set`, takes away the file's."""
