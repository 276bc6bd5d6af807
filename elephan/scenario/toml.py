"""The text side of TOML: values as text, lines of keys. Parsing itself is the standard library's."""

from __future__ import annotations

import datetime
import json
import math
import re
import tomllib
from decimal import Decimal
from typing import Any

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
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def _float(value: float) -> str:
    """0.25, but 1e-4: small numbers as people write probabilities. Reads back as the same float."""
    if value == 0 or not math.isfinite(value) or 1e-3 <= abs(value) < 1e16:
        return repr(value)
    mantissa, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def parse_value(text: str) -> Any:
    """A value from the command line: TOML where it is TOML (`1e-3`, `true`, `[1, 2]`), else the text itself.

    `100Mbit/s` and `cubic` need no quotes; `{ name = "cubic" }` is a table.
    """
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    value = parsed.pop("value")
    return text if parsed or isinstance(value, datetime.date | datetime.time) else value


_HEADER = re.compile(r"^\s*(\[\[?)(.*?)\]\]?\s*(#.*)?$")
_ASSIGNMENT = re.compile(
    r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


def _parts(text: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(text)]


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
        header = _HEADER.match(line)
        if header and not _ASSIGNMENT.match(line):
            table = _inside(tuple(_parts(header.group(2))), counts)
            if header.group(1) == "[[":
                index = counts.get(table, -1) + 1
                counts[table] = index
                table = (*table, index)
            lines.setdefault(table, number)
            continue
        assignment = _ASSIGNMENT.match(line)
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
