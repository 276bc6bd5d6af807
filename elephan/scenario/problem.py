"""A complete message for a fault of a scenario."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError

from elephan.errors import InputError
from elephan.printable import one_line
from elephan.scenario.toml import format_value

Location = tuple[str | int, ...]

#: Stands for "the key is not there" where None could be a value.
ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "ABSENT"})()


class ScenarioError(InputError):
    """A scenario that cannot run: which file, which key, which value, and what would be right.

    `file` is the path as given, `key` the dotted key (None when the file as a whole is at fault), `value` what was
    found there (ABSENT when the key is missing), `expected` a phrase that says what would be right, `line` the line in
    the file, from 1 (None when the value came from the command line), `change` the `key=value` of `--set` that is at
    fault (None when the file is).
    """

    def __init__(
        self,
        file: Path | str,
        key: str | None,
        value: Any,
        expected: str,
        line: int | None = None,
        change: str | None = None,
    ) -> None:
        self.file = str(file)
        self.key = key
        self.value = value
        self.expected = expected
        self.line = line
        self.change = change
        place = "--set" if change is not None else self.file if line is None else f"{self.file}:{line}"
        subject = "" if key is None else f" {key}:" if value is ABSENT else f" {key} = {_shortened(value)}:"
        super().__init__(one_line(f"{place}:{subject} {expected}"))


def _shortened(value: Any) -> str:
    text = format_value(value)
    return text if len(text) <= 200 else text[:197] + "..."


class Problem(Exception):
    """A problem found while a validated scenario is resolved; the loader adds file, value and line."""

    def __init__(self, location: Sequence[str | int], expected: str) -> None:
        super().__init__(expected)
        self.location: Location = tuple(location)
        self.expected = expected


def wrong(expected: str, *key: str | int) -> PydanticCustomError:
    """The error of a validator: the expected value, and the faulty key below the validated one."""
    return PydanticCustomError("scenario", "{expected}", {"expected": expected, "key": list(key)})


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """`unknown key; did you mean "loss"?`, with all known names when none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f'unknown {kind}; did you mean "{near[0]}"?'
    return f"unknown {kind}; known: {', '.join(names)}" if names else f"unknown {kind}; there is none"


def renamed(old: str, new: str) -> str:
    """Return the expected text for a name of version 0.1.0."""
    return f'"{new}", which is what "{old}" is called now'


_BUILT_IN = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": 'a text in quotes, such as "name"',
    "list_type": "a list, such as [1, 2]",
    "model_type": 'a table, such as { key = "value" }',
    "dict_type": 'a table, such as { key = "value" }',
    "model_attributes_type": 'a table, such as { key = "value" }',
}


def expected_of(error: dict[str, Any]) -> str:
    """The phrase for one error of pydantic's list."""
    kind = error["type"]
    if kind == "list_type" and isinstance(error.get("input"), dict):
        name = ".".join(str(part) for part in error["loc"] if not isinstance(part, int))
        return f"a list of tables: [[{name}]] in place of [{name}]"
    if kind == "scenario":
        return str(error["ctx"]["expected"])
    if kind == "missing":
        return "missing; this key is required"
    if kind == "literal_error":
        return "one of " + re.sub(r"'([^']*)'", r'"\1"', str(error["ctx"]["expected"])).replace(" or ", ", ")
    if kind == "value_error":
        # Without pydantic's own "Value error, " before it.
        return str(error["ctx"]["error"])
    return _BUILT_IN.get(kind, str(error["msg"]).removeprefix("Input should be "))
