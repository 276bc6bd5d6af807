"""The text side of TOML: values as text, lines of keys, bounds. Parsing itself is the standard library's."""

from __future__ import annotations

import datetime
import json
import math
import re
import tomllib
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from elephan.printable import has_control

DEPTH_MAX = 32
"""Tables and arrays inside each other. The deepest key of a scenario has 7; Python's congestion control ends at some
hundreds."""

_KEY_PARTS = re.compile(rf"(?<![A-Za-z0-9_-])(?:[A-Za-z0-9_-]+[ \t]*\.[ \t]*){{{DEPTH_MAX}}}")
"""A key of more parts, in a text without strings: the standard library takes the square of their number, and 17 s for
50,000."""

_STRINGS = re.compile(
    r'''#[^\n]*|"""(?:\\.|[^\\])*?(?:"""|\Z)|\'{3}.*?(?:\'{3}|\Z)|"(?:\\.|[^"\\\n])*+"?|'[^'\n]*'?''', re.DOTALL
)
"""Comments and strings of a TOML text, those without an end included."""

BITS_MAX = 256
"""Bits of a whole number. TOML has 64, the widest key as many; Python cannot print one of 15,000."""

_BARE = re.compile(r"^[A-Za-z0-9_-]+$")


def format_key(key: str) -> str:
    """A key as TOML writes it: bare where that is allowed, else quoted."""
    return key if _BARE.match(key) else json.dumps(key, ensure_ascii=False)


def format_value(value: Any) -> str:
    """A value as TOML writes it on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        inner = ", ".join(f"{format_key(k)} = {format_value(v)}" for k, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(format_value(v) for v in value) + "]"
    if isinstance(value, Unrepresentable):
        return repr(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, int) and value.bit_length() > BITS_MAX:
        return hex(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def _float(value: float) -> str:
    """0.25, but 1e-4: small numbers as people write probabilities. Reads back as the same float."""
    if value == 0 or not math.isfinite(value) or 1e-3 <= abs(value) < 1e16:
        return repr(value)
    mantissa, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


class Unrepresentable(float):
    """A number that a float cannot hold: 1e-400 would be 0, and 1e400 infinite. Its `repr` is the text of the file."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _number(text: str) -> float:
    value = float(text)
    mantissa = text.lower().partition("e")[0]
    if (value == 0 and re.search("[1-9]", mantissa)) or (math.isinf(value) and "inf" not in text):
        value = Unrepresentable(value)
        value.text = text
    return value


@dataclass(frozen=True)
class Flaw:
    """A value that no key of a scenario may hold."""

    location: tuple[str | int, ...]
    value: Any
    """None where it cannot be shown."""
    expected: str


class NotToml(Exception):
    """A text that is not TOML, or nested too deeply to be read, with the reason."""


def parse(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text. Raises `NotToml`."""
    if text.count(".") >= DEPTH_MAX and _KEY_PARTS.search(_STRINGS.sub(_as_key_part, text)):
        raise NotToml(f"a key has too many parts; at most {DEPTH_MAX}")
    try:
        return tomllib.loads(text, parse_float=_number)
    except RecursionError:
        raise NotToml(f"tables and arrays are nested too deeply; at most {DEPTH_MAX}") from None
    except tomllib.TOMLDecodeError as error:
        raise NotToml(f"not TOML: {error}") from None
    except ValueError:
        # The standard library's bound on the digits of an integer.
        raise NotToml("not TOML: a whole number has at most 64 bits, and one here has thousands of digits") from None


def _as_key_part(found: re.Match[str]) -> str:
    """Return what stands for a string in a text where only keys are looked for."""
    return "" if found.group().startswith("#") else "s"


def flaw_of(value: Any) -> Flaw | None:
    """Return the first thing in a parsed value that no key may hold, None when there is none."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while waiting:
        location, found = waiting.pop()
        expected = _forbidden(found)
        if len(location) > DEPTH_MAX:
            return Flaw(location[:2], None, f"tables and arrays nested at most {DEPTH_MAX} deep")
        if expected is not None:
            return Flaw(location, found, expected)
        inner = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
        for key, item in inner:
            if isinstance(key, str) and has_control(key):
                return Flaw((*location, key), None, "a key without control characters")
            waiting.append(((*location, key), item))
    return None


def _forbidden(value: Any) -> str | None:
    if isinstance(value, str) and has_control(value):
        return "a text without control characters"
    if isinstance(value, int) and value.bit_length() > BITS_MAX:
        return "a whole number of at most 64 bits"
    return None


def parse_value(text: str) -> Any:
    """A value from the command line: TOML where it is TOML (`1e-3`, `true`, `[1, 2]`), else the text itself.

    `100Mbit/s` and `cubic` need no quotes; `{ name = "cubic" }` is a table.
    """
    try:
        parsed = parse(f"value = {text}")
    except NotToml:
        return text
    value = parsed.pop("value")
    return text if parsed or isinstance(value, datetime.date | datetime.time) else value


# For error messages alone, and compiled for the first of them.
_HEADER = r"^\s*(\[\[?)(.*?)\]\]?\s*(#.*)?$"
_PART = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_ASSIGNMENT = rf"^\s*({_PART}(?:\s*\.\s*{_PART})*)\s*="


def _parts(text: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, text)]


def key_lines(text: str) -> dict[tuple[str | int, ...], int]:
    """Line (from 1) of every table header and of every key at the start of a line; `flow` entries have their index.

    For error messages: keys inside inline tables are not in it, their parent is.
    """
    lines: dict[tuple[str | int, ...], int] = {}
    table: tuple[str | int, ...] = ()
    counts: dict[tuple[str | int, ...], int] = {}
    multiline: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if multiline is not None:
            multiline = None if multiline in line else multiline
            continue
        header = re.match(_HEADER, line)
        if header and not re.match(_ASSIGNMENT, line):
            table = _inside(tuple(_parts(header.group(2))), counts)
            if header.group(1) == "[[":
                index = counts.get(table, -1) + 1
                counts[table] = index
                table = (*table, index)
            lines.setdefault(table, number)
            continue
        assignment = re.match(_ASSIGNMENT, line)
        if assignment:
            lines.setdefault((*table, *_parts(assignment.group(1))), number)
            rest = line[assignment.end() :]
            for quote in ('"""', "'''"):
                if rest.count(quote) % 2 == 1:
                    multiline = quote
    return lines


def _inside(path: tuple[str, ...], counts: dict[tuple[str | int, ...], int]) -> tuple[str | int, ...]:
    """`flow.workload` below the second `[[flow]]` is `flow.1.workload`."""
    result: tuple[str | int, ...] = ()
    for position, part in enumerate(path):
        result = (*result, part)
        if position < len(path) - 1 and result in counts:
            result = (*result, counts[result])
    return result
