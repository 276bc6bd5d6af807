"""Read the file of a gateway: TOML in, validated tables out, one clear error where it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from elephan.errors import InputError
from elephan.gateway.checks import faults
from elephan.gateway.config import Config
from elephan.scenario.problem import ABSENT, ScenarioError, expected_of
from elephan.scenario.toml import NotToml, flaw_of, key_lines, parse


def load(file: Path) -> Config:
    """Read the file of a gateway. Raises `InputError` with file, key, value and what would be right."""
    try:
        text = file.read_text(encoding="utf-8")
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
        config = Config.model_validate(raw)
    except ValidationError as error:
        problems = [
            _error(file, text, raw, _location(dict(item)), expected_of(dict(item)), None)
            for item in error.errors(include_url=False)
        ]
        # The one that stands first in the file; those without a line (missing keys) come last.
        raise min(problems, key=lambda problem: problem.line if problem.line is not None else 1 << 30) from None
    found = [_error(file, text, raw, location, expected, None) for location, expected in faults(file, config)]
    if found:
        raise min(found, key=lambda problem: problem.line if problem.line is not None else 1 << 30)
    return config


def _location(item: dict[str, Any]) -> tuple[str | int, ...]:
    return (*item["loc"], *item.get("ctx", {}).get("key", ()))


def _error(
    file: Path, text: str, raw: Any, location: tuple[str | int, ...], expected: str, value: Any
) -> ScenarioError:
    found = raw
    for part in location:
        inside = isinstance(found, dict) and part in found
        inside = inside or (isinstance(found, list) and isinstance(part, int) and part < len(found))
        found = found[part] if inside else ABSENT
    lines = key_lines(text)
    line = next((lines[location[:end]] for end in range(len(location), 0, -1) if location[:end] in lines), None)
    key = ".".join(str(part) for part in location) or None
    return ScenarioError(file, key, found if value is None else value, expected, line)
