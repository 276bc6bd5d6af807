"""Read a TOML file of a program that runs on its own (a gateway, a monitor): validated tables, or one clear error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from elephan import user_files
from elephan.errors import InputError
from elephan.scenario.problem import ABSENT, Location, ScenarioError, expected_of
from elephan.scenario.table import Table
from elephan.scenario.toml import NotToml, flaw_of, key_lines, parse

T = TypeVar("T", bound=Table)


def validated(file: Path, model: type[T], faults: Callable[[T], Iterator[tuple[Location, str]]]) -> T:
    """Read `file` as `model`; `faults` yields what validation alone cannot see.

    Raises `InputError` with file, key, value and what would be right.
    """
    try:
        text = user_files.read_text(file, user_files.TOML)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error
    try:
        raw = parse(text)
    except NotToml as error:
        raise ScenarioError(file, None, None, str(error)) from None
    flaw = flaw_of(raw)
    if flaw is not None:
        value = ABSENT if flaw.value is None else flaw.value
        raise _error(file, text, raw, flaw.location, flaw.expected, value)
    try:
        config = model.model_validate(raw)
    except ValidationError as error:
        problems = [
            _error(file, text, raw, _location(dict(item)), expected_of(dict(item)), None)
            for item in error.errors(include_url=False)
        ]
        # The one that stands first in the file; those without a line (missing keys) come last.
        raise min(problems, key=_order) from None
    found = [_error(file, text, raw, location, expected, None) for location, expected in faults(config)]
    if found:
        raise min(found, key=_order)
    return config


def _order(problem: ScenarioError) -> int:
    return problem.line if problem.line is not None else 1 << 30


def _location(item: dict[str, Any]) -> Location:
    return (*item["loc"], *item.get("ctx", {}).get("key", ()))


def _error(file: Path, text: str, raw: Any, location: Location, expected: str, value: Any) -> ScenarioError:
    found = raw
    for part in location:
        inside = isinstance(found, dict) and part in found
        inside = inside or (isinstance(found, list) and isinstance(part, int) and part < len(found))
        found = found[part] if inside else ABSENT
    lines = key_lines(text)
    line = next((lines[location[:end]] for end in range(len(location), 0, -1) if location[:end] in lines), None)
    key = ".".join(str(part) for part in location) or None
    return ScenarioError(file, key, found if value is None else value, expected, line)
