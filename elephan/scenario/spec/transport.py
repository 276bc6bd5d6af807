"""Translate a scenario's congestion control table to the core's form: an algorithm and integers."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from elephan.congestion_control import CongestionControl, Parameter, compiled_once, congestion_controls
from elephan.errors import InputError
from elephan.scenario.problem import Location, Problem, unknown
from elephan.scenario.quantity import number, parse_span

#: ns in the units that an algorithm may declare for a time.
_TIME_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def resolve(transport: dict[str, Any], base: Path, location: Location) -> tuple[str, dict[str, int]]:
    """The algorithm (a built-in name, or the absolute path of a C file) and the values of its parameters as integers.

    A user's own file is compiled and checked here. Raises `Problem`, with the compiler's words where it failed.
    """
    name = transport["name"]
    where = (*location, "name")
    if name.endswith(".c"):
        path = (base / name).resolve()
        described = _compiled(path, where)
        name = str(path)
    else:
        known = {known.name: known for known in congestion_controls()}
        if name not in known:
            raise Problem(where, unknown("congestion control", name, known) + ' (or a C file, such as "./mine.c")')
        described = known[name]
    parameters = {parameter.name: parameter for parameter in described.parameters}
    values: dict[str, int] = {}
    for key, value in transport.items():
        if key == "name":
            continue
        if key not in parameters:
            raise Problem((*location, key), unknown(f"parameter of {described.name}", key, parameters))
        values[key] = _value(parameters[key], value, (*location, key))
    return name, values


def _compiled(path: Path, where: Location) -> CongestionControl:
    try:
        return compiled_once(path)
    except OSError as error:
        raise Problem(where, f"a C file that can be read; {path}: {error.strerror}") from None
    except InputError as error:
        # A compiler's own lines begin a new one; that there is no compiler is one line.
        begin = "\n" if "\n" in str(error).strip() else " "
        raise Problem(where, f"a congestion control that compiles:{begin}{error}") from None


def _value(parameter: Parameter, value: Any, location: Location) -> int:
    if parameter.choices:
        return _choice(parameter, value, location)
    low, high = parameter.text(parameter.minimum), parameter.text(parameter.maximum)
    if parameter.is_switch:
        if isinstance(value, bool) or value in (0, 1):
            return int(value)
        # As text from a command line.
        if value in ("on", "off", "true", "false"):
            return int(value in ("on", "true"))
        raise Problem(location, f"true or false: {parameter.doc}")
    unit = f" {parameter.unit_text}" if parameter.unit_text else ""
    expected = f"{'a number' if parameter.scale != 1 else 'a whole number'} from {low} to {high}{unit}: {parameter.doc}"
    try:
        scaled = _fraction(parameter, value, expected) * parameter.scale
    except Problem:
        raise
    except Exception:
        raise Problem(location, expected) from None
    # With a scale the value is fixed-point and is rounded to its grid; without, a fraction is a mistake.
    exact = parameter.scale != 1 or scaled.denominator == 1
    rounded = round(scaled)
    if not exact or not parameter.minimum <= rounded <= parameter.maximum:
        raise Problem(location, expected)
    return rounded


def _choice(parameter: Parameter, value: Any, location: Location) -> int:
    names = parameter.choices
    # A choice with "off" has a default: the name after "off". It also stands for true, "on" and 1.
    if names[0] == "off" and (isinstance(value, bool) or value in (0, 1, "on")):
        return int(bool(value))
    # A name may look like a number: 2.1 for "2.1".
    if str(value) in names:
        return names.index(str(value))
    known = ", ".join(f'"{name}"' for name in names)
    raise Problem(location, f"one of {known}: {parameter.doc}")


def _fraction(parameter: Parameter, value: Any, expected: str) -> Fraction:
    if isinstance(value, str) and parameter.unit in _TIME_UNITS and value.strip()[-1:].isalpha():
        return Fraction(parse_span(value), _TIME_UNITS[parameter.unit])
    return number(value, expected)


def label(transport: Any) -> Any:
    """A congestion control as one text for tables: `storage_friendly(reduction=1/8)`."""
    if not isinstance(transport, dict):
        return transport
    values = ", ".join(f"{key}={_plain(value)}" for key, value in transport.items() if key != "name")
    return f"{transport.get('name', '')}({values})" if values else transport.get("name", "")


def _plain(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
