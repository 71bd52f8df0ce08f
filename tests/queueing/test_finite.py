"""Laws of systems with a limited number of places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.queueing.erlang import erlang_b, mmc_wait
from planner.queueing.finite import mmck, state_dependent_queue


@given(st.integers(1, 60), st.floats(0.01, 3.0))
def test_without_room_it_is_erlang_b(servers: int, rho: float) -> None:
    queue = mmck(servers, servers * rho, 1.0, servers)
    assert float(queue.blocked) == pytest.approx(float(erlang_b(servers, servers * rho)), rel=1e-10, abs=1e-300)
    assert float(queue.wait) == pytest.approx(0.0, abs=1e-12)


@given(st.integers(1, 30), st.floats(0.05, 0.8))
def test_with_ample_room_it_is_the_unlimited_queue(servers: int, rho: float) -> None:
    queue = mmck(servers, servers * rho, 2.0, servers + 400) if rho < 0.4 else mmck(servers, servers * rho, 1.0, 500)
    service = 2.0 if rho < 0.4 else 1.0
    assert float(queue.wait) == pytest.approx(float(mmc_wait(servers, servers * rho, service)), rel=1e-8, abs=1e-12)


@given(st.integers(1, 10), st.integers(0, 20), st.floats(0.01, 5.0))
def test_little_and_the_balance_of_flows(servers: int, room: int, rho: float) -> None:
    rate = servers * rho
    queue = mmck(servers, rate, 0.5, servers + room)
    assert float(queue.throughput) == pytest.approx(rate * (1 - float(queue.blocked)), rel=1e-9)
    assert float(queue.busy) == pytest.approx(float(queue.throughput) * 0.5, rel=1e-9)
    assert float(queue.sojourn) == pytest.approx(float(queue.wait) + 0.5, rel=1e-9)


@given(st.lists(st.floats(0.1, 5.0), min_size=1, max_size=8), st.integers(0, 12), st.floats(0.0, 20.0))
def test_the_chain_agrees_with_its_generator(paces: list[float], room: int, rate: float) -> None:
    """The stationary vector of the full matrix, by linear algebra."""
    leave = np.array(paces + [paces[-1]] * room)
    size = len(leave) + 1
    generator = np.zeros((size, size))
    for n, pace in enumerate(leave):
        generator[n, n + 1] += rate
        generator[n + 1, n] += pace
    generator -= np.diag(generator.sum(axis=1))
    equations = np.vstack([generator.T, np.ones(size)])
    share = np.linalg.lstsq(equations, np.append(np.zeros(size), 1.0), rcond=None)[0]
    queue = state_dependent_queue(rate, paces, room)
    assert float(queue.blocked) == pytest.approx(share[-1], abs=1e-7)
    assert float(queue.busy) == pytest.approx(share @ np.minimum(np.arange(size), len(paces)), abs=1e-6)
    assert float(queue.throughput) == pytest.approx(share[1:] @ leave, abs=1e-6)


def test_columns_agree_with_single_rows() -> None:
    servers, places = np.array([1, 4, 9]), np.array([1, 10, 40])
    rate = np.array([0.5, 5.0, 7.0])
    whole = mmck(servers, rate, 1.0, places)
    for i in range(3):
        single = mmck(servers[i], rate[i], 1.0, places[i])
        np.testing.assert_allclose(whole.wait[i], single.wait, rtol=1e-12)
        np.testing.assert_allclose(whole.blocked[i], single.blocked, rtol=1e-12)
    mu = np.array([[1.0, 2.0], [3.0, 4.0]])
    both = state_dependent_queue(np.array([1.0, 2.0]), mu, 5)
    np.testing.assert_allclose(
        both.sojourn, [state_dependent_queue(r, m, 5).sojourn for r, m in zip([1, 2], mu, strict=True)]
    )


def test_nobody_comes() -> None:
    queue = state_dependent_queue(0.0, [2.0, 3.0], 4)
    assert (float(queue.throughput), float(queue.blocked), float(queue.busy), float(queue.wait)) == (0, 0, 0, 0)
    assert float(queue.sojourn) == 0.5
