"""Cost is divided, never lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.fleet.cost import divide, per_successful_task

parts = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=6)


@given(total=st.floats(0.0, 1e6), used=parts)
def test_the_parts_sum_to_the_whole_and_none_is_negative(total: float, used: list[float]) -> None:
    got = divide(total, used)
    assert sum(got) == pytest.approx(total)
    assert min(got) >= 0.0


def test_who_uses_twice_as_much_pays_twice_as_much() -> None:
    assert divide(9.0, [1.0, 2.0, 0.0]) == pytest.approx([3.0, 6.0, 0.0])


def test_a_pool_that_stands_still_is_paid_evenly() -> None:
    assert divide(9.0, [0.0, 0.0]) == [4.5, 4.5]


@given(cost=st.floats(1e-6, 10.0), calls=st.integers(1, 8), success=st.floats(0.05, 1.0))
def test_a_task_costs_at_least_its_calls(cost: float, calls: int, success: float) -> None:
    got = per_successful_task(cost, calls, success)
    assert got is not None
    assert got >= cost * calls * (1 - 1e-12)
    assert got == pytest.approx(cost * calls / success**calls)


def test_a_task_that_never_succeeds_has_no_cost() -> None:
    assert per_successful_task(0.1, 2, 0.0) is None
