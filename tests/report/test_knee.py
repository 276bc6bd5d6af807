"""The knee of a load curve, held against models whose knee is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elephan.report.knee import LoadPoint, beyond, knee_of


def pipe(depths: list[int], capacity: float, time_s: float) -> list[LoadPoint]:
    """A line that serves each request within `time_s` until its capacity is reached; further requests wait."""
    points = []
    for depth in depths:
        throughput = min(depth / time_s, capacity)
        # Little's law.
        points.append(LoadPoint(depth, 1, throughput, depth / throughput))
    return points


@pytest.mark.parametrize(("capacity", "time_s"), [(1500.0, 0.04), (1e6, 1e-5), (100.0, 1.0)])
def test_the_knee_of_a_pipe_is_where_it_is_full_and_no_queue_stands(capacity: float, time_s: float) -> None:
    full = round(capacity * time_s)
    points = pipe(list(range(1, 4 * full + 1)), capacity, time_s)
    knee = knee_of(points)
    assert knee is not None
    assert points[knee.index].depth == full
    assert knee.edges == ()


def test_the_knee_of_m_m_1_is_at_half_of_its_capacity() -> None:
    # Kleinrock 1979: power rho (1 - rho) is greatest at rho = 1/2. Its mean number in the system is there 1.
    points = [LoadPoint(rho / (100 - rho), 1, rho / 100, 1 / (1 - rho / 100)) for rho in range(1, 100)]
    knee = knee_of(points)
    assert knee is not None
    assert points[knee.index].throughput == 0.5


def test_a_longer_sweep_does_not_move_a_knee() -> None:
    short = pipe([1, 2, 4, 8, 16, 32, 64, 128], 1500, 0.04)
    long = pipe([1, 2, 4, 8, 16, 32, 64, 128, 1024, 65536], 1500, 0.04)
    found = knee_of(short), knee_of(long)
    assert found[0] is not None and found[0] == found[1]
    assert short[found[0].index].depth == 64


def test_of_equal_powers_the_least_load_is_the_knee() -> None:
    points = [LoadPoint(depth, connections, 10, 1) for depth in (4, 2, 8) for connections in (2, 1)]
    knee = knee_of(points)
    assert knee is not None
    assert (points[knee.index].depth, points[knee.index].connections) == (2, 1)


def test_a_knee_at_the_edge_is_said_to_be_there() -> None:
    knee = knee_of(pipe([1, 2, 4, 8], 1500, 0.04))
    assert knee is not None
    assert knee.edges == ("queue depth",)
    assert beyond(knee.edges) == "the knee is at the greatest queue depth measured; it may lie beyond"
    grid = [LoadPoint(depth, n, depth * n, 1) for depth in (1, 2) for n in (1, 2)]
    both = knee_of(grid)
    assert both is not None
    assert both.edges == ("queue depth", "number of connections")


def test_without_two_loads_that_gave_something_there_is_no_knee() -> None:
    one = LoadPoint(1, 1, 10, 1)
    assert knee_of([]) is None
    assert knee_of([one]) is None
    assert knee_of([one, one]) is None
    assert knee_of([one, None, LoadPoint(2, 1, 0, 0)]) is None


@given(st.lists(st.tuples(st.integers(1, 512), st.integers(1, 8), st.floats(1, 1e9), st.floats(1e-6, 10)), max_size=30))
def test_no_point_has_more_power_than_the_knee_and_units_do_not_matter(
    given: list[tuple[int, int, float, float]],
) -> None:
    points = [LoadPoint(*one) for one in given]
    knee = knee_of(points)
    if knee is None:
        assert len({(point.depth, point.connections) for point in points}) < 2
        return
    assert all(point.power <= points[knee.index].power for point in points)
    # By a power of two, so that nothing is rounded.
    scaled = [LoadPoint(p.depth, p.connections, p.throughput * 1024, p.latency_s / 1024) for p in points]
    assert knee_of(scaled) == knee
