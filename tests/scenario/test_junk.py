"""Junk in a file gives a scenario or one line of error: never a traceback."""

from __future__ import annotations

import copy
import datetime
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elephan.scenario import ScenarioError, load
from elephan.scenario.toml import format_key, format_value
from tests.scenario.conftest import Load

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
JUNK = [
    0,
    -1,
    2**70,
    True,
    0.5,
    1e308,
    float("nan"),
    float("-inf"),
    "",
    "x",
    "1e999999999",
    "99999999999999999999s",
    "0bdp",
    "1/0",
    "-5%",
    "a.b",
    [],
    [1],
    ["x"],
    [{}],
    {},
    {"kind": "bulk"},
    {"x": {"y": 1}},
    datetime.time(7, 30),
    datetime.date(2026, 1, 1),
]


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a parsed file, tables among them."""
    if place:
        yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*place, key))


def with_junk(parsed: dict[str, Any], place: tuple[Any, ...], junk: Any) -> str:
    """The file as TOML with one value replaced."""
    changed = copy.deepcopy(parsed)
    inner: Any = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = junk
    return "".join(f"{format_key(key)} = {format_value(value)}\n" for key, value in changed.items())


@pytest.mark.parametrize("name", ["bulk", "dumbbell", "events", "offered", "two-way"])
def test_junk_anywhere(name: str, tmp_path: Path, scenario: Load) -> None:
    parsed = tomllib.loads((EXAMPLES / f"{name}.toml").read_text(encoding="utf-8"))
    refused = 0
    for index, place in enumerate(places(parsed)):
        # A third for each place keeps this short; neighbours get the others.
        for junk in JUNK[index % 3 :: 3]:
            try:
                scenario(with_junk(parsed, place, junk))
            except ScenarioError as error:
                refused += 1
                assert "\n" not in str(error), (place, junk)
    assert refused > 40


@pytest.mark.parametrize("junk", ["", "\0", "[", "a", "[[flow]]", "flow = [1]\n", "sweep = 1\n", "[sweep]\nx = {}\n"])
def test_junk_as_a_file(scenario: Load, junk: str) -> None:
    with pytest.raises(ScenarioError):
        scenario(junk)
    with pytest.raises(ScenarioError):
        scenario(junk, "flow.congestion_control=reno", "path.loss=1e-3", "sweep.path.rtt=['1ms']")


def test_a_folder_is_no_scenario(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read: Is a directory"):
        load(tmp_path)
