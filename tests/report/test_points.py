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
        'kind = "fcp", protocol = "fcip", write_acceleration = true',
        'kind = "fcp", protocol = "fcip"',
        'kind = "iscsi"',
    ]
    assert distinct_texts(["{ a = 1 }", "{ a = 1, b = 2 }"]) == ["{}", "b = 2"]


def test_other_values_are_as_they_were() -> None:
    for values in (["10ms", "20ms"], ["cubic", "{ a = 1 }"], [1, None], []):
        assert distinct_texts(values) == values
