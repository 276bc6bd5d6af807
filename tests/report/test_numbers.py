"""Units, statistics, the catalogue."""

import math
import random
import re
from pathlib import Path

import pytest
from scipy import special

from elephan import units
from elephan.report import metrics
from elephan.report.metrics import metric
from elephan.report.statistics import estimate, holm, paired_p, student_tail, t_975


@pytest.mark.parametrize(
    ("show", "value", "text"),
    [
        (units.rate, 8.12e8, "812 Mbit/s"),
        (units.rate, 999_999_999, "1.00 Gbit/s"),
        (units.rate, 0, "0 bit/s"),
        (units.rate, None, "–"),
        (units.rate, float("nan"), "–"),
        (units.size, 8_388_608, "8.39 MB"),
        (units.size, 1, "1 B"),
        (units.size, 12.4, "12 B"),
        (units.size, 999.6, "1.00 kB"),
        (units.size, None, "–"),
        (units.size, float("nan"), "–"),
        (units.exact_size, 1436, "1436 B"),
        (units.exact_size, 33_554_432, "33554432 B"),
        (units.exact_size, None, "–"),
        (units.duration, 0.067, "67.0 ms"),
        (units.duration, 0.0000123, "12.3 µs"),
        (units.duration, 12.34, "12.3 s"),
        (units.duration, 9.83e-13, "< 1 ns"),
        (units.duration, 1e-9, "1.00 ns"),
        (units.duration, 135, "2 min 15 s"),
        (units.duration, 7300, "2 h 1 min"),
        (units.share, 0.8123, "81.2 %"),
        (units.share, 0.001234, "0.123 %"),
        (units.share, 1.0, "100.0 %"),
        (units.count, 241936, "241,936"),
        (units.count, 2.5, "2.5"),
        (units.plain, 0.99951, "1.00"),
    ],
)
def test_numbers_as_people_read_them(show: object, value: float | None, text: str) -> None:
    assert show(value) == text  # type: ignore[operator]


def below(t: float, degrees: int, steps: int = 4000) -> float:
    """Student's distribution function by Simpson's rule over its density, from 0."""
    log_factor = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(degrees * math.pi) / 2
    width = t / steps
    values = [
        math.exp(log_factor - (degrees + 1) / 2 * math.log1p((i * width) ** 2 / degrees)) for i in range(steps + 1)
    ]
    return 0.5 + width / 3 * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))


@pytest.mark.parametrize("degrees", [*range(1, 40), 60, 120, 1000, 10**6])
def test_t_is_students(degrees: int) -> None:
    assert below(t_975(degrees), degrees) == pytest.approx(0.975, abs=1e-9)


@pytest.mark.parametrize("degrees", [1, 2, 3, 8, 31, 998, 9_999])
def test_t_is_that_of_scipy(degrees: int) -> None:
    assert t_975(degrees) == pytest.approx(float(special.stdtrit(degrees, 0.975)), rel=1e-12)


def test_no_degree_of_freedom_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        t_975(0)


def test_interval_of_known_values() -> None:
    found = estimate([10.0, 12.0, 14.0, None])
    assert found is not None
    assert (found.mean, found.count) == (12.0, 3)
    assert found.half_width == pytest.approx(4.302653 * 2 / 3**0.5)
    single = estimate([3])
    assert single is not None and single.half_width is None
    assert estimate([None]) is None


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 12, 29, 60])
@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 2.5, 6.0])
def test_the_tail_is_that_of_students_distribution(t: float, degrees: int) -> None:
    expected = 2 * (1 - below(t, degrees)) if t else 1.0
    assert student_tail(t, degrees) == pytest.approx(expected, abs=1e-9)
    assert student_tail(-t, degrees) == student_tail(t, degrees)


def test_a_paired_test_sees_what_the_seeds_have_in_common() -> None:
    # Student (1908), the additional hours of sleep of ten patients under two drugs: t = 4.06, p = 0.00283.
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    assert paired_p(first, second) == pytest.approx(0.00283, abs=5e-6)
    assert paired_p([1.0], [2.0]) == paired_p([1.0, 2.0], [1.0, 2.0]) == 1.0
    assert paired_p([1.0, 2.0], [2.0, 3.0]) == 0.0
    with pytest.raises(ValueError):
        paired_p([1.0], [1.0, 2.0])


def test_many_comparisons_need_more_than_one() -> None:
    # Each alone would be significant at 5 %; of four, the limits are 1/80, 1/60, 1/40 and 1/20.
    assert holm([0.04, 0.010, 0.03, 0.012]) == [False, True, False, True]
    assert holm([0.04, 0.02]) == [True, True]
    assert holm([]) == []


def test_docs_are_what_the_catalogue_says() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
    assert page.read_text() == metrics.as_markdown(), "python -m elephan.report.metrics --write"


def test_names_carry_the_unit_they_claim() -> None:
    for catalogue in (metrics.CATALOGUE, metrics.LINKS):
        for item in catalogue.values():
            for suffix, unit, _ in metrics.SUFFIXES:
                if item.name.endswith(suffix):
                    assert item.unit == unit, item.name
                    break
    assert set(metrics.HEADLINE) <= set(metrics.CATALOGUE)


def test_an_unknown_metric_is_shown_by_its_unit() -> None:
    assert metrics.metric("disk_wait_s").show(0.25) == "250 ms"
    assert metrics.metric("disk_wait_s").title == "disk wait"


def test_a_number_has_its_noun() -> None:
    told = [units.pluralize(number, noun) for number, noun in ((1, "entry"), (0, "entry"), (2, "delay"), (2, "run"))]
    assert told == ["1 entry", "0 entries", "2 delays", "2 runs"]


def test_a_wide_range_of_times_has_whole_numbers_of_one_unit() -> None:
    assert units.duration_range(64.2, 193_260) == "1 min to 54 h"
    assert units.duration_range(9.21, 13.4) == "9.21 s to 13.4 s"
    assert units.duration_range(0, 5) == "0 s to 5.00 s"
    draw, sizes = random.Random(53), {"s": 1.0, "min": 60.0, "h": 3600.0, "days": 86_400.0, "ms": 1e-3}
    for _ in range(500):
        low = 10 ** draw.uniform(-2, 5)
        high = low * 10 ** draw.uniform(0, 4)
        text = units.duration_range(low, high)
        if high < units.WIDE * low:
            assert text == f"{units.duration(low)} to {units.duration(high)}"
            continue
        ends = text.split(" to ")
        for end, value in zip(ends, (low, high), strict=True):
            ((number, unit),) = re.findall(r"^([\d.,]+) (\w+)$", end)
            # A whole number of a unit is right to half of it.
            assert float(number.replace(",", "")) * sizes[unit] == pytest.approx(value, rel=0.5), text
        assert units.is_useless(low, high) == (high >= 100 * max(low, 1.0))


@pytest.mark.parametrize("part", ["mean", "p50", "p99", "max"])
def test_the_time_of_a_frame_is_not_that_of_a_write(part: str) -> None:
    """Both stand in a SAN's table: "latency p50 3.01 ms" beside "write p50 12.0 ms" did not say which is which."""
    assert metric(f"latency_{part}_s").title == f"frame {part}"
    assert metric(f"write_latency_{part}_s").title == f"write {part}"
