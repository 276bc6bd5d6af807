"""Numbers for people: three significant digits and a unit, decimal prefixes as networks and disks use them."""

from __future__ import annotations

import math
from collections.abc import Callable

NOTHING = "–"
"""Shown where there is no value."""


def digits(value: float) -> str:
    """Return a number with three significant digits and no exponent: 0.0123, 1.23, 12.3, 123, 1230."""
    if value == 0:
        return "0"
    places = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    return f"{rounded:.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"


def scaled(value: float | None, unit: str, steps: tuple[tuple[float, str], ...]) -> str:
    """Return `value` with the largest prefix that leaves at least 1; `steps` are (factor, prefix), falling."""
    if value is None or not math.isfinite(value):
        return NOTHING
    for factor, prefix in steps:
        # 999.95 would round up to 1000 of the smaller prefix.
        if abs(value) >= factor * 0.9995:
            return f"{digits(value / factor)} {prefix}{unit}"
    factor, prefix = steps[-1]
    return f"{digits(value / factor)} {prefix}{unit}"


DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def rate(value: float | None) -> str:
    """Return bit/s: 8.12e8 as "812 Mbit/s"."""
    return scaled(value, "bit/s", DECIMAL)


def byte_rate(value: float | None) -> str:
    """Return B/s, decimal: 8.4e6 as "8.40 MB/s"."""
    return scaled(value, "B/s", DECIMAL)


def size(value: float | None) -> str:
    """Return bytes, decimal: 8.4e6 as "8.40 MB", and below 1 kB whole, as bytes are: "12 B"."""
    if value is not None and abs(value) < 999.5:
        return f"{value:.0f} B"
    return scaled(value, "B", DECIMAL)


def exact_size(value: float | None) -> str:
    """Return bytes to the last one, for values that a person sets elsewhere (an MTU, a sysctl): 1436 as "1436 B"."""
    return NOTHING if value is None or not math.isfinite(value) else f"{value:.0f} B"


def binary_size(value: int) -> str:
    """Return bytes with binary prefixes, as limits are set: 4194304 as "4 MiB"."""
    for power, prefix in ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if value >= 1 << power:
            return f"{round(value / (1 << power), 1):g} {prefix}B"
    return f"{value} B"


def duration(value: float | None) -> str:
    """Return seconds: 0.0123 as "12.3 ms", 90 as "1 min 30 s", 7300 as "2 h 2 min"."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0 s"
    if abs(value) < 0.9995e-9:
        return "< 1 ns"
    if value >= 3600:
        return f"{int(value // 3600)} h {int(value % 3600 // 60)} min"
    if value >= 120:
        return f"{int(value // 60)} min {int(value % 60)} s"
    return scaled(value, "s", ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")))


WIDE = 10.0
"""Ratio of the ends of an interval from which they are shown in whole numbers of one unit each."""
USELESS = 100.0
"""Ratio from which an interval is said to be too wide to plan by."""


def duration_range(low: float, high: float, between: str = " to ") -> str:
    """Return an interval of times: "9.21 s to 13.4 s"; if its ends are a factor of ten apart "1 min to 54 h"."""
    show = _whole_duration if low > 0 and high >= WIDE * low else duration
    return f"{show(low)}{between}{show(high)}"


def is_useless(low: float, high: float) -> bool:
    """Return True if an interval of times is too wide to plan by."""
    return high >= USELESS * max(low, 1.0)


def _whole_duration(value: float) -> str:
    """Return a time in one unit: days from 100 h on, hours from 90 min on, minutes from 1 min on."""
    for least, unit_s, name in ((360_000, 86_400, "days"), (5_400, 3_600, "h"), (59.95, 60, "min")):
        if value >= least:
            return f"{round(value / unit_s):,} {name}"
    return duration(value)


def share(value: float | None) -> str:
    """Return a part of 1 as per cent: 0.8123 as "81.2 %"."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{digits(value * 100)} %" if abs(value) < 0.0995 else f"{value * 100:.1f} %"


def parse_share(text: str) -> float | None:
    """Return "5%" as 0.05 and "0.05" as itself, of any size; None if `text` is no finite number."""
    text = text.strip()
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def loss(value: float | None) -> str:
    """Return a loss ratio as scenarios have it: "3.3e-3", which compares with 1e-5 at a glance as 0.33 % does not."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value in (0, 1):
        return f"{value:.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def count(value: float | None) -> str:
    """Return a number of things: 241936 as "241,936"; a mean of counts keeps a digit below 100."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if float(value).is_integer() or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}"


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun: "1 run", "2 runs", "3 entries"."""
    if number == 1:
        return f"1 {noun}"
    has_ies = noun.endswith("y") and noun[-2:-1] not in "aeiou"
    return f"{number} {noun[:-1]}ies" if has_ies else f"{number} {noun}s"


def of_quantity(quantity: str, value: float | None, otherwise: Callable[[float | None], str] = count) -> str:
    """Return a value in the unit that ends its quantity's name, as `rtt_s` and `capacity_bps` do; `loss` is a ratio."""
    if quantity in ("loss", "line_loss"):
        return loss(value)
    if quantity == "path_mtu_bytes":
        return exact_size(value)
    for ending, show in (("_bps", rate), ("_bytes", size), ("_s", duration)):
        if quantity.endswith(ending):
            return show(value)
    return otherwise(value)


def plain(value: float | None) -> str:
    """Return a number without unit, three significant digits."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return digits(value)
