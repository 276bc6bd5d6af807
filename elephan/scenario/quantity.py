"""Quantities as text at the edge, integers inside: ns, bit/s, bytes, 10^-12.

This is the only place that calls the core's parsers, so Python and Rust can never read a text differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, PlainValidator, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from elephan.blocktrace import device_number
from elephan.core import native
from elephan.scenario.problem import wrong

#: Largest value of the core's fields.
U64_MAX = 2**64 - 1
U32_MAX = 2**32 - 1
#: Largest rate that the core takes, bit/s.
RATE_MAX = 2**62

_NUMBER = r"[0-9][0-9_]*(\.[0-9]+)?"
_SPAN = {"type": "string", "pattern": rf"^\s*{_NUMBER}\s*(ns|us|µs|ms|s|min|h)\s*$"}
_RATE = {"type": "string", "pattern": rf"^\s*{_NUMBER}\s*([kMGT]?bit|[kMGT]?B|[KMGT]iB)/s\s*$"}
_SIZE = {"type": "string", "pattern": rf"^\s*{_NUMBER}\s*([kMGT]?B|[KMGT]iB)\s*$"}


def _native_text(parse: Callable[[str], int], example: str) -> Callable[[Any], int]:
    """A parser of the core whose ValueError becomes the phrase with the expected value."""
    try:
        parse("")
        raise AssertionError("the empty text has no unit")
    except ValueError as error:
        expected = str(error).rpartition(" is not ")[2]
    assert parse(example) > 0

    def convert(value: Any) -> int:
        if not isinstance(value, str):
            raise wrong(expected)
        try:
            return parse(value)
        except (ValueError, OverflowError):
            raise wrong(expected) from None

    return convert


parse_span = _native_text(native.parse_span, "25ms")
parse_rate = _native_text(native.parse_rate, "45Mbit/s")
parse_size = _native_text(native.parse_size, "8MB")


def span_text(time_ns: int) -> str:
    """Return a time as a user writes it, in the largest of s, ms, us and ns that leaves a whole number."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if time_ns % size == 0:
            return f"{time_ns // size}{unit}"
    return f"{time_ns}ns"


def of_thousandths(number_e3: int) -> float:
    """Return a number as a user writes it: 2000 is 2, 1500 is 1.5."""
    return number_e3 // 1000 if number_e3 % 1000 == 0 else number_e3 / 1000


def _at_least(parse: Callable[[Any], int], minimum: int, text: str) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        number = parse(value)
        if number < minimum:
            raise wrong(text)
        return number

    return convert


def rate(value: Any) -> int:
    """bit/s in the core's range."""
    bits = parse_rate(value)
    if not 0 < bits <= RATE_MAX:
        raise wrong("a rate above zero" if bits == 0 else f"at most {RATE_MAX // 10**12}Tbit/s")
    return bits


def _typed(name: str, **schema: Any) -> WithJsonSchema:
    return WithJsonSchema({**schema, "x-type": name})


Span = Annotated[int, PlainValidator(parse_span), _typed("time", **_SPAN)]
PositiveSpan = Annotated[
    int, PlainValidator(_at_least(parse_span, 1, "a time above zero")), _typed("time > 0", **_SPAN)
]
Rate = Annotated[int, PlainValidator(rate), _typed("rate", **_RATE)]
Size = Annotated[int, PlainValidator(parse_size), _typed("size", **_SIZE)]
PositiveSize = Annotated[
    int, PlainValidator(_at_least(parse_size, 1, "a size above zero")), _typed("size > 0", **_SIZE)
]


@dataclass(frozen=True, eq=False)
class Whole:
    """Annotates a whole number in a closed range."""

    minimum: int
    maximum: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "type": "integer",
            "minimum": self.minimum,
            "maximum": self.maximum,
            "x-type": f"integer {self.minimum} to {self.maximum}",
        }

    def check(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not self.minimum <= value <= self.maximum:
            raise wrong(f"a whole number from {self.minimum} to {self.maximum}")
        return value


def _mtu(value: Any) -> int:
    # RFC 791: every IPv4 module must forward 68 bytes; the total length field ends at 65,535.
    if isinstance(value, int) and not isinstance(value, bool):
        raise wrong('a size with a unit from 68B to 65535B, such as "1500B"')
    size = parse_size(value)
    if not 68 <= size <= 65535:
        raise wrong('a size from 68B to 65535B, such as "1500B" or "9000B"')
    return size


Mtu = Annotated[int, PlainValidator(_mtu), _typed("size 68B to 65535B", **_SIZE)]


def _block_device(value: Any) -> int:
    expected = 'a device\'s number from 0, or "major,minor" such as "8,16"'
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise wrong(expected)
    try:
        return device_number(str(value))
    except ValueError:
        raise wrong(expected) from None


BlockDevice = Annotated[
    int,
    PlainValidator(_block_device),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": U32_MAX},
                {"type": "string", "pattern": r"^\s*[0-9]+(,[0-9]+)?\s*$"},
            ],
            "x-type": 'integer from 0, or "major,minor"',
        }
    ),
]


def number(value: Any, expected: str) -> Fraction:
    """An exact number from 0.001, "1e-3", "0.1%" or "1/8"; no float arithmetic."""
    text = value.strip() if isinstance(value, str) else repr(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or len(text) > 40:
        raise wrong(expected)
    divisor = 1
    if text.endswith("%"):
        text, divisor = text[:-1].strip(), 100
    try:
        if "/" in text:
            over, _, under = text.partition("/")
            return Fraction(int(over), int(under)) / divisor
        decimal = Decimal(text)
    except (InvalidOperation, ValueError, ZeroDivisionError):
        raise wrong(expected) from None
    # Beyond 10^30 either way no quantity of a scenario has a meaning, and a Fraction of 1e999999 would take for ever.
    if not decimal.is_finite() or (decimal != 0 and not -30 <= decimal.adjusted() <= 30):
        raise wrong(expected)
    return Fraction(decimal) / divisor


def _probability(unit: int, exponent: int, example: str) -> Callable[[Any], int]:
    expected = f"a probability from 0 to 1, such as {example}"

    def convert(value: Any) -> int:
        fraction = number(value, expected)
        if not 0 <= fraction <= 1:
            raise wrong(expected)
        scaled = round(fraction * unit)
        if scaled == 0 and fraction != 0:
            raise wrong(f"0, or a probability of at least 1e-{exponent}")
        return scaled

    return convert


_NUMBER_OR_TEXT = {"type": ["number", "string"]}


def part(value: Any) -> int:
    """Return a part of a whole, 0.7 or "70%", as parts of 10^6."""
    expected = 'a share from 0 to 1, such as 0.7 or "70%"'
    fraction = number(value, expected)
    if not 0 <= fraction <= 1:
        raise wrong(expected)
    return round(fraction * 10**6)


#: A part of a whole, held as parts per 10^6.
Part = Annotated[int, PlainValidator(part), _typed("share", **_NUMBER_OR_TEXT)]


@dataclass(frozen=True, eq=False)
class Bytes:
    """Annotates a size in a closed range, bytes."""

    minimum: int
    maximum: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**_SIZE, "x-type": f"size {self.minimum}B to {self.maximum}B"}

    def check(self, value: Any) -> int:
        """The size in bytes."""
        expected = f'a size from {self.minimum}B to {self.maximum}B, such as "64KiB"'
        if not isinstance(value, str):
            raise wrong(expected)
        size = parse_size(value)
        if not self.minimum <= size <= self.maximum:
            raise wrong(expected)
        return size


#: Held as parts per 10^12.
Probability = Annotated[
    int, PlainValidator(_probability(10**12, 12, '1e-4, "1e-4" or "0.01%"')), _typed("probability", **_NUMBER_OR_TEXT)
]
#: Held as parts per 10^18: the bit error rates of optical lines (1e-15) must be exact.
BitErrorRate = Annotated[
    int, PlainValidator(_probability(10**18, 18, '1e-12 or "1e-15"')), _typed("probability per bit", **_NUMBER_OR_TEXT)
]


@dataclass(frozen=True)
class Share:
    """A share of a line's rate; resolved when the route is known."""

    of_line: Fraction

    def resolve(self, line_bps: int) -> int:
        """bit/s, rounded down, at least 1."""
        return max(1, int(self.of_line * line_bps))


def bits_per_second(load: Share | int, line_bps: int) -> int:
    """A load, a share of the line's rate or a rate, in bit/s."""
    return load.resolve(line_bps) if isinstance(load, Share) else load


def _load(value: Any) -> Share | int:
    expected = 'a share of the line such as "90%" or 0.9, or a rate such as "900Mbit/s" or "180MB/s"'
    if isinstance(value, str) and value.strip().endswith(("bit/s", "B/s")):
        return rate(value)
    share = number(value, expected)
    if not 0 < share <= 10:
        raise wrong(expected + "; a share is above 0 and at most 10 (ten times the line)")
    return Share(share)


Load = Annotated[Share | int, PlainValidator(_load), _typed("share of the line, or rate", **_NUMBER_OR_TEXT)]


@dataclass(frozen=True)
class Limit:
    """Capacity of a queue: packets, bytes, or multiples of the bandwidth-delay product."""

    unit: Literal["packets", "bytes", "bdp"]
    amount: Fraction


_LIMIT = re.compile(r"^\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*(packets?|bdp)\s*$")


def _limit(value: Any) -> Limit:
    expected = 'a queue limit with a unit: packets, bytes or bdp, such as "100 packets", "64kB" or "1bdp"'
    if not isinstance(value, str):
        raise wrong(expected)
    match = _LIMIT.match(value)
    if not match:
        try:
            size = parse_size(value)
        except Exception:
            raise wrong(expected) from None
        if size == 0:
            raise wrong("a queue limit above zero: at least one packet")
        return Limit("bytes", Fraction(size))
    amount = Fraction(match.group(1).replace("_", ""))
    unit: Literal["packets", "bdp"] = "bdp" if match.group(2) == "bdp" else "packets"
    if amount == 0:
        raise wrong("a queue limit above zero: at least one packet")
    if unit == "packets" and amount.denominator != 1:
        raise wrong("a whole number of packets")
    return Limit(unit, amount)


QueueLimit = Annotated[Limit, PlainValidator(_limit), _typed("packets, size or bdp", type="string")]


@dataclass(frozen=True, eq=False)
class AtMost:
    """Annotates a quantity already read that has an upper bound; `text` is the bound with its unit."""

    maximum: int
    text: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def check(self, value: int) -> int:
        """The value, when it is in range."""
        if value > self.maximum:
            raise wrong(f"at most {self.text}")
        return value


@dataclass(frozen=True, eq=False)
class Positive:
    """Annotates an exact number above 0; held as a Fraction."""

    maximum: int
    example: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**_NUMBER_OR_TEXT, "x-type": "number > 0"}

    def check(self, value: Any) -> Fraction:
        expected = f"a number above 0 and at most {self.maximum}, such as {self.example}"
        fraction = number(value, expected)
        if not 0 < fraction <= self.maximum:
            raise wrong(expected)
        return fraction
