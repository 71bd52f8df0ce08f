"""Search, interpolation and inversion of rows against the plain loops that they replace."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.numeric import Bools, Ints, interpolate_rows, inverse_rows, least

GRID = np.array([0.0, 0.5, 2.0, 7.0])
values = st.lists(st.floats(0, 100, allow_subnormal=False), min_size=4, max_size=4)
tables = st.lists(values, min_size=1, max_size=6).map(np.array)


@given(st.lists(st.tuples(st.integers(-5, 50), st.integers(0, 60), st.integers(0, 80)), min_size=1, max_size=30))
def test_least_agrees_with_counting_up(rows: list[tuple[int, int, int]]) -> None:
    """Bisection finds what a loop over the range finds, and never asks outside the range."""
    low = np.array([row[0] for row in rows])
    high = low + np.array([row[1] for row in rows])
    goal = np.array([row[2] for row in rows])

    def holds(n: Ints) -> Bools:
        assert ((n >= low) & (n <= high)).all()
        return np.asarray(n >= goal)

    counted = [next((n for n in range(a, b + 1) if n >= g), b + 1) for a, b, g in zip(low, high, goal, strict=True)]
    assert least(holds, low, high).tolist() == counted


def test_least_leaves_its_bounds_alone() -> None:
    """The caller's arrays are not written to."""
    low, high = np.array([1, 1]), np.array([9, 9])
    least(lambda n: n > np.array([3, 99]), low, high)
    assert low.tolist() == [1, 1]
    assert high.tolist() == [9, 9]


@given(tables, st.lists(st.floats(-1, 9), min_size=6, max_size=6))
def test_interpolation_agrees_with_numpy_on_each_row(table: np.ndarray, at: list[float]) -> None:
    """Row by row, clamped at the edges, it is numpy's own one-row interpolation."""
    x = np.array(at[: len(table)])
    expected = [np.interp(x[i], GRID, table[i]) for i in range(len(table))]
    np.testing.assert_allclose(interpolate_rows(GRID, table, x), expected, rtol=1e-12, atol=1e-12)
    several = np.tile(np.array(at), (len(table), 1))
    expected_rows = [np.interp(several[i], GRID, table[i]) for i in range(len(table))]
    np.testing.assert_allclose(interpolate_rows(GRID, table, several), expected_rows, rtol=1e-12, atol=1e-12)


def test_a_grid_of_one_point_is_constant() -> None:
    """There is nothing to interpolate between."""
    assert interpolate_rows(np.array([3.0]), np.array([[5.0], [6.0]]), np.array([0.0, 9.0])).tolist() == [5.0, 6.0]
    assert inverse_rows(np.array([[5.0], [6.0]]), np.array([3.0]), np.array([5.0, 7.0])).tolist() == [3.0, np.inf]


@given(tables, st.lists(st.floats(0, 110), min_size=6, max_size=6))
def test_the_inverse_reaches_the_target_and_nothing_before_it_does(table: np.ndarray, goals: list[float]) -> None:
    """The position returned is the first at which the interpolated row reaches its target."""
    rising = np.sort(table, axis=1)
    target = np.array(goals[: len(table)])
    x = inverse_rows(rising, GRID, target)
    assert (np.isinf(x) == (target > rising[:, -1])).all()
    found = np.isfinite(x)
    reached = interpolate_rows(GRID, rising, np.where(found, x, 0.0))
    assert (reached >= target - 1e-9)[found].all()
    earlier = interpolate_rows(GRID, rising, np.where(found, x - 1e-3, 0.0))
    assert (earlier <= np.maximum(target, rising[:, 0]))[found].all()
