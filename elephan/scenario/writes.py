"""Writes without a trace: how large they are, and when they are issued."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema, model_validator

from elephan.run_spec.types import ArrivalsSpec, WriteSizesSpec
from elephan.scenario.problem import wrong
from elephan.scenario.quantity import Bytes, Positive, PositiveSpan, parse_size
from elephan.scenario.table import Table, Tagged, setting

LARGEST = 2**30
"""Largest write, bytes: far beyond what a host gives a disk at once."""

WEIGHT_MAX = 1_000_000

_Size = Annotated[int, Bytes(1, LARGEST)]


def _mix(value: Any) -> dict[int, int]:
    expected = 'sizes and their weights, such as { "4KiB" = 70, "64KiB" = 30 }'
    if not isinstance(value, dict) or not value:
        raise wrong(expected)
    found: dict[int, int] = {}
    for text, weight in value.items():
        try:
            size = parse_size(text)
        except Exception:
            raise wrong(expected) from None
        if not 0 < size <= LARGEST:
            raise wrong(f"sizes from 1B to {LARGEST}B as keys")
        if isinstance(weight, bool) or not isinstance(weight, int) or not 0 < weight <= WEIGHT_MAX:
            raise wrong(f"a whole number from 1 to {WEIGHT_MAX}", text)
        found[size] = found.get(size, 0) + weight
    return found


class FixedSize(Table):
    """All writes are of one size. Short: `size = "64KiB"`."""

    bytes: _Size = setting(examples=["64KiB"])
    """Data of a write."""


class MixedSizes(Table):
    """Several sizes."""

    mix: Annotated[
        dict[int, int],
        PlainValidator(_mix),
        WithJsonSchema(
            {
                "type": "object",
                "additionalProperties": {"type": "integer", "minimum": 1, "maximum": WEIGHT_MAX},
                "minProperties": 1,
                "x-type": "table of sizes and weights",
            }
        ),
    ] = setting(examples=[{"4KiB": 70, "64KiB": 30}])
    """Weight of each size."""


class LognormalSizes(Table):
    """Lognormal distribution."""

    median: _Size = setting(examples=["16KiB"])
    """Half of the writes are smaller."""
    sigma: Annotated[Fraction, Positive(4, "1")] = setting(1, examples=[1.5])
    """Standard deviation of the natural logarithm."""


class ParetoSizes(Table):
    """Pareto distribution, cut at `max`: P(size > x) = (min / x)^pareto_shape."""

    min: _Size = setting(examples=["4KiB"])
    """Smallest write."""
    max: _Size = setting(examples=["1MiB"])
    """Largest write; above `min`."""
    pareto_shape: Annotated[Fraction, Positive(100, "1.5")] = setting(1.5, examples=[1.2])
    """Tail index; the smaller, the more data in few writes."""

    @model_validator(mode="after")
    def _ascending(self) -> ParetoSizes:
        if self.max <= self.min:
            raise wrong("a size above min", "max")
        return self


WriteSize = Annotated[
    FixedSize | MixedSizes | LognormalSizes | ParetoSizes,
    Tagged(
        (("bytes", FixedSize), ("mix", MixedSizes), ("median", LognormalSizes), ("min", ParetoSizes)),
        key=None,
        default=None,
        short="bytes",
        expected='a size such as "64KiB", or a table with mix, median, or min and max',
    ),
]


class ConstantArrivals(Table):
    """A write arrives when the one before would have passed a line of the rate. Short: `arrivals = "constant"`."""

    process: Literal["constant"]
    """Arrivals of the writes."""


class PoissonArrivals(Table):
    """Independent. Short: `arrivals = "poisson"`."""

    process: Literal["poisson"]
    """Arrivals of the writes."""


class OnOffArrivals(Table):
    """Bursts: a Poisson process while on, nothing while off, on average `rate` (Kuczura 1973). A Pareto index between 1
    and 2 gives bursts at every scale of time (Willinger et al. 1997; Gribble et al. 1998)."""

    process: Literal["on_off"]
    """Arrivals of the writes."""
    on: PositiveSpan = setting("100ms", examples=["10ms"])
    """Mean time on."""
    off: PositiveSpan = setting("400ms", examples=["1s"])
    """Mean time off."""
    pareto_shape: Annotated[Fraction, Positive(100, "1.5")] | None = setting(None, examples=[1.5])
    """Tail index of both times, above 1. When absent: exponential."""

    @model_validator(mode="after")
    def _with_a_mean(self) -> OnOffArrivals:
        if self.pareto_shape is not None and round(self.pareto_shape * 1000) <= 1000:
            raise wrong("a number above 1: with a heavier tail there is no mean time", "pareto_shape")
        return self


Arrivals = Annotated[
    ConstantArrivals | PoissonArrivals | OnOffArrivals,
    Tagged(
        (("constant", ConstantArrivals), ("poisson", PoissonArrivals), ("on_off", OnOffArrivals)),
        key="process",
        default=None,
        short="process",
        expected='"constant", "poisson" or "on_off", or a table with such a process',
    ),
]


def sizes_spec(size: FixedSize | MixedSizes | LognormalSizes | ParetoSizes) -> WriteSizesSpec:
    """Return sizes as the core takes them."""
    match size:
        case FixedSize():
            return {"kind": "fixed", "bytes": size.bytes}
        case MixedSizes():
            return {"kind": "mix", "sizes": [list(item) for item in sorted(size.mix.items())]}
        case LognormalSizes():
            return {"kind": "lognormal", "median_bytes": size.median, "sigma_e3": max(1, round(size.sigma * 1000))}
        case ParetoSizes():
            shape = max(1, round(size.pareto_shape * 1000))
            return {"kind": "pareto", "shape_e3": shape, "min_bytes": size.min, "max_bytes": size.max}


def arrivals_spec(arrivals: ConstantArrivals | PoissonArrivals | OnOffArrivals) -> ArrivalsSpec:
    """Return arrivals as the core takes them."""
    if isinstance(arrivals, ConstantArrivals):
        return {"process": "constant"}
    if isinstance(arrivals, PoissonArrivals):
        return {"process": "poisson"}
    shape = None if arrivals.pareto_shape is None else round(arrivals.pareto_shape * 1000)
    return {"process": "on_off", "on_ns": arrivals.on, "off_ns": arrivals.off, "pareto_shape_e3": shape}
