"""Names of points."""

from __future__ import annotations

from elephan.report.points import distinct_texts


def test_tables_are_told_apart_by_the_entries_that_differ() -> None:
    shared = 'disk = "nvme", source = { kind = "trace", trace = "x, y.trace" }'
    values = [
        f'{{ kind = "fcp", protocol = "fcip", write_acceleration = true, {shared} }}',
        f'{{ kind = "fcp", protocol = "fcip", {shared} }}',
        f'{{ kind = "iscsi", {shared} }}',
    ]
    assert distinct_texts(values) == [
        "fcp, fcip, write acceleration",
        "fcp, fcip",
        "iscsi",
    ]
    assert distinct_texts(["{ a = 1 }", "{ a = 1, b = 2 }"]) == ["–", "b 2"]
    # A word alone would stand for both keys.
    assert distinct_texts(['{ a = "x" }', '{ b = "x" }']) == ['a "x"', 'b "x"']
    assert distinct_texts(['{ depth = 4, size = "4KiB" }', '{ depth = 8, size = "4KiB", cache = false }']) == [
        "depth 4",
        "depth 8, no cache",
    ]


def test_other_values_are_as_they_were() -> None:
    for values in (["10ms", "20ms"], ["cubic", "{ a = 1 }"], [1, None], []):
        assert distinct_texts(values) == values
