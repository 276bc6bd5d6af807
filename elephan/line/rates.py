"""Rates of a line and of a test on it, from text."""

from __future__ import annotations

from elephan.core import native
from elephan.errors import InputError
from elephan.scenario.line_type import LINE_TYPES

PPM = 10**6
RATE_MIN, RATE_MAX = 1000, 400 * 10**9
"""Rates of a stream that the core knows, bit/s."""
SPAN_MAX_NS = 365 * 86400 * 10**9
"""Longest stream of the core, ns."""


def parse_line(option: str, text: str | None, link_bps: int | None, interface: str) -> int:
    """Return the rate of a line, bit/s: that of a name or a rate, or that of the link. Raises `InputError`."""
    if text is None:
        if not link_bps:
            named = "such as 1Gbit/s or 10gbe-wan-phy"
            raise InputError(f"{option}: the rate of {interface} is not known; name the line's, {named}")
        return link_bps
    kind = LINE_TYPES.get(text)
    if kind is None:
        return _positive(option, text, f"a rate such as 1Gbit/s is needed, or one of {', '.join(_ethernets())}")
    if kind.layer != "ethernet":
        raise InputError(f"{option} {text}: frames on it are no Ethernet; name the rate that Ethernet has, as 10Gbit/s")
    if link_bps and kind.rate_bps > link_bps:
        raise InputError(f"{option} {text}: {kind.rate_bps} bit/s, and {interface} has {link_bps}")
    return kind.rate_bps


def _ethernets() -> list[str]:
    return [name for name, kind in LINE_TYPES.items() if kind.layer == "ethernet"]


def parse_rate(option: str, text: str, line_bps: int) -> int:
    """Return the rate of a test, bit/s of the line: a share of it, or a rate. Raises `InputError`."""
    if text.strip().endswith("%"):
        return check_rate(option, text, line_bps * parse_share(option, text) // PPM)
    rate = check_rate(option, text, _positive(option, text, "a share such as 90% or a rate such as 9Gbit/s is needed"))
    if rate > line_bps:
        raise InputError(f"{option} {text}: the line has {line_bps} bit/s; name another with --line")
    return rate


def check_rate(option: str, text: str, rate_bps: int) -> int:
    """Return the rate of a stream. Raises `InputError` for one that the core does not send at."""
    if not RATE_MIN <= rate_bps <= RATE_MAX:
        raise InputError(f"{option} {text}: {rate_bps} bit/s of the line; 1kbit/s to 400Gbit/s is needed")
    return rate_bps


def _positive(option: str, text: str, expected: str) -> int:
    try:
        rate = int(native.parse_rate(text))
    except ValueError as error:
        raise InputError(f"{option} {text}: {expected}") from error
    if rate < 1:
        raise InputError(f"{option} {text}: a rate above 0 is needed")
    return rate


def parse_bit_rate(option: str, text: str) -> int:
    """Return a rate, bit/s; 0 is one. Raises `InputError`."""
    try:
        return int(native.parse_rate(text))
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error


def parse_share(option: str, text: str, least_ppm: int = 1) -> int:
    """Return a share in millionths: "12.5%" as 125000. Raises `InputError`."""
    number, sign, rest = text.strip().partition("%")
    try:
        ppm = float(number) * 10**4
    except ValueError:
        ppm = -1.0
    if not sign or rest or not least_ppm <= ppm <= PPM or round(ppm, 3) != round(ppm):
        raise InputError(f"{option} {text}: {least_ppm / 10**4:g}% to 100% is needed, such as 90% or 0.5%")
    return round(ppm)


def parse_span(option: str, text: str, least_ns: int = 1) -> int:
    """Return a time of up to a year, ns. Raises `InputError`."""
    try:
        span_ns = int(native.parse_span(_with_hours(text)))
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error
    if span_ns < least_ns:
        raise InputError(
            f"{option} {text}: {'more than 0' if least_ns == 1 else f'{least_ns / 1e9:g}s or more'} is needed"
        )
    if span_ns > SPAN_MAX_NS:
        raise InputError(f"{option} {text}: 365d or less is needed")
    return span_ns


def _with_hours(text: str) -> str:
    """Return days as hours, which the core knows."""
    number, found, rest = text.strip().partition("d")
    return f"{int(number) * 24}h" if found and not rest and number.isdecimal() and len(number) < 5 else text
