"""Availability against the sum over all states of a few nodes."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.fleet.failures import availability

HOUR = 3600.0
few = st.integers(1, 7)


@given(nodes=few, spare=st.integers(0, 8), mtbf=st.floats(1.0, 1e4), mttr=st.floats(0.1, 100.0))
def test_it_is_the_probability_that_enough_nodes_are_up(nodes: int, spare: int, mtbf: float, mttr: float) -> None:
    up = mtbf / (mtbf + mttr)
    total = 0.0
    for state in product((True, False), repeat=nodes):
        chance = 1.0
        for works in state:
            chance *= up if works else 1.0 - up
        total += chance if state.count(False) <= spare else 0.0
    assert availability(nodes, spare, mtbf * HOUR, mttr * HOUR) == pytest.approx(total)


def test_a_spare_node_helps_and_a_further_node_hurts() -> None:
    alone, spared = (availability(16, spare, 6335 * HOUR, 4 * HOUR) for spare in (0, 1))
    assert alone < spared < 1.0
    assert availability(17, 1, 6335 * HOUR, 4 * HOUR) < spared
