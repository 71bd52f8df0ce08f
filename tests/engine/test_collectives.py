"""Collectives: the textbook forms without latency, and sane in between."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engine.chip import chip
from planner.engine.collectives import across, all_reduce, by_group, exchange
from planner.spec.catalog import Catalog
from planner.spec.efficiency import Collective, Regime

CATALOG = Catalog()
H100 = chip(CATALOG.hardware("h100-sxm"), CATALOG.efficiency("h100-sxm", "vllm"))
BUS = 100e9


def ideal(*, one_shot: bool) -> Collective:
    """Collective without latency whose bus bandwidth is the same for every group."""
    same = {size: Regime.model_validate({"latency": "0 s", "bandwidth": "100 GB/s"}) for size in (2, 8)}
    text = {"source": "assumed", "basis": "assumed", "band": 0.3, "ring": same}
    return Collective.model_validate(text | ({"one_shot": same} if one_shot else {}))


RING, BOTH = ideal(one_shot=False), ideal(one_shot=True)


@pytest.mark.parametrize("group", [2, 3, 4, 8, 64])
def test_a_ring_moves_the_message_once_and_back(group: int) -> None:
    message = np.array([[1e6, 3e6]])
    p = np.array([[group]])
    part = (group - 1) / group * message / BUS
    np.testing.assert_allclose(exchange(message, p, RING), part)
    np.testing.assert_allclose(all_reduce(message, p, RING), 2 * part)


def test_one_shot_is_taken_where_it_is_faster() -> None:
    message = np.array([[1e6]])
    # Without latency one-shot moves p / 2 times as much: they tie at 2.
    for group in (2, 4, 8):
        np.testing.assert_allclose(
            all_reduce(message, np.array([[group]]), BOTH), all_reduce(message, np.array([[group]]), RING)
        )
    own = H100.collectives.all_reduce
    small = all_reduce(np.array([[100.0]]), np.array([[2]]), own)[0, 0]
    assert own.one_shot[2].latency < own.ring[2].latency
    assert small == pytest.approx(own.one_shot[2].latency, rel=1e-3)


def test_alone_there_is_nothing_to_do() -> None:
    message, one = np.array([[1e9]]), np.array([[1]])
    for collective in (H100.collectives.all_reduce, RING):
        assert all_reduce(message, one, collective).tolist() == [[0.0]]
        assert exchange(message, one, collective).tolist() == [[0.0]]


def test_groups_between_those_measured_lie_between_them() -> None:
    ring = H100.collectives.all_gather.ring
    latency, bandwidth = by_group(ring, np.array([2, 3, 4, 8, 16, 64]))
    for size, place in ((2, 0), (4, 2), (8, 3)):
        assert latency[place] == pytest.approx(ring[size].latency)
        assert bandwidth[place] == pytest.approx(ring[size].bandwidth)
    assert ring[2].latency < latency[1] < ring[4].latency
    # Beyond: twice the members take twice the steps, and the links are the same.
    assert latency[4] == pytest.approx(2 * ring[8].latency)
    assert latency[5] == pytest.approx(8 * ring[8].latency)
    assert bandwidth[4] == bandwidth[5] == pytest.approx(ring[8].bandwidth)


@given(st.floats(1.0, 1e9), st.floats(1.0, 4.0), st.integers(1, 64))
def test_larger_messages_never_take_less(message: float, factor: float, group: int) -> None:
    for one in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
        collective = getattr(H100.collectives, one)
        run = all_reduce if one == "all_reduce" else exchange
        short, long = run(np.array([[message, message * factor]]), np.array([[group]]), collective)[0]
        assert 0.0 <= short <= long


def test_across_nodes_each_piece_has_its_latency() -> None:
    rate = H100.scale_out.bandwidth * H100.scale_out_link
    assert across(np.array(1e9), H100) == pytest.approx(9e-6 + 1e9 / rate)
    assert across(np.array(1e9), H100, 4.0) == pytest.approx(36e-6 + 1e9 / rate)
