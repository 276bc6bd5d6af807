"""The `[sweep]` table as data: axes, and the values of each.

**Invariant: the same `[sweep]` gives the same points in the same order, with exact values: 0.1 + 0.2 is 0.3.**
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Literal

from elephan.core import native
from elephan.scenario.problem import Problem

Mode = Literal["grid", "zip"]

VALUES_MAX = 1_000_000
"""Values of one axis: more are a slip."""

SETTINGS = ("mode", "max_runs")
"""Keys of `[sweep]` that are no axes."""

_RANGE_KEYS = {"from", "to", "step", "factor", "count", "spacing"}
_EXPECTED = (
    "a list of values, or a range such as { from = 1e-6, to = 1e-2, factor = 10 }, "
    '{ from = "10ms", to = "200ms", step = "10ms" } or { from = 1, to = 16, count = 4 }'
)
_TEXT = re.compile(r"^\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*(\D*?)\s*$")


@dataclass(frozen=True)
class Axis:
    """One swept key, as the user wrote it, and its values in order."""

    key: str
    values: Sequence[Any]
    location: tuple[str, ...]
    """Location in the file."""


def parse_axes(table: Any) -> tuple[list[Axis], Mode]:
    """The axes of a `[sweep]` table, in file order. Raises `Problem`."""
    if not isinstance(table, dict):
        raise Problem(("sweep",), 'a table such as { "path.loss" = [0, 1e-4] }')
    mode = table.get("mode", "grid")
    if mode not in ("grid", "zip"):
        raise Problem(("sweep", "mode"), 'one of "grid", "zip"')
    axes = [axis for key, value in table.items() if key not in SETTINGS for axis in _axes((key,), value)]
    seen: set[str] = set()
    for axis in axes:
        if axis.key in seen:
            raise Problem(axis.location, "each key once; it is swept twice")
        seen.add(axis.key)
    if mode == "zip":
        for axis in axes:
            if len(axis.values) != len(axes[0].values):
                expected = f'{len(axes[0].values)} values, as "{axes[0].key}", because mode is "zip"'
                raise Problem(axis.location, expected)
    return axes, mode


def parse_max_runs(table: dict[str, Any], default: int) -> int:
    """Return how many runs a `[sweep]` table allows. Raises `Problem`."""
    most = table.get("max_runs", default)
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= 10**12:
        raise Problem(("sweep", "max_runs"), f"a whole number from 1 to {10**12}")
    return most


class _Steps(Sequence[Any]):
    """Values of equal distance, each made when it is asked for."""

    def __init__(self, first: Fraction, step: Fraction, count: int, unit: str) -> None:
        self._first, self._step, self._count, self._unit = first, step, count, unit

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        place = range(self._count)[index]
        if isinstance(place, range):
            return tuple(self._value(one) for one in place)
        return self._value(place)

    def _value(self, place: int) -> Any:
        return _written(self._first + place * self._step, self._unit)


def _axes(location: tuple[str, ...], value: Any) -> Iterator[Axis]:
    key = ".".join(location)
    if isinstance(value, list):
        if not value:
            raise Problem(("sweep", *location), "at least one value")
        yield Axis(key, tuple(value), ("sweep", *location))
    elif isinstance(value, dict) and "from" in value and not isinstance(value["from"], list | dict):
        yield Axis(key, _range(value, ("sweep", *location)), ("sweep", *location))
    elif isinstance(value, dict) and value:
        for part, inner in value.items():
            yield from _axes((*location, part), inner)
    else:
        raise Problem(("sweep", *location), _EXPECTED)


def _range(table: dict[str, Any], location: tuple[str, ...]) -> Sequence[Any]:
    for key in table:
        if key not in _RANGE_KEYS:
            raise Problem((*location, key), "unknown key; a range has " + ", ".join(sorted(_RANGE_KEYS)))
    if "to" not in table or len(table.keys() & {"step", "factor", "count"}) != 1:
        raise Problem(location, "a range with from, to and exactly one of step, factor and count")
    ends = {key: _number(table, key, location) for key in ("from", "to", "step") if key in table}
    unit = _common_unit({key: unit for key, (_, unit) in ends.items()}, location)
    first, last = (_in_unit(*ends[key], unit) for key in ("from", "to"))
    if "count" in table:
        return _counted(table, first, last, unit, location)
    if "factor" in table:
        values = _geometric(_number(table, "factor", location)[0], first, last, location)
    else:
        step = _in_unit(*ends["step"], unit)
        if step == 0 or (last - first) * step < 0:
            raise Problem((*location, "step"), "a step that leads from `from` to `to`")
        count = int((last - first) / step) + 1
        if count > VALUES_MAX:
            raise Problem((*location, "step"), f"at most {VALUES_MAX} values")
        return _Steps(first, step, count, unit)
    return tuple(_written(value, unit) for value in values)


def _common_unit(units: dict[str, str], location: tuple[str, ...]) -> str:
    """The unit of a range's values: that of all its ends, else the smallest of them, in which none needs rounding."""
    first = units["from"]
    for key, unit in units.items():
        if unit != first and (_kind(unit) is None or _kind(unit) != _kind(first)):
            right = f'a unit that goes with that of from ("{first}")' if first else "a number without a unit, as from"
            raise Problem((*location, key), right)
    return first if len(set(units.values())) == 1 else min(units.values(), key=_size)


def _in_unit(value: Fraction, unit: str, wanted: str) -> Fraction:
    return value if unit == wanted else value * _size(unit) / _size(wanted)


def _parsers() -> dict[str, Callable[[str], int]]:
    return {"time": native.parse_span, "rate": native.parse_rate, "size": native.parse_size}


def _kind(unit: str) -> str | None:
    """Return the kind of a unit; None if it can be converted to no other."""
    return next((kind for kind, parse in _parsers().items() if _parsed(parse, unit)), None)


def _size(unit: str) -> int:
    """A unit in the smallest one of its kind."""
    return next(size for parse in _parsers().values() if (size := _parsed(parse, unit)))


def _parsed(parse: Callable[[str], int], unit: str) -> int | None:
    try:
        return parse(f"1{unit}")
    except ValueError:
        return None


def _counted(
    table: dict[str, Any], first: Fraction, last: Fraction, unit: str, location: tuple[str, ...]
) -> Sequence[Any]:
    count, spacing = table["count"], table.get("spacing", "linear")
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= VALUES_MAX:
        raise Problem((*location, "count"), f"a whole number from 2 to {VALUES_MAX}")
    if spacing == "linear":
        return _Steps(first, (last - first) / (count - 1), count, unit)
    if spacing != "log" or first <= 0 or last <= 0:
        raise Problem((*location, "spacing"), '"linear", or "log" between values above zero')
    ratio = math.log(last / first)
    inner = [float(first) * math.exp(ratio * i / (count - 1)) for i in range(1, count - 1)]
    # Six digits, as people write, and equal on every machine whatever its libm.
    return tuple(_written(value, unit) for value in (first, *(Fraction(f"{value:.6g}") for value in inner), last))


def _geometric(factor: Fraction, first: Fraction, last: Fraction, location: tuple[str, ...]) -> list[Fraction]:
    grows = last >= first
    if first <= 0 or last <= 0 or factor <= 0 or factor == 1 or (factor > 1) != grows:
        raise Problem((*location, "factor"), "a factor that leads from `from` to `to`, both above zero")
    values = [first]
    while (values[-1] * factor <= last) if grows else (values[-1] * factor >= last):
        values.append(values[-1] * factor)
        if len(values) > VALUES_MAX:
            raise Problem((*location, "factor"), f"at most {VALUES_MAX} values")
    return values


def _number(table: dict[str, Any], key: str, location: tuple[str, ...]) -> tuple[Fraction, str]:
    value = table[key]
    expected = 'a number, or a quantity such as "10ms"'
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Problem((*location, key), expected)
    if isinstance(value, str):
        match = _TEXT.match(value)
        if not match:
            raise Problem((*location, key), expected)
        return Fraction(match.group(1).replace("_", "")), match.group(2)
    try:
        decimal = Decimal(repr(value))
    except (InvalidOperation, ValueError):
        raise Problem((*location, key), expected) from None
    # As `quantity.number`: a Fraction of 1e999999 would take for ever.
    if not decimal.is_finite() or (decimal != 0 and not -30 <= decimal.adjusted() <= 30):
        raise Problem((*location, key), expected)
    return Fraction(decimal), ""


def _written(value: Fraction, unit: str) -> Any:
    if not unit:
        return int(value) if value.denominator == 1 else float(value)
    if value.denominator == 1:
        return f"{value.numerator}{unit}"
    # The core reads decimals without exponent; nine digits after the point are ns of a second.
    return f"{float(value):.9f}".rstrip("0").rstrip(".") + unit
