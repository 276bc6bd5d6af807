"""The text side of TOML."""

from __future__ import annotations

import tomllib

import pytest

from elephan.scenario.toml import format_value, key_lines, parse_value


@pytest.mark.parametrize(
    "value", [True, 3, 0.25, 1e-4, 1.5e-12, 2.5e17, 'a "b" \\ é', [1, "x"], {"a b": 1, "c": {"d": []}}]
)
def test_what_is_written_reads_back(value: object) -> None:
    assert tomllib.loads(f"value = {format_value(value)}")["value"] == value


def test_small_numbers_read_as_people_write_probabilities() -> None:
    assert [format_value(value) for value in (1e-4, 1.5e-5, 0.05)] == ["1e-4", "1.5e-5", "0.05"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("10", 10),
        ("true", True),
        ("cubic", "cubic"),
        ("8MB", "8MB"),
        ("./mine.c", "./mine.c"),
        ('"10"', "10"),
        ("[1, 2]", [1, 2]),
        ("{ every = 3 }", {"every": 3}),
        ("2026-01-01", "2026-01-01"),
        ("1\nx = 2", "1\nx = 2"),
        ("", ""),
    ],
)
def test_values_of_the_command_line(text: str, value: object) -> None:
    assert parse_value(text) == value


def test_lines_of_keys() -> None:
    text = '''title = """
not = 1
[neither]
"""
a.b = 1  # a dotted key
[path]   # with a comment
"loss" = [
    1, 2,
]
[[flow]]
x = 1
[[flow]]
[flow.workload]
kind = "bulk"
[sweep]
"path.loss" = [1]
'''
    lines = key_lines(text)
    assert lines == {
        ("title",): 1,
        ("a", "b"): 5,
        ("path",): 6,
        ("path", "loss"): 7,
        ("flow", 0): 10,
        ("flow", 0, "x"): 11,
        ("flow", 1): 12,
        ("flow", 1, "workload"): 13,
        ("flow", 1, "workload", "kind"): 14,
        ("sweep",): 15,
        ("sweep", "path.loss"): 16,
    }
